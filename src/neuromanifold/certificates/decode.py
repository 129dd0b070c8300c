"""JSON values back to frozen dataclasses, each field checked against its type.

A file can say anything. What a field may hold is said once, by its annotation, and read here; so a
field that a record gains later is checked from its first day.
"""

from dataclasses import fields, is_dataclass
from math import isfinite
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArchitectureError, FileFormatError

T = TypeVar("T")

_LARGEST = 2**63
_LONGEST_TEXT = 10_000
_LONGEST_LIST = 10_000


def decoded(kind: type[T], data: object, name: str = "") -> T:
    """The dataclass with these fields; a field too many, too few or of another type is refused."""
    if not isinstance(data, dict):
        raise FileFormatError(
            f"{name or 'it'} must be an object with fields; got {shortened(data)}"
        )
    within = f" of {name}" if name else ""
    hints = get_type_hints(kind)
    wanted = [field.name for field in fields(kind)]  # pyrefly: ignore[bad-argument-type]
    for key in data:
        if key not in wanted:
            raise FileFormatError(f"it has the unknown field {shortened(key)}{within}")
    values = {}
    for key in wanted:
        if key not in data:
            raise FileFormatError(f"it lacks the field {key!r}{within}")
        values[key] = _value(hints[key], data[key], f"{name}.{key}" if name else key)
    return kind(**values)


def _value(kind: Any, value: object, name: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _of_union(parts, value, name)
    if origin is Literal:
        if not isinstance(value, str) or value not in parts:
            raise _wrong(name, f"one of {', '.join(map(str, parts))}", value)
        return value
    if origin is tuple and parts[1:] == (...,):
        if not isinstance(value, list) or len(value) > _LONGEST_LIST:
            raise _wrong(name, f"a list of at most {_LONGEST_LIST} entries", value)
        return tuple(_value(parts[0], part, f"{name}[{i}]") for i, part in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict) or len(value) > _LONGEST_LIST:
            raise _wrong(name, "an object", value)
        return {key: _value(parts[1], part, f"{name}.{key}") for key, part in value.items()}
    if kind is Architecture:
        try:
            return Architecture.from_dict(value)
        except ArchitectureError as error:
            raise FileFormatError(f"its architecture is none: {error}") from None
    return decoded(kind, value, name) if is_dataclass(kind) else _scalar(kind, value, name)


def _of_union(parts: tuple[Any, ...], value: object, name: str) -> Any:
    """A type or None."""
    if value is None and NoneType in parts:
        return None
    (kind,) = (part for part in parts if part is not NoneType)
    return _value(kind, value, name)


def _scalar(kind: Any, value: object, name: str) -> Any:
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value < _LARGEST:
            return value
        raise _wrong(name, "a number between 0 and 2^63", value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if isfinite(value):
            return value
        raise _wrong(name, "a finite number", value)
    if kind is str and isinstance(value, str):
        if len(value) <= _LONGEST_TEXT:
            return value
        raise _wrong(name, f"a text of at most {_LONGEST_TEXT} characters", value)
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    raise _wrong(name, words.get(kind, str(kind)), value)


def _wrong(name: str, wanted: str, value: object) -> FileFormatError:
    return FileFormatError(f"its {name} must be {wanted}; got {shortened(value)}")
