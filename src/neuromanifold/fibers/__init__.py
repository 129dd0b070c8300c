"""Fibers: all weights that give one function (eq-6).

`same` decides whether two weights lie on one fiber, `describe` says what the whole fiber is at
given weights, `sample` draws points of it, and `walk` moves along it.
"""
