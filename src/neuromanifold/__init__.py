"""The exact geometry of attention networks: fibers, dimensions, singularities, recovery.

The names below load on first use, so that importing the package imports neither JAX nor NumPy.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "Architecture": "neuromanifold.architecture",
    "NeuromanifoldError": "neuromanifold.errors",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'neuromanifold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
