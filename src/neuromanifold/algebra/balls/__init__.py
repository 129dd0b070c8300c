"""JAX functions evaluated in balls: ranks proved at given real weights.

A ball is a real number known up to an error (python-flint's `arb`), and every operation on balls
encloses the true result. The same jaxpr that is read in floats, and over a prime field, is read
here in balls; a minor of the Jacobian whose determinant is a ball without zero is a minor that is
not zero. No element is formal, so nothing else has to be shown.

`in_balls` evaluates a function, `rows_in_balls` its Jacobian, and `proved_rank` finds a minor and
proves it; `floats_taken` are the constants that stand for themselves.
"""

from neuromanifold.algebra.balls.function import floats_taken, in_balls, rows_in_balls
from neuromanifold.algebra.balls.minors import ProvedRank, proved_rank

__all__ = ["ProvedRank", "floats_taken", "in_balls", "proved_rank", "rows_in_balls"]
