"""Where in the user's program an equation of a jaxpr comes from."""

from typing import Any

from jax.extend import source_info_util


def where_from(equation: Any) -> str:
    """The primitive and the line that called it, for error texts."""
    if equation is None:
        return "the output"
    return f"`{equation.primitive.name}` ({source_info_util.summarize(equation.source_info)})"
