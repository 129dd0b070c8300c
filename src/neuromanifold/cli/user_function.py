"""A user's function, named on the command line as `module.py:function`."""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuromanifold.errors import ArgumentError


@dataclass(frozen=True)
class UserFunction:
    """What a module says about a function to be certified.

    Attributes:
        name: `module.py:function`.
        f: the function f(weights, X).
        weights: the module's `weights`, a pytree of arrays.
        inputs: the module's `inputs`, one sample X.
        symmetries: the module's `symmetries`, a list, empty when it has none.
    """

    name: str
    f: Callable[[Any, Any], Any]
    weights: Any
    inputs: Any
    symmetries: Sequence[Callable[[Any, Any], Any]]


def user_function(text: str) -> UserFunction:
    """Import `module.py` and take from it the function, `weights`, `inputs` and `symmetries`."""
    file, separator, function = text.rpartition(":")
    path = Path(file)
    if not separator or not function or not path.is_file():
        raise ArgumentError(
            f"a function is named as module.py:function, with an existing file; got {text!r}"
        )
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        raise ArgumentError(f"{path} is not a Python file; give one that ends in .py")
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(path.stem, module)
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise ArgumentError(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
    for name in (function, "weights", "inputs"):
        if not hasattr(module, name):
            raise ArgumentError(
                f"{path} has no {name!r}; it must define {function}(weights, X), and `weights` and "
                "`inputs` as arrays of the shapes to use"
            )
    return UserFunction(
        f"{path.name}:{function}",
        getattr(module, function),
        module.weights,
        module.inputs,
        getattr(module, "symmetries", ()),
    )
