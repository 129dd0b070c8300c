"""Whole certificates against float work of the same size, as ratios measured in one run.

Run: python benchmarks/certificates.py [--large WIDTH …]
`--large` measures only networks of five such widths and ranks, each in a process of its own: 32, 50
and 65 have 12,288, 30,000 and 50,700 parameters.
"""

import importlib.util
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import random_weights

FIGURE_3 = Architecture((10, 10, 10), (2, 2), 3, "softmax")
INPUTS = 250


def best(function, repeats: int = 3) -> float:
    """The shortest time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


LARGEST_PRODUCT = 6144


def large(width: int) -> None:
    """A network with 12 width² parameters against one float64 product of that size.

    The time is that of the processor. A product too large to make is counted as so many products
    of `LARGEST_PRODUCT` as it has multiplications; per multiplication larger ones cost the same.
    """
    network = Architecture((width,) * 5, (width,) * 4, 3)
    started = time.process_time()
    certificate = certify(network)
    ours = time.process_time() - started
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**20
    n = min(network.parameters, LARGEST_PRODUCT)
    matrix = np.random.default_rng(0).standard_normal((n, n))
    started = time.process_time()
    _ = matrix @ matrix
    product = (time.process_time() - started) * (network.parameters / n) ** 3
    print(f"{certificate}")
    print(f"  {network.parameters} parameters, seconds                        {ours:8.1f}")
    print(
        f"  over one dgemm of that n                       {ours / product:8.3f}  (wanted ≤ 0.18)"
    )
    print(f"  peak memory, GB                                {peak:8.2f}", flush=True)


def figure_3() -> None:
    """The largest case of Figure 3 against reverse passes and a singular value decomposition."""
    inputs = np.random.default_rng(0).standard_normal((INPUTS, 10, 3))
    with jax.enable_x64(True):
        weights = random_weights(FIGURE_3, 0)
        flat = jax.jit(lambda w, X, u: jax.vjp(lambda w: attention(w, X), w)[1](u)[0])
        together = jax.jit(jax.vmap(jax.jacrev(attention), in_axes=(None, 0)))
        units = np.eye(30).reshape(30, 10, 3)

        def one_by_one():
            rows = [flat(weights, X, u).flatten() for X in inputs for u in units]
            np.linalg.svd(np.stack(rows), compute_uv=False)

        def vectorised():
            leaves = jax.tree.leaves(together(weights, inputs))
            rows = np.concatenate([np.asarray(x).reshape(INPUTS * 30, -1) for x in leaves], axis=1)
            np.linalg.svd(rows, compute_uv=False)

        flat(weights, inputs[0], units[0])
        together(weights, inputs)
        slow, fast = best(one_by_one, 1), best(vectorised)
    seeds = itertools.count()
    certify(FIGURE_3, inputs=INPUTS)
    ours = best(lambda: certify(FIGURE_3, seed=next(seeds), inputs=INPUTS))
    print(f"{FIGURE_3}, {INPUTS} inputs, without compilation or tracing")
    print(f"  one reverse pass a coordinate + SVD over ours {slow / ours:8.1f}  (wanted ≥ 10)")
    print(f"  vectorised jacrev + SVD over ours             {fast / ours:8.1f}  (wanted ≥ 1)")
    if importlib.util.find_spec("torch"):
        print(f"  eager PyTorch, row by row, over ours          {torch_seconds() / ours:8.1f}")


def torch_seconds() -> float:
    """The time of row-by-row eager PyTorch for the same Jacobian and its singular values."""
    import torch

    inputs = torch.randn(INPUTS, 10, 3, dtype=torch.float64)
    shapes = [(2, 10), (2, 10), (10, 10)] * 2
    weights = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]

    def forward(X):
        for Q, K, V in (weights[:3], weights[3:]):
            X = V @ X @ torch.softmax((K @ X).T @ (Q @ X), dim=0)
        return X

    start = time.perf_counter()
    rows = []
    for X in inputs:
        for coordinate in forward(X).flatten():
            grads = torch.autograd.grad(coordinate, weights, retain_graph=True)
            rows.append(torch.cat([g.flatten() for g in grads]))
    torch.linalg.svdvals(torch.stack(rows))
    return time.perf_counter() - start


def small() -> None:
    """Certificates a second for small networks, on one core: run in a process of its own.

    The time is that of the processor.
    """
    network = Architecture((4, 3, 3), (2, 2), 3, "softmax")
    certify(network)
    start, count = time.process_time(), 40
    for seed in range(count):
        certify(network, seed=seed)
    rate = count / (time.process_time() - start)
    print(f"  new seeds of {network}: {rate:.0f} a second  (wanted ≥ 100)")
    networks = [
        Architecture((a, b, c), (r, s), 3, kind)
        for a, b, c in itertools.product((2, 3, 4), (2, 3), (2, 3))
        for r, s in ((1, 2), (2, 2))
        for kind in ("lightning", "softmax")
    ]
    start = time.process_time()
    for new in networks:
        certify(new)
    rate = len(networks) / (time.process_time() - start)
    print(
        f"  ever new architectures, fewer than 100 parameters: {rate:.1f} a second  (wanted ≥ 20)"
    )


def main() -> None:
    """Print the tables."""
    print(f"{os.cpu_count()} cores")
    figure_3()
    print("small networks, one core")
    sys.stdout.flush()
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, __file__, "--small"], env=alone, check=True)


def larger(widths: list[str]) -> None:
    """Each width in a process of its own."""
    for width in widths or ["32"]:
        subprocess.run([sys.executable, __file__, "--one-large", width], check=True)


if __name__ == "__main__":
    question, *rest = sys.argv[1:] or ["--all"]
    if question == "--one-large":
        large(int(rest[0]))
    elif question == "--large":
        larger(rest)
    else:
        small() if question == "--small" else main()
