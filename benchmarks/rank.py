"""Rank mod p against one float64 matrix product and against python-flint, as ratios of one run.

    python benchmarks/rank.py                      # n = 1000, 2000, 4000
    python benchmarks/rank.py --sizes 8000 --wide  # larger, and 5124 × 12288 one-shot and streaming

Every line is the best of several interleaved measurements with BLAS limited to the threads given.
"""

import argparse
import os
import time
from collections.abc import Callable

import flint
import numpy as np
from threadpoolctl import threadpool_limits

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank

FIELD = PrimeField()
WIDE = (5124, 12288)
BATCH = 512
HEADER = f"{'matrix':>14} {'threads':>7} {'dgemm s':>8} {'rank/dgemm':>10} {'flint/rank':>10}"


def product_of_rank(height: int, width: int, r: int) -> np.ndarray:
    """A matrix of the given rank, from two random factors."""
    left = FIELD.random(0, "benchmark left", (height, r))
    return FIELD.matmul(left, FIELD.random(0, "benchmark right", (r, width)))


def seconds(action: Callable[[], object]) -> float:
    """The time an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def best_of(repeats: int, *actions: Callable[[], object]) -> list[float]:
    """The least time of each action; they take turns, so that a busy moment spares none of them."""
    rounds = [[seconds(action) for action in actions] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


def flint_seconds(matrix: np.ndarray, repeats: int) -> float:
    """Flint's rank alone, without the time to build its matrix, which is as long again."""
    residues = np.mod(matrix, FIELD.modulus).astype(np.int64)
    theirs = flint.nmod_mat(*matrix.shape, residues.ravel().tolist(), FIELD.modulus)
    return best_of(repeats, theirs.rank)[0]


def stream(matrix: np.ndarray) -> int:
    """The rank from batches of rows."""
    form = EchelonForm(matrix.shape[1], FIELD)
    for start in range(0, len(matrix), BATCH):
        form.add(matrix[start : start + BATCH])
    return form.rank


def square(n: int, repeats: int) -> None:
    """One line a number of threads for an n × n matrix of rank 0.6 n."""
    r = 3 * n // 5
    matrix = product_of_rank(n, n, r)
    assert rank(matrix, FIELD) == r
    theirs = flint_seconds(matrix, min(repeats, 2))
    for threads in (1, 2):
        with threadpool_limits(threads):
            gemm, ours = best_of(repeats, lambda: matrix @ matrix, lambda: rank(matrix, FIELD))
        name = f"{n} rank {r}"
        print(f"{name:>14} {threads:7} {gemm:8.3f} {ours / gemm:10.2f} {theirs / ours:10.1f}")


def wide(repeats: int) -> None:
    """A wide matrix of full rank, at once and in batches."""
    m, n = WIDE
    matrix = FIELD.random(0, "benchmark wide", WIDE)
    other = FIELD.random(0, "benchmark square", (m, m))
    print(f"\n{m} × {n}, full row rank; dgemm is ({m} × {m}) @ ({m} × {n})")
    print(f"{'threads':>7} {'dgemm s':>8} {'one-shot/dgemm':>14} {'batches of 512/dgemm':>20}")
    for threads in (1, 2):
        with threadpool_limits(threads):
            gemm, once, streamed = best_of(
                repeats,
                lambda: other @ matrix,
                lambda: rank(matrix, FIELD),
                lambda: stream(matrix),
            )
        print(f"{threads:7} {gemm:8.2f} {once / gemm:14.2f} {streamed / gemm:20.2f}")


def small(repeats: int) -> None:
    """Matrices whose rank is all overhead."""
    print("\nsmall matrices, milliseconds a rank")
    for shape in ((20, 30), (30, 60), (40, 60), (100, 200)):
        matrix = FIELD.random(0, "benchmark small", shape)
        (time_taken,) = best_of(20 * repeats, lambda matrix=matrix: rank(matrix, FIELD))
        print(f"{shape[0]:>4} × {shape[1]:<4} {1e3 * time_taken:8.2f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 2000, 4000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--wide", action="store_true", help=f"also {WIDE[0]} × {WIDE[1]}")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores; p = {FIELD.modulus}; rank 0.6 n; flint has one thread\n")
    print(HEADER)
    for n in options.sizes:
        square(n, options.repeats)
    if options.wide:
        wide(min(options.repeats, 2))
    small(options.repeats)


if __name__ == "__main__":
    main()
