"""Kernels of Jacobians of small blocks, in float64, as an oracle for the gauge group."""

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.forward import apply
from neuromanifold.checkpoints.gauge.group import parts


def random_weights(block, seed=0):
    generator = np.random.default_rng(seed)
    weights = {}
    for name, shape in block.shapes.items():
        value = generator.normal(size=shape) * (0.9 if len(shape) > 1 else 0.5)
        last = name.split(".")[-1]
        if last.endswith("norm"):
            value = 1.0 + 0.3 * np.tanh(value)
        weights[name] = value
    return weights


def random_inputs(block, seed, count, tokens=3):
    """`count` inputs; discrete ones for tables."""
    generator = np.random.default_rng(seed)
    if block.patch is not None:
        sizes = (count, block.patch.size, block.rows("positions") - 1)
        return {"patches": generator.normal(size=sizes)}
    if not block.tables:
        return {"stream": generator.normal(size=(count, block.width, tokens))}
    tokens = min(tokens, block.rows("positions") or tokens)
    inputs = {
        "tokens": np.eye(block.rows("tokens"))[
            generator.integers(0, block.rows("tokens"), (count, tokens))
        ].swapaxes(1, 2)
    }
    if block.rows("types"):
        k = block.rows("types")
        inputs["types"] = np.eye(k)[generator.integers(0, k, (count, tokens))].swapaxes(1, 2)
    return inputs


def jacobian(block, weights, inputs, readout="logits"):
    def seen(w, X):
        y = apply(block, w, X)
        return y - y[:1] if readout == "probabilities" else y

    rows = jax.jit(jax.vmap(jax.jacrev(seen), in_axes=(None, 0)))(weights, inputs)
    count = len(next(iter(inputs.values())))
    flat = [
        np.asarray(rows[name]).reshape(count, -1, int(np.prod(np.shape(weights[name]))))
        for name in weights
    ]
    matrix = np.concatenate(flat, axis=2)
    return matrix.reshape(-1, matrix.shape[2])


def rank_and_gap(matrix):
    s = np.linalg.svd(matrix, compute_uv=False)
    s = s / s[0]
    ratios = s[:-1] / np.maximum(s[1:], 1e-300)
    candidates = np.where(s[:-1] > 1e-11, ratios, 0)
    r = int(np.argmax(candidates)) + 1
    if s[-1] > 1e-8:
        return len(s), np.inf
    return r, float(ratios[r - 1])


def kernel(block, readout="logits", seed=0, inputs=None, tokens=3):
    """The dimension of the kernel and its gap; whether the generators lie in it, and how many."""
    with jax.enable_x64(True):
        weights = {k: jnp.asarray(v) for k, v in random_weights(block, seed).items()}
        size = sum(v.size for v in weights.values())
        count = inputs or 2 * size // (tokens * max(block.head.rows - 1, block.width // 2)) + 16
        J = jacobian(block, weights, random_inputs(block, seed + 1, count, tokens), readout)
        # columns and rows scaled to norm one: the rank does not change
        J = J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-300)
        gram = np.linalg.qr(J, mode="r")
        rank, gap = rank_and_gap(gram)
        found = []
        for part in parts(block, readout):
            moves = part.tangents(block, weights, readout)
            found.append(
                np.concatenate(
                    [np.asarray(moves[n]).reshape(moves[n].shape[0], -1) for n in weights], axis=1
                )
            )
        if found:
            T = np.concatenate(found)
            T = T / np.linalg.norm(T, axis=1, keepdims=True)
            residual = float(np.abs(gram @ T.T).max() / np.linalg.norm(gram, 2))
            independent = rank_and_gap(T)[0]
        else:
            residual, independent = 0.0, 0
    return {
        "kernel": size - rank,
        "parameters": size,
        "gap": gap,
        "residual": residual,
        "tangents": independent,
    }
