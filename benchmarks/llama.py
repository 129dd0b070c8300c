"""A Llama block: its certificate against float work on the same rows, and discovery against it.

    python benchmarks/llama.py

Hidden size 8, intermediate size 6, two query heads, one key-value head of size 4, two tokens of
embeddings as input: 360 parameters, rank 318, 42 dimensions of symmetries. With norms of queries
and keys, as in Qwen3, 368 parameters and rank 328. The time is that of the processor; with
OMP_NUM_THREADS=1 it has no threads in it that wait. Compilation and tracing are done before; a
certificate of the same network at a new seed uses them again.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import neuromanifold as nm
from neuromanifold.networks.network import Network

SHAPES = {
    "norm": (8,),
    "query": (8, 8),
    "key": (4, 8),
    "value": (4, 8),
    "output": (8, 8),
    "mlp_norm": (8,),
    "gate": (6, 8),
    "up": (6, 8),
    "down": (8, 6),
    "final_norm": (8,),
}
HEAD_NORMS = {"query_norm": (4,), "key_norm": (4,)}
TOKENS = 2


def rms(x: Any) -> Any:
    """Rows over the root of their mean square."""
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def rotated(x: Any) -> Any:
    """Rotary positions on heads (…, token, 4): planes (0, 2) and (1, 3)."""
    angles = np.arange(TOKENS)[:, None] * 10000.0 ** (-np.arange(2) / 2)
    first, second = x[..., :2], x[..., 2:]
    c, s = np.cos(angles), np.sin(angles)
    return jnp.concatenate([first * c - second * s, second * c + first * s], axis=-1)


def block(w: Any, x: Any) -> Any:
    """The stream after one layer and the final norm, one row a token."""
    n = rms(x) * w["norm"]
    query = (n @ w["query"].T).reshape(TOKENS, 2, 4).swapaxes(0, 1)
    key, value = n @ w["key"].T, n @ w["value"].T
    if "query_norm" in w:
        query, key = rms(query) * w["query_norm"], rms(key) * w["key_norm"]
    scores = jnp.einsum("hik,jk->hij", rotated(query), rotated(key)) / 2
    scores = jnp.where(np.tril(np.ones((TOKENS, TOKENS), bool)), scores, -jnp.inf)
    heads = jax.nn.softmax(scores, axis=-1) @ value
    x = x + heads.swapaxes(0, 1).reshape(TOKENS, 8) @ w["output"].T
    n = rms(x) * w["mlp_norm"]
    gate = n @ w["gate"].T
    x = x + (gate * jax.nn.sigmoid(gate) * (n @ w["up"].T)) @ w["down"].T
    return rms(x) * w["final_norm"]


def seconds(action: Callable[[], object], repeats: int = 3) -> float:
    """The least time of a few runs."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return min(times)


def float_seconds(rows: int) -> float:
    """As many rows in float64, one reverse pass each, compiled and vectorised, and their SVD."""
    generator = np.random.default_rng(0)
    inputs, cotangents = generator.standard_normal((2, rows, TOKENS, 8))
    weights = {name: generator.standard_normal(shape) for name, shape in SHAPES.items()}
    with jax.enable_x64(True):
        row = jax.jit(
            jax.vmap(lambda w, x, u: jax.vjp(lambda w: block(w, x), w)[1](u)[0], (None, 0, 0))
        )

        def work() -> None:
            leaves = jax.tree.leaves(row(weights, inputs, cotangents))
            J = np.concatenate([np.asarray(leaf).reshape(rows, -1) for leaf in leaves], axis=1)
            np.linalg.svd(J, compute_uv=False)

        work()
        return seconds(work)


def network(name: str, shapes: dict[str, tuple[int, ...]]) -> Network:
    """The block with weights of these shapes, as a network of which nothing is declared."""
    weights = {tensor: jnp.zeros(shape) for tensor, shape in shapes.items()}
    return nm.network(block, weights, jnp.zeros((TOKENS, 8)), name=name)


def head_norms() -> None:
    """Print what norms of queries and keys cost, of which five a token have nothing between."""
    net = network("Qwen3 block", SHAPES | HEAD_NORMS)
    started = time.process_time()
    print(nm.certify(net))
    first = time.process_time() - started
    ours = seconds(lambda: nm.certify(net, seed=1), 1)
    print(f"certificate with head norms, s                    {ours:8.2f}  (wanted ≤ 3)")
    print(f"  with tracing and obligations, s                 {first:8.2f}", flush=True)


def main() -> None:
    """Print the ratios."""
    net = network("Llama block", SHAPES)
    started = time.process_time()
    first = nm.certify(net)
    cold = time.process_time() - started
    ours = seconds(lambda: nm.certify(net, seed=1))
    print(f"certificate, s                                    {ours:8.2f}", flush=True)
    ratio = ours / float_seconds(first.inputs)
    print(
        f"  over float64 Jacobian and SVD of the same rows  {ratio:8.2f}  (wanted ≤ 10)", flush=True
    )
    head_norms()
    again = network("Llama block", SHAPES)
    started = time.process_time()
    found = nm.discover(again)
    took = time.process_time() - started
    warm = seconds(lambda: nm.discover(again, seed=1))
    print(f"certificate with tracing and obligations, s       {cold:8.2f}")
    print(f"discovery with its tracing and certificate, s     {took:8.2f}")
    print(f"  over the certificate with its tracing           {took / cold:8.2f}  (wanted ≤ 3)")
    print(f"discovery at a new seed, s                        {warm:8.2f}")
    print(f"  over a certificate at a new seed                {warm / ours:8.2f}  (wanted ≤ 3)")
    print(f"{found.explained} of {found.kernel} dimensions of the kernel are symmetries")
    print(found.certificate)


if __name__ == "__main__":
    main()
