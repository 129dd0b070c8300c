"""Weights files: safetensors with the architecture's JSON in the header.

Tensors are named `layers.0.query`, `layers.0.key`, `layers.0.value` and, when the value map is
factored, `layers.0.output`. Loading never unpickles, and checks names, shapes, dtypes and values.
"""

from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArchitectureError, FileFormatError
from neuromanifold.files import write_file
from neuromanifold.networks.weights import Weights

_DTYPES = ("float32", "float64")
_HEADER = "architecture"


def save_weights(weights: Weights, path: str | Path, *, force: bool = False) -> None:
    """Write a weights file; an existing file is replaced only with `force`."""
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in weights.named_tensors()}
    for name, tensor in tensors.items():
        _check_values(name, tensor, "the weights to save")
    content = safetensors.numpy.save(tensors, metadata={_HEADER: weights.architecture.to_json()})
    write_file(path, content, force=force)


def load_weights(path: str | Path) -> Weights:
    """Read a weights file."""
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file; give a weights file (safetensors)")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError, TypeError, KeyError) as error:
        raise FileFormatError(
            f"{path} is not a readable safetensors file ({str(error)[:200]}); it may be cut short "
            "or of another format: write it again, for instance with `neuromanifold weights init`"
        ) from None
    if _HEADER not in header:
        raise FileFormatError(
            f"{path} has no 'architecture' in its header, so its tensors have no meaning; "
            "write it with neuromanifold, or add the architecture's JSON to the header"
        )
    try:
        architecture = Architecture.from_json(header[_HEADER])
    except ArchitectureError as error:
        raise FileFormatError(f"{path}: the architecture in its header is wrong: {error}") from None
    return _assemble(path, architecture, tensors)


def _assemble(path: Path, architecture: Architecture, tensors: dict[str, np.ndarray]) -> Weights:
    """The weights of `architecture` from the named tensors of a file, each one checked."""

    def checked(name: str, shape: tuple[int, int, int]) -> np.ndarray:
        if name not in tensors:
            raise FileFormatError(
                f"{path} lacks the tensor {name} of shape {shape} that {architecture.name} needs"
            )
        tensor = tensors.pop(name)
        if tensor.shape != shape:
            raise FileFormatError(
                f"{path}: {name} must have shape {shape} for {architecture.name}; "
                f"got {tensor.shape}"
            )
        _check_values(name, tensor, str(path))
        return tensor

    weights = Weights.made(architecture, checked)
    if tensors:
        raise FileFormatError(
            f"{path} holds the tensor {min(tensors)}, which {architecture.name} does not have"
        )
    return weights


def _check_values(name: str, tensor: np.ndarray, where: str) -> None:
    if tensor.dtype.name not in _DTYPES:
        raise FileFormatError(
            f"{where}: {name} must be {' or '.join(_DTYPES)}; got {tensor.dtype}: convert it"
        )
    if not np.isfinite(tensor).all():
        raise FileFormatError(f"{where}: {name} has entries that are NaN or infinite; mend them")
