"""Dimension: how many parameters of a network its function really has.

The neuromanifold is the set of functions that a network can compute (def-3); its dimension is the
generic rank of the map from weights to functions. `formula` says what is known in theory, with the
statement behind it and how that is known; `redundancy` and `sample_complexity` draw conclusions.

Nothing is imported here, so that asking for a formula does not load an array library.
"""
