"""The import of torchax beside a PyTorch that has dropped some of the operators it names.

torchax lists operators of PyTorch in tables, overload by overload, when it is imported. PyTorch
2.13 no longer has all overloads (those of named dimensions are gone) and 2.15 not all operators,
so the import of torchax 0.0.13, the newest one, fails on the first. No module can call an operator
that PyTorch does not have, so while torchax is imported a missing one is replaced by a placeholder
that is never looked up again.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from neuromanifold.errors import ArgumentError


class _Missing:
    """Stands in a table for an operator or overload that this PyTorch does not have."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> "_Missing":
        return _missing(name)


def _missing(name: str) -> _Missing:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(name)


@contextmanager
def _placeholders(holder: Any) -> Iterator[None]:
    """For a while, what a class of PyTorch does not find is a placeholder."""
    found = holder.__getattr__

    def found_or_missing(self: Any, name: str) -> Any:
        try:
            return found(self, name)
        except AttributeError:
            return _missing(name)

    holder.__getattr__ = found_or_missing
    try:
        yield
    finally:
        holder.__getattr__ = found


def torch_and_environment() -> tuple[Any, Any]:
    """The module `torch`, and what runs its operators in JAX."""
    try:
        torch = importlib.import_module("torch")
        operators = importlib.import_module("torch._ops")
    except ImportError:
        raise ArgumentError(
            "PyTorch modules need the packages torch and torchax, which are not installed: "
            "pip install 'neuromanifold[torch]'"
        ) from None
    with _placeholders(operators.OpOverloadPacket), _placeholders(operators._OpNamespace):
        try:
            environment = importlib.import_module("torchax").default_env()
        except (ImportError, AttributeError) as error:
            raise ArgumentError(
                f"PyTorch modules need torchax, which cannot be imported ({error}): "
                "pip install 'neuromanifold[torch]', or an older torch"
            ) from None
    return torch, environment
