"""Formulas: what theory says about dimension and redundancy, in pure Python.

`formula` gives the dimension of an architecture with the statement behind it and how that is known;
`bounds` has all proved upper bounds, and `redundancy` where the other parameters go. No array
library is loaded here.
"""
