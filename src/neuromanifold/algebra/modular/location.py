"""Where in the user's program an equation of a jaxpr comes from."""

from typing import Any

from jax.extend import source_info_util

# The formal functions by the names of the primitives they stand for.
_FORMAL = {"exp": "exp", "log": "log", "root": "sqrt", "erf": "erf", "turn": "cos"}


def where_from(equation: Any, *callers: Any) -> str:
    """The primitive and the line that called it, for error texts.

    JAX keeps no line for what happens inside its own library functions; the line of the innermost
    caller that has one is named then.
    """
    if equation is None:
        return "the output"
    name = equation.primitive.name
    name = f"`{_FORMAL[equation.params['kind']] if name == 'formal' else name}`"
    for candidate in (equation, *callers):
        line = source_info_util.summarize(candidate.source_info)
        if line:
            return f"{name} ({line})"
    return name
