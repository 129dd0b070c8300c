"""Attention networks as JAX functions of their weights.

A sequence of t tokens is a matrix X of shape d × t, one token a column. A network is the function
`attention(weights, X)`; `weights` is a pytree of arrays that are NumPy at rest.
"""
