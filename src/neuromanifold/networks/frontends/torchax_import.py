"""The import of torchax beside a PyTorch that has dropped some of the operators it names.

torchax lists operators of PyTorch in tables, overload by overload, when it is imported. PyTorch
2.13 no longer has all of them (those of named dimensions are gone), so the import of torchax
0.0.13, the newest one, fails on the first. No module can call an operator that PyTorch does not
have, so while torchax is imported a missing overload is replaced by a placeholder that is never
looked up again.
"""

import importlib
from typing import Any

from neuromanifold.errors import ArgumentError


class _MissingOverload:
    """Stands in a table for an operator that this PyTorch does not have."""

    def __init__(self, name: str) -> None:
        self.name = name


def torch_and_environment() -> tuple[Any, Any]:
    """The module `torch`, and what runs its operators in JAX."""
    try:
        torch = importlib.import_module("torch")
        operators = importlib.import_module("torch._ops").OpOverloadPacket
    except ImportError:
        raise ArgumentError(
            "PyTorch modules need the packages torch and torchax, which are not installed: "
            "pip install 'neuromanifold[torch]'"
        ) from None
    found = operators.__getattr__

    def found_or_missing(packet: Any, overload: str) -> Any:
        try:
            return found(packet, overload)
        except AttributeError:
            if overload.startswith("__"):
                raise
            return _MissingOverload(overload)

    operators.__getattr__ = found_or_missing
    try:
        environment = importlib.import_module("torchax").default_env()
    except ImportError as error:
        raise ArgumentError(
            f"PyTorch modules need torchax, which cannot be imported ({error}): "
            "pip install 'neuromanifold[torch]'"
        ) from None
    finally:
        operators.__getattr__ = found
    return torch, environment
