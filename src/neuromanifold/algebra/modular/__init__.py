"""JAX functions evaluated over a prime field.

A function written in JAX is traced once to a jaxpr; what depends on no argument is computed in
float64 and read as rational numbers; what remains is recorded as a flat program of exact operations
on residues mod p. Rational functions are evaluated as they are. `exp` is formal: each distinct
argument gets its own element of the field (softmax-exact), and minus infinity is carried along as a
mask so that masked softmax attention works unchanged.

`over_prime_field` makes the program, `FormalExponentials` chooses the elements, `exponents_of`
gives the arguments of `exp` as a function of their own, for the proof that they are independent.
"""

from neuromanifold.algebra.modular.exponentials import FormalExponentials
from neuromanifold.algebra.modular.exponents import exponents_of
from neuromanifold.algebra.modular.function import ModularFunction, over_prime_field

__all__ = ["FormalExponentials", "ModularFunction", "exponents_of", "over_prime_field"]
