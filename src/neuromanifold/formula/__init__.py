"""Formulas: what theory says about dimension and redundancy, in pure Python.

`formula` gives the dimension of an architecture with the statement behind it and how that is known;
`redundancy` and `sample_complexity` draw conclusions. No array library is loaded here.
"""
