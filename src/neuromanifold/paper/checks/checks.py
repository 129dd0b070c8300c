"""The one list of checks, by statement id, in the order of the registry."""

from neuromanifold.paper.checks import (
    all_widths,
    bounds,
    composition,
    consensus,
    deep_dimensions,
    deep_fibers,
    exactness,
    finite_layers,
    gauge,
    key_query,
    layers,
    linear_forms,
    pictures,
    redundancy,
    single_dimension,
    singular_points,
    softmax_dimensions,
    softmax_fibers,
    unrolled,
    values,
    variations,
    virtual_weights,
)
from neuromanifold.paper.checks.evidence import Check
from neuromanifold.statements import STATEMENTS

_MODULES = (
    layers,
    composition,
    key_query,
    finite_layers,
    single_dimension,
    singular_points,
    linear_forms,
    virtual_weights,
    unrolled,
    deep_fibers,
    deep_dimensions,
    pictures,
    softmax_fibers,
    softmax_dimensions,
    consensus,
    all_widths,
    variations,
    bounds,
    values,
    redundancy,
    exactness,
    gauge,
)

_FOUND: dict[str, Check] = {
    id_: check for module in _MODULES for id_, check in module.CHECKS.items()
}

CHECKS: dict[str, Check] = {
    statement.id: _FOUND[statement.id] for statement in STATEMENTS if statement.id in _FOUND
}
"""A test asserts that no statement is left out, and no check is without a statement."""
