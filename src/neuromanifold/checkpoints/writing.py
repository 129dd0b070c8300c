"""Models to files: safetensors, whole or nothing, one tensor in memory at a time."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.readers.contents import DTYPES, FLOATS
from neuromanifold.checkpoints.reading import Model
from neuromanifold.errors import FileFormatError, WeightsError
from neuromanifold.files import check_writable, write_whole

Layout = Mapping[str, tuple[np.dtype, tuple[int, ...]]]
"""The dtype and shape of every tensor of a file that is to be written."""

_WORDS = {dtype: word for word, dtype in DTYPES.items()}


def check_safetensors(path: str | Path, *, force: bool = False) -> None:
    """Raise when `write_safetensors` would refuse: worth asking before a long computation."""
    if Path(path).suffix != ".safetensors":
        raise FileFormatError(
            f"{path} must end in .safetensors, by which readers know the format; "
            f"give {Path(path).name}.safetensors"
        )
    check_writable(path, force=force)


def write_safetensors(
    path: str | Path,
    layout: Layout,
    tensor: Callable[[str], np.ndarray],
    metadata: Mapping[str, str] | None = None,
    *,
    force: bool = False,
) -> None:
    """Write the tensors of `layout`, asking for one after another, or nothing at all.

    Large elements come first, so that every tensor is aligned to its own element size.
    """
    check_safetensors(path, force=force)
    names = sorted(layout, key=lambda name: -layout[name][0].itemsize)
    header: dict[str, object] = {}
    position = 0
    for name in names:
        dtype, shape = layout[name]
        if dtype not in _WORDS:
            raise WeightsError(f"{name}: safetensors has no dtype {dtype}; convert it to float32")
        end = position + math.prod(shape) * dtype.itemsize
        header[name] = {
            "dtype": _WORDS[dtype],
            "shape": list(shape),
            "data_offsets": [position, end],
        }
        position = end
    if metadata:
        header = {"__metadata__": dict(metadata), **header}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    def write(part: Path) -> None:
        with part.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                array, (dtype, shape) = tensor(name), layout[name]
                if array.dtype != dtype or array.shape != shape:
                    raise WeightsError(
                        f"{name} must be {dtype} of shape {shape} as announced; got "
                        f"{array.dtype} of shape {array.shape}"
                    )
                file.write(np.ascontiguousarray(array).view(np.uint8).data)

    write_whole(path, write, force=force)


def write_model(
    model: Model,
    path: str | Path,
    changed: Mapping[str, Callable[[], np.ndarray]],
    *,
    added: Mapping[str, str] | None = None,
    dtype: np.dtype | None = None,
    force: bool = False,
) -> None:
    """Write `model` with some tensors changed: the same names, dtypes and metadata.

    Args:
        model: the model; what is not changed is copied bit for bit.
        path: the safetensors file.
        changed: for each changed tensor a function that computes it, called once, when its turn
            comes; the result is rounded to the dtype of the tensor it replaces.
        added: tensors among the changed ones that the file may lack, each with the one of the file
            that has its dtype and shape.
        dtype: the dtype of all floating-point tensors instead of the stored ones.
        force: replace an existing file.
    """
    places = dict(zip(model.names, model.names, strict=True)) | dict(added or {})
    unknown = sorted(changed.keys() - places.keys())
    if unknown:
        raise FileFormatError(f"{model.path} has no tensor {unknown[0]} to change")
    layout = {}
    for name, place in places.items():
        stored = model.dtype(place)
        written = stored if dtype is None or stored not in FLOATS else dtype
        layout[name] = written, model.shape(place)

    def tensor(name: str) -> np.ndarray:
        array = changed[name]() if name in changed else model.stored(name).read()
        return rounded(name, array, layout[name][0])

    write_safetensors(path, layout, tensor, model.metadata, force=force)


def rounded(name: str, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array in `dtype`; refused when a finite entry becomes infinite in it."""
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):
        result = array.astype(dtype)
    if dtype in FLOATS and not np.isfinite(result).all() and np.isfinite(array).all():
        raise WeightsError(
            f"{name} has entries up to {np.abs(array).max():.3g}, too large for {dtype}; "
            "write it in float32"
        )
    return result
