"""The fingerprint of a model: numbers that none of its exact symmetries changes, and their hash.

Of every head the size of its score form and of what it writes, Frobenius and spectral norm; of the
neurons quantiles of their balanced sizes; of tables and head the two norms. All are invariant under
changes of basis in heads and neurons, folding of norms, dead biases, and rotations and permutations
of the stream (gauge-qk, gauge-ov, norm-absorption, stream-rotation); heads are listed by size, so
that their order does not matter either (the groups of shared keys are listed together).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, opened
from neuromanifold.checkpoints.forms import Heads, Tensors, folded, head_forms, neuron_forms
from neuromanifold.errors import ArgumentError

DIGITS = 3
"""Decimals of the logarithms that enter the hash: a tenth of a per cent of each number."""
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class ModelFingerprint:
    """Invariants of a model and a short hash of them.

    Equal functions give invariants that agree up to rounding, and equal hashes unless one of them
    lies within rounding of a boundary between two rounded values; unequal hashes are therefore no
    proof of unequal functions, and equal ones none of equal functions: `same` decides.

    Attributes:
        model: where it was read.
        layers: for every layer the logarithms of its invariants.
        outer: the same of what lies outside the layers, by name.
        hash: 16 hexadecimal digits.
    """

    model: str
    layers: np.ndarray
    outer: dict[str, float]
    hash: str

    def distance(self, other: "ModelFingerprint") -> float:
        """The largest difference of an invariant, relative: of 0.01, about one per cent."""
        if self.layers.shape != other.layers.shape or self.outer.keys() != other.outer.keys():
            raise ArgumentError(
                f"the fingerprints of {self.model} and {other.model} are of models of different "
                "shapes"
            )
        outer = [abs(value - other.outer[name]) for name, value in self.outer.items()]
        return float(max(np.abs(self.layers - other.layers).max(), *outer))

    def __str__(self) -> str:
        count = self.layers.size + len(self.outer)
        return f"{self.model}: fingerprint {self.hash}, of {count} invariants."

    def to_dict(self) -> dict[str, object]:
        """The JSON of `checkpoint fingerprint`."""
        return {
            "model": self.model,
            "hash": self.hash,
            "digits": DIGITS,
            "layers": self.layers.tolist(),
            "outer": self.outer,
        }


def model_fingerprint(
    model: str | Path | Checkpoint,
    *,
    config: str | Path | Mapping[str, object] | None = None,
    heads: int | None = None,
    family: str | Path | None = None,
) -> ModelFingerprint:
    """The fingerprint of a model, one layer in memory at a time.

    Args:
        model: a checkpoint, or its path.
        config: for a path, a configuration where none lies beside the weights.
        heads: for a path, the number of heads where the configuration does not say.
        family: for a path, a file that describes a model of no known family.
    """
    model = opened(model, config, heads, family)
    form = folded(model)
    block = model.block
    layers = np.array([_layer(block, form.layer(layer)) for layer in range(block.stored_layers)])
    outer = {
        f"{name} {kind}": float(_logarithm(np.array(value)))
        for name, table in form.outer().items()
        if table.ndim == 2
        for kind, value in (("size", np.linalg.norm(table)), ("largest", _spectral(table)))
    }
    rounded = np.round([*layers.ravel(), *outer.values()], DIGITS) + 0.0
    text = " ".join(f"{value:.{DIGITS}f}" for value in rounded)
    found = hashlib.sha256(text.encode()).hexdigest()[:16]
    return ModelFingerprint(str(model.path), layers, outer, found)


def _layer(block: Block, tensors: Tensors) -> np.ndarray:
    heads = head_forms(block, tensors)
    rows = _head_rows(heads)
    groups = rows.reshape(len(heads.key), heads.sharing, -1)
    groups = np.array([group[np.argsort(group[:, 0], kind="stable")] for group in groups])
    groups = groups[np.argsort(groups[:, :, 0].sum(axis=1), kind="stable")]
    neurons = neuron_forms(block, tensors)
    sizes = np.zeros(0)
    if neurons is not None:
        squares = np.sum(neurons.signed**2, 1) + np.sum(neurons.fixed**2, 1)
        sizes = np.sqrt(np.quantile(squares, QUANTILES))
    return _logarithm(np.concatenate([groups.ravel(), sizes]))


def _head_rows(heads: Heads) -> np.ndarray:
    """For every head four norms: Frobenius and spectral, of scores and of writing.

    Rotary planes are forms of their own, of rank one: their norms are ‖q‖‖k‖.
    """
    key, value, key_planes = (
        np.repeat(part, heads.sharing, 0) for part in (heads.key, heads.value, heads.key_planes)
    )
    plain = _singular_values(heads.query, key)
    planes = np.linalg.norm(heads.query_planes, axis=-1) * np.linalg.norm(key_planes, axis=-1)
    scores = np.concatenate([plain, planes], axis=1)
    writes = _singular_values(heads.output, value)
    norms = [(np.linalg.norm(part, axis=1), part.max(axis=1)) for part in (scores, writes)]
    return np.stack([norm for pair in norms for norm in pair], axis=1)


def _singular_values(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of leftᵀ right for stacks of factors (heads, size, width), from QR of both."""
    if left.shape[1] == 0:
        return np.zeros((len(left), 0))
    L, R = (np.linalg.qr(np.swapaxes(part, 1, 2), mode="r") for part in (left, right))
    return np.linalg.svd(L @ np.swapaxes(R, 1, 2), compute_uv=False)


def _spectral(table: np.ndarray) -> float:
    """The largest singular value, from the smaller Gram matrix."""
    gram = table.T @ table if table.shape[0] > table.shape[1] else table @ table.T
    return float(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)))


def _logarithm(values: np.ndarray) -> np.ndarray:
    """Logarithms; zero counts as the smallest number that is not."""
    return np.log(np.maximum(values, np.finfo(float).tiny))
