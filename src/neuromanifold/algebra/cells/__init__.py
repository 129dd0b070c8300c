"""Piecewise functions, one cell at a time.

A function made with maxima, absolute values, comparisons, sorting or rounding is analytic on each
of many open sets, its *cells*. A cell is known by its *branches*: which entry was the largest,
which side of a comparison held, which integer a number was rounded to. With its branches fixed the
function is an ordinary one, to be differentiated and evaluated exactly; the branches come from
a real point in double precision, and hold on an open set around it.

`piecewise` finds whether a function has branches at all, `Piecewise.branches` reads them off at a
point, and `Piecewise.fixed` is the function with given branches.
"""

from neuromanifold.algebra.cells.piecewise import Piecewise, piecewise

__all__ = ["Piecewise", "piecewise"]
