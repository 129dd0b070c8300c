"""Conditions on architectures and records, written like Python: `max(ranks) <= min(widths)`.

The text is parsed by Python and interpreted here, node by node, so that a grid file from somebody
else can compare numbers and do nothing more.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any

from neuromanifold.errors import ArgumentError

_LONGEST = 1000
"""Characters of a condition: what it can multiply from its numbers then stays small too."""
_DEEPEST = 50

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": all,
    "any": any,
    "len": len,
    "max": max,
    "min": min,
    "set": set,
    "sum": sum,
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


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that has been parsed and checked.

    Attributes:
        text: as it was written.
        tree: its syntax tree, in which only known names and operations occur.
    """

    text: str
    tree: ast.expr

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the condition holds for these values of its names."""
        try:
            return bool(_value(self.tree, values))
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
    _check(tree, text, names)
    return Condition(text, tree)


def _check(node: ast.AST, text: str, names: Collection[str], depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise ArgumentError(
            f"the condition {shortened(text)} is nested more than {_DEEPEST} deep; simplify it"
        )
    match node:
        case ast.Name(id=name) if name not in names:
            raise ArgumentError(
                f"unknown name {name!r} in the condition {text!r}; "
                f"the names are {', '.join(sorted(names))}"
            )
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            parts: list[ast.AST] = list(arguments)
        case ast.BinOp(op=op) if type(op) in _BINARY:
            parts = [node.left, node.right]
        case ast.UnaryOp(op=op) if type(op) in _UNARY:
            parts = [node.operand]
        case ast.Compare(ops=ops) if all(type(op) in _COMPARISONS for op in ops):
            parts = [node.left, *node.comparators]
        case ast.BoolOp(values=values):
            parts = list(values)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            parts = list(elements)
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=None)):
            parts = [value, *(end for end in (lower, upper) if end is not None)]
        case ast.Subscript(value=value, slice=index):
            parts = [value, index]
        case ast.Name() | ast.Constant(value=bool() | int() | float() | str() | None):
            parts = []
        case _:
            raise ArgumentError(
                f"the condition {text!r} contains {ast.unparse(node)!r}, which conditions do not "
                f"know: use comparisons, and/or/not, + - * // / %, indices and the functions "
                f"{', '.join(_FUNCTIONS)}"
            )
    for part in parts:
        _check(part, text, names, depth + 1)


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """The value of a node that `_check` has let pass."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, values) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_value(part, values) for part in parts)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            operands = [_value(part, values) for part in (left, *comparators)]
            return all(
                _COMPARISONS[type(op)](x, y)
                for op, x, y in zip(ops, operands, operands[1:], strict=False)
            )
        case ast.BinOp(left=left, op=op, right=right):
            numbers = _value(left, values), _value(right, values)
            if not all(isinstance(number, int | float) for number in numbers):
                raise TypeError("+ - * // / % are for numbers")
            return _BINARY[type(op)](*numbers)
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_value(operand, values))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*(_value(argument, values) for argument in arguments))
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper)):
            start, stop = (None if end is None else _value(end, values) for end in (lower, upper))
            return _value(value, values)[start:stop]
        case ast.Subscript(value=value, slice=index):
            return _value(value, values)[_value(index, values)]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return tuple(_value(element, values) for element in elements)
        case _:
            raise TypeError(f"{ast.unparse(node)} has no value")
