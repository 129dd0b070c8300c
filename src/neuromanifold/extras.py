"""Parts of the library that need packages of their own, and the sentence when one is missing."""

from neuromanifold.errors import MissingExtraError

_EXTRAS = {
    "dask": "atlas",
    "distributed": "atlas",
    "matplotlib": "figures",
    "pyarrow": "parquet",
    "plotly": "explorer",
    "starlette": "explorer",
    "uvicorn": "explorer",
    "torch": "torch",
    "torchax": "torch",
}
"""The extra that brings each package."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """The one sentence for a package that an extra would have brought; None for any other."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        return None
    return MissingExtraError(
        f"this needs the package {package}, which is not installed: "
        f"pip install 'neuromanifold[{_EXTRAS[package]}]'"
    )
