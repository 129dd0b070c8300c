"""Symmetries: the ways to change the weights of a network that do not change its function.

Each module is one family: for which networks it holds, how a group element acts on weights, and
the tangent vectors of its orbits. `families.FAMILIES` lists them in the order they are counted.
"""
