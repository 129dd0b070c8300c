"""Conditions on architectures and records, written like Python: `max(ranks) <= min(widths)`.

The text is parsed by Python and given its meaning here, node by node, so that a grid file from
somebody else can compare numbers and do nothing more.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from reprlib import repr as shortened
from typing import Any

from neuromanifold.errors import ArgumentError

_LONGEST = 1000
"""Characters of a condition: what it can multiply from its numbers then stays small too."""
_DEEPEST = 50

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (all, any, len, max, min, set, sum)
}

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}

_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
}

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda x, y: x in y,
    ast.NotIn: lambda x, y: x not in y,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


Meaning = Callable[[Mapping[str, Any]], Any]
"""From the values of the names to the value of an expression."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that has been parsed and checked.

    Attributes:
        text: as it was written.
        meaning: what it stands for; only known names and operations occur in it.
    """

    text: str
    meaning: Meaning

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the condition holds for these values of its names."""
        try:
            return bool(self.meaning(values))
        except (TypeError, LookupError, ArithmeticError, ValueError) as error:
            raise ArgumentError(
                f"the condition {self.text!r} cannot be evaluated: {error}; "
                "guard it, for instance with `depth == 2 and …`"
            ) from None


def parse_condition(text: str, names: Collection[str]) -> Condition:
    """Parse a condition on the given names; what it may not contain is refused with a sentence."""
    if len(text) > _LONGEST:
        raise ArgumentError(
            f"the condition {shortened(text)} is longer than {_LONGEST} characters; shorten it"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ArgumentError(f"the condition {text!r} is not an expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ArgumentError(f"the condition {shortened(text)} is not an expression") from None
    return Condition(text, _meaning(tree, text, names))


def _meaning(node: ast.AST, text: str, names: Collection[str], depth: int = 0) -> Meaning:
    """What an expression means; whatever is not listed here means nothing, and is refused."""
    if depth > _DEEPEST:
        raise ArgumentError(
            f"the condition {shortened(text)} is nested more than {_DEEPEST} deep; simplify it"
        )

    def of(parts: Iterable[ast.AST]) -> list[Meaning]:
        return [_meaning(part, text, names, depth + 1) for part in parts]

    def applied(function: Callable[..., Any], *parts: ast.AST) -> Meaning:
        operands = of(parts)
        return lambda values: function(*(operand(values) for operand in operands))

    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return lambda _: value
        case ast.Name(id=name) if name in names:
            return operator.itemgetter(name)
        case ast.Name(id=name):
            raise ArgumentError(
                f"unknown name {name!r} in the condition {text!r}; "
                f"the names are {', '.join(sorted(names))}"
            )
        case ast.BoolOp(op=op, values=values):
            joined, parts = (all if isinstance(op, ast.And) else any), of(values)
            return lambda values: joined(part(values) for part in parts)
        case ast.Compare(left=left, ops=ops) if all(type(op) in _COMPARISONS for op in ops):
            chain = partial(_compared, [_COMPARISONS[type(op)] for op in ops])
            return applied(chain, left, *node.comparators)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return applied(partial(_of_numbers, _BINARY[type(op)]), left, right)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return applied(_UNARY[type(op)], operand)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return applied(_FUNCTIONS[name], *arguments)
        case ast.Slice(lower=lower, upper=upper, step=None):
            return applied(slice, *(end or ast.Constant(None) for end in (lower, upper)))
        case ast.Subscript(value=value, slice=index):
            return applied(operator.getitem, value, index)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return applied(_listed, *elements)
    raise ArgumentError(
        f"the condition {text!r} contains {ast.unparse(node)!r}, which conditions do not "
        f"know: use comparisons, and/or/not, + - * // / %, indices and the functions "
        f"{', '.join(_FUNCTIONS)}"
    )


def _listed(*parts: Any) -> tuple[Any, ...]:
    return parts


def _compared(comparisons: Sequence[Callable[[Any, Any], bool]], *operands: Any) -> bool:
    return all(map(lambda compare, x, y: compare(x, y), comparisons, operands, operands[1:]))


def _of_numbers(operation: Callable[[Any, Any], Any], *operands: Any) -> Any:
    """An operation on numbers; on texts and lists it could make something huge."""
    if not all(isinstance(operand, int | float) for operand in operands):
        raise TypeError("+ - * // / % are for numbers")
    return operation(*operands)
