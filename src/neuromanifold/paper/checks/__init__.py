"""Checks: every statement of the registry tested by computation, with the evidence kept.

A check is a function of a `Trial`, which tells it the size of the grid and the seed and takes its
comparisons, its numbers and, for a correction, the counterexample to the printed version. `run` has
all checks by statement id, and turns what they find into `Evidence`, which is all that reports
show.
"""
