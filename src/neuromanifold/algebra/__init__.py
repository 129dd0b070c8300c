"""Exact linear algebra over a prime field, and JAX functions evaluated there.

A residue mod p is kept as a float64 in the balanced range [−(p−1)/2, (p−1)/2] of an odd prime
p < 2^23: products are then exact, and matrix products are BLAS calls with few reductions.
"""
