"""Lightning attention in time and memory linear in the number of tokens.

Prints ratios measured in one run: doubling the tokens, against the t × t form, and peak memory.
Run: python benchmarks/forward.py
"""

import os
import subprocess
import sys
import time

import jax
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import random_weights

D, A, DEPTH = 64, 16, 2


def network(tokens: int, mask: str) -> Architecture:
    """The network of the benchmark."""
    return Architecture((D,) * (DEPTH + 1), (A,) * DEPTH, tokens, mask=mask)


def quadratic(weights, X):
    """The same function through the t × t matrix of scores."""
    causal = weights.architecture.mask == "causal"
    for layer in weights.layers:
        scores = (layer.key[0] @ X).T @ (layer.query[0] @ X)
        X = (layer.value[0] @ X) @ (jax.numpy.triu(scores) if causal else scores)
    return X


def seconds(function, weights, X, repeats: int = 5) -> float:
    """The best time of a few compiled runs."""
    run = jax.jit(function)
    run(weights, X).block_until_ready()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run(weights, X).block_until_ready()
        times.append(time.perf_counter() - start)
    return min(times)


def setting(tokens: int, mask: str):
    """Weights and an input in float32."""
    weights = random_weights(network(tokens, mask), 0, dtype=np.float32)
    X = np.random.default_rng(0).standard_normal((D, tokens)).astype(np.float32)
    return weights, X


def peak_memory(tokens: int, mask: str) -> int:
    """Peak memory in kilobytes of a process that makes one forward pass."""
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1]); import forward; "
        "import jax; w, X = forward.setting(int(sys.argv[2]), sys.argv[3]); "
        "jax.jit(forward.attention)(w, X).block_until_ready(); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    command = [sys.executable, "-c", code, folder, str(tokens), mask]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the table."""
    print(f"lightning forward, d = {D}, a = {A}, l = {DEPTH}, float32, {os.cpu_count()} cores")
    for mask in ("none", "causal"):
        short, long = (seconds(attention, *setting(t, mask)) for t in (32_768, 65_536))
        fast, slow = (seconds(f, *setting(8_192, mask), 3) for f in (attention, quadratic))
        memory = [peak_memory(t, mask) for t in (1_048_576, 2_097_152, 4_194_304)]
        growth = (memory[2] - memory[1]) / (memory[1] - memory[0])
        print(f"mask {mask}:")
        print(f"  time at t = 65,536 over t = 32,768         {long / short:6.2f}  (wanted ≤ 2.3)")
        print(f"  t × t form over ours at t = 8,192          {slow / fast:6.1f}  (wanted ≥ 20)")
        print("  memory added by t = 2,097,152 → 4,194,304 over that")
        print(f"  added by 1,048,576 → 2,097,152 (2 is linear) {growth:6.2f}")


if __name__ == "__main__":
    main()
