"""Readouts as networks: what probabilities and decisions see (readouts).

Probabilities see the differences of output coordinates. Without residual skip these are the outputs
of the network whose last width is one less: E V_l, with E taking differences, is any matrix of that
shape, and of that rank when it is factored. The functions of a network are a cone, since V_l may be
multiplied by any number, so decisions, which see them up to one constant, have one dimension less.
"""

from neuromanifold.architecture import Architecture, Readout
from neuromanifold.formula.all_widths import (
    rescalings,
    virtual_dimension,
    virtual_upper_bound,
)
from neuromanifold.statements import Facts


def narrowed(architecture: Architecture) -> Architecture:
    """The network whose outputs are the differences of this one's: its last width is one less."""
    widths = (*architecture.widths[:-1], architecture.widths[-1] - 1)
    return Architecture.from_dict({**architecture.to_dict(), "widths": widths})


def unshown_dimensions(architecture: Architecture, readout: Readout) -> int:
    """How many dimensions of the virtual weights the network proves not to show (virtual-bound).

    The families without scaling move no virtual weight, and scaling moves them by the rescalings;
    so virtual weights less rescalings less the bound is what their directions lose beyond that.
    With one output coordinate there are no differences, and all that is left is not shown.
    """
    if readout != "logits":
        if architecture.widths[-1] == 1:
            return architecture.parameters
        architecture = narrowed(architecture)
    facts, bound = Facts.of(architecture), virtual_upper_bound(architecture)
    return 0 if bound is None else virtual_dimension(facts) - rescalings(facts) - bound
