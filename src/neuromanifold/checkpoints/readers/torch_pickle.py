"""The part of a pickle that describes tensors, read without unpickling.

A pickle is a program for a small stack machine, and calling is one of its instructions. Python's
unpickler runs it; here is a machine of our own with the instructions that `torch.save` needs for
dictionaries of tensors. It knows the callables of the table below, each a plain function of this
module on plain data, and refuses every other one, and every other instruction, by name. Keys of
dictionaries are words and numbers, so that nothing is hashed that could be nested without end.
"""

import math
import pickletools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import numpy as np

from neuromanifold.checkpoints.readers.contents import BFLOAT16
from neuromanifold.errors import FileFormatError

T = TypeVar("T")

STORAGES = {
    "DoubleStorage": np.dtype("<f8"),
    "FloatStorage": np.dtype("<f4"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": BFLOAT16,
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ShortStorage": np.dtype("<i2"),
    "CharStorage": np.dtype("i1"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
}


@dataclass(frozen=True)
class Storage:
    """A run of `count` elements that the file keeps under `key`, `offset` elements in."""

    key: str
    dtype: np.dtype
    count: int
    offset: int = 0


@dataclass(frozen=True)
class TorchTensor:
    """A view of a storage; in bounds by construction, and never larger than its storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = (self.offset, *self.shape, *self.strides)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise _RefusedError("a tensor with a negative or fractional size, stride or offset")
        if len(self.shape) != len(self.strides) or len(self.shape) > 32:
            raise _RefusedError("a tensor whose shape and strides do not fit each other")
        reach = sum(
            (size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)
        )
        elements = math.prod(self.shape)
        if elements and self.offset + reach >= self.storage.count:
            raise _RefusedError(
                f"a tensor of shape {self.shape} that reaches element {self.offset + reach} of a "
                f"storage of {self.storage.count}"
            )
        if elements > self.storage.count:
            raise _RefusedError(
                f"a tensor of {elements} elements on a storage of {self.storage.count} (a view "
                "that repeats them); save it with .contiguous()"
            )


class _RefusedError(Exception):
    """What the pickle holds instead of tensors; becomes a sentence with the file's name."""


def read_pickle(path: Path, file: IO[bytes]) -> object:
    """Run the pickle that begins where `file` stands; leave `file` behind its end."""
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(file):
            machine.step(opcode.name, argument)
        return machine.result
    except _RefusedError as error:
        raise FileFormatError(f"{path} holds {error}; only tensors are read from it") from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise FileFormatError(
            f"{path} is not a pickle of tensors, or it is damaged ({str(error)[:80]}); "
            "save the state_dict again"
        ) from None


_INTEGERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4")
_REALS = ("FLOAT", "BINFLOAT")
_TEXTS = ("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES")
_UNICODE = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
_VALUES = frozenset((*_INTEGERS, *_REALS, *_TEXTS, *_UNICODE))
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: Mapping[str, Callable[[], object]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_SHORT_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Machine:
    """The stack, the heights marked on it, the memo and the instructions."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}
        self.result: object = None

    def step(self, name: str, argument: object) -> None:
        """One instruction."""
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _SHORT_TUPLES:
            count = _SHORT_TUPLES[name]
            stack[-count:] = [tuple(stack[-count:])]
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[_number(argument)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo[_number(argument)])
        elif name not in ("PROTO", "FRAME"):
            action = getattr(self, f"_{name.lower()}", None)
            if action is None:
                raise _RefusedError(f"the pickle instruction {name}, which builds objects of code")
            action(argument)

    def _marked(self) -> list[object]:
        """Take everything above the last mark."""
        position = self.marks.pop()
        values = self.stack[position:]
        del self.stack[position:]
        return values

    def _mark(self, _: object) -> None:
        self.marks.append(len(self.stack))

    def _memoize(self, _: object) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _pop(self, _: object) -> None:
        self.stack.pop()

    def _dup(self, _: object) -> None:
        self.stack.append(self.stack[-1])

    def _tuple(self, _: object) -> None:
        self.stack.append(tuple(self._marked()))

    def _list(self, _: object) -> None:
        self.stack.append(self._marked())

    def _dict(self, _: object) -> None:
        self.stack.append(_dictionary(self._marked()))

    def _append(self, _: object) -> None:
        value = self.stack.pop()
        _instance(self.stack[-1], list).append(value)

    def _appends(self, _: object) -> None:
        values = self._marked()
        _instance(self.stack[-1], list).extend(values)

    def _setitem(self, _: object) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _instance(self.stack[-1], dict).update(_dictionary([key, value]))

    def _setitems(self, _: object) -> None:
        values = self._marked()
        _instance(self.stack[-1], dict).update(_dictionary(values))

    def _global(self, argument: object) -> None:
        self.stack.append(_callable(*str(argument).split(" ", 1)))

    def _stack_global(self, _: object) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.stack.append(_callable(str(module), str(name)))

    def _reduce(self, _: object) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        self.stack.append(_instance(function, _Allowed).call(*_instance(arguments, tuple)))

    def _build(self, _: object) -> None:
        """Attributes: `_metadata` of a state_dict, the version of each module. Not needed."""
        self.stack.pop()
        _instance(self.stack[-1], dict)

    def _binpersid(self, _: object) -> None:
        self.stack.append(_storage(_instance(self.stack.pop(), tuple)))

    def _stop(self, _: object) -> None:
        (self.result,) = self.stack


def _number(value: object) -> int:
    return _instance(value, int)


def _instance(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise _RefusedError(f"a {type(value).__name__} where a {kind.__name__.strip('_')} was due")
    return value


def _dictionary(values: list[object]) -> dict[object, object]:
    keys = values[::2]
    if len(values) % 2 or not all(isinstance(key, str | int | float) for key in keys):
        raise _RefusedError("a dictionary with keys that are neither words nor numbers")
    return dict(zip(keys, values[1::2], strict=True))


@dataclass(frozen=True)
class _Allowed:
    """A callable that a pickle may name: the function that stands for it here."""

    call: Callable[..., object]


def _ordered_dict(*arguments: object) -> dict[object, object]:
    """An empty one, or that of a list of pairs (Python 2), which is used up.

    So each pair is looked at once, however often a pickle names their list again.
    """
    flat: list[object] = []
    for pairs in arguments:
        listed = _instance(pairs, list)
        flat += [part for pair in listed for part in _instance(pair, Sequence)[:2]]
        listed.clear()
    return _dictionary(flat)


def _rebuild_tensor(
    storage: object, offset: object, shape: object, strides: object, *_: object
) -> TorchTensor:
    """`torch._utils._rebuild_tensor_v2`; what follows the strides is about gradients."""
    return TorchTensor(
        _instance(storage, Storage),
        _instance(offset, int),
        _instance(shape, tuple),
        _instance(strides, tuple),
    )


def _rebuild_parameter(data: object, *_: object) -> TorchTensor:
    return _instance(data, TorchTensor)


def _size(sizes: object) -> tuple[object, ...]:
    return _instance(sizes, tuple)


_CALLABLES = {
    "collections OrderedDict": _Allowed(_ordered_dict),
    "torch Size": _Allowed(_size),
    "torch._utils _rebuild_tensor": _Allowed(_rebuild_tensor),
    "torch._utils _rebuild_tensor_v2": _Allowed(_rebuild_tensor),
    "torch._utils _rebuild_parameter": _Allowed(_rebuild_parameter),
}


def _callable(module: str, name: str) -> object:
    """What stands for a global of the pickle: an allowed function, or the dtype of a storage."""
    if module == "torch" and name in STORAGES:
        return STORAGES[name]
    found = _CALLABLES.get(f"{module} {name}")
    if found is None:
        raise _RefusedError(f"{module[:60]}.{name[:60]}, which is code or an unknown dtype")
    return found


def _storage(identity: tuple[object, ...]) -> Storage:
    """The storage of a persistent id: ('storage', dtype, key, device, count[, view])."""
    if len(identity) not in (5, 6) or identity[0] != "storage":
        raise _RefusedError("a persistent id that is not a storage")
    dtype = _instance(identity[1], np.dtype)
    key = str(_instance(identity[2], str))
    count = _number(identity[4])
    offset = 0
    if len(identity) == 6 and identity[5] is not None:
        _, offset, count = _instance(identity[5], tuple)
    if _number(offset) < 0 or _number(count) < 0:
        raise _RefusedError("a storage of negative size")
    return Storage(key, dtype, _number(count), _number(offset))
