"""JAX functions evaluated over a prime field.

A function written in JAX is traced once; calls, loops and custom derivatives are opened, so that
what is differentiated is the function itself; what depends on no argument is computed in float64
and read as rational numbers; what remains is recorded as a flat program of exact operations on
residues mod p. Rational functions are evaluated as they are. exp, log, √, erf, cos and sin are
formal: each distinct argument gets its own element of the field (softmax-exact), and every formal
step is listed in the program, with what has to be shown for it. Minus infinity is carried along as
a mask, so that masked softmax attention works unchanged.

`over_prime_field` makes the program of a function and `rows_over_prime_field` that of the rows of
its Jacobian, `FormalElements` chooses the elements, `opened` is the function itself in JAX.
"""

from neuromanifold.algebra.modular.formal.basis import relations_of
from neuromanifold.algebra.modular.formal.columns import Source
from neuromanifold.algebra.modular.formal.elements import FormalElements
from neuromanifold.algebra.modular.formal.obligations import Obligation, obligations, square_roots
from neuromanifold.algebra.modular.function import (
    ModularFunction,
    over_prime_field,
    rows_over_prime_field,
)
from neuromanifold.algebra.modular.opening import opened
from neuromanifold.algebra.modular.square_roots.squares import settled

__all__ = [
    "FormalElements",
    "ModularFunction",
    "Obligation",
    "Source",
    "obligations",
    "opened",
    "over_prime_field",
    "relations_of",
    "rows_over_prime_field",
    "settled",
    "square_roots",
]
