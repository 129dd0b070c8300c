"""What theory says about the dimension of a network, and how it is known.

The value comes from the first statement in `_STATEMENTS` whose hypotheses the network meets:
theorems before conjectures, the more specific before the more general. Where no statement applies
there is no value: the answer is `none`, never a guess.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from neuromanifold.architecture import READOUTS, Architecture
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.formula.all_widths import virtual_upper_bound
from neuromanifold.formula.heads import linear_maps, pairs_dimension
from neuromanifold.formula.layers import layers_bound
from neuromanifold.formula.readouts import narrowed
from neuromanifold.statements import Status, applies, get, unmet


def _residual_lightning(architecture: Architecture) -> int:
    """The layers' pairs (A_i, V_i), less a scaling each (residual-skip)."""
    return pairs_dimension(architecture) - architecture.depth


# The statements that give a dimension, and how. With one head and no residual skip each says that
# the bound of the virtual weights is reached (virtual-bound).
_STATEMENTS: dict[str, Callable[[Architecture], int | None]] = {
    "cor-3.3": virtual_upper_bound,
    "cor-3.8": virtual_upper_bound,
    "all-widths": virtual_upper_bound,
    "one-token": virtual_upper_bound,
    "causal-mask": virtual_upper_bound,
    "inner-skip": virtual_upper_bound,
    "thm-3.9": virtual_upper_bound,
    "conj-3.10": virtual_upper_bound,
    "softmax-dimension": virtual_upper_bound,
    "softmax-one-token": linear_maps,
    "softmax-residual": layers_bound,
    "softmax-layer": layers_bound,
    "softmax-heads-bottleneck": layers_bound,
    "softmax-heads": layers_bound,
    "residual-skip": _residual_lightning,
    "head-mixing": layers_bound,
}


@dataclass(frozen=True, slots=True)
class DimensionFormula(Displayed, Recorded):
    """A dimension in theory.

    Attributes:
        dimension: the dimension, or None where nothing is known.
        status: `theorem`, `conjecture`, or `none` where nothing is known.
        statement: the id of the statement that gives the dimension, or None.
        unmet: for a conjecture, the hypotheses that keep it from being a theorem; for `none`, those
            that keep the nearest statement from applying; empty for a theorem.
    """

    dimension: int | None
    status: Status
    statement: str | None
    unmet: tuple[str, ...]

    def __str__(self) -> str:
        why = "; ".join(self.unmet)
        if self.dimension is None:
            return f"No formula for the dimension is known here: {why}."
        if self.status == "theorem":
            return f"The dimension is {self.dimension} (theorem, {self.statement})."
        return (
            f"The dimension is {self.dimension} (conjecture, {self.statement}; "
            f"not a theorem because {why})."
        )

    def _repr_latex_(self) -> str:
        """The dimension as a formula."""
        value = r"\text{unknown}" if self.dimension is None else str(self.dimension)
        source = (
            "" if self.statement is None else rf"\quad\text{{({self.status}, {self.statement})}}"
        )
        return rf"$\dim = {value}{source}$"


def dimension_formula(architecture: Architecture, readout: str = "logits") -> DimensionFormula:
    """The dimension of the neuromanifold, as far as theory knows it (all-widths).

    Args:
        architecture: the network.
        readout: one of `READOUTS`, what of the output counts (readouts).

    >>> print(dimension_formula(Architecture(widths=(4, 2, 3), ranks=(2, 2), tokens=3)))
    The dimension is 24 (theorem, cor-3.8).
    """
    if readout not in READOUTS:
        raise ArgumentError(f"readout must be one of {', '.join(READOUTS)}; got {readout!r}")
    if readout != "logits":
        return _of_differences(architecture, readout)
    statement = next((name for name in _STATEMENTS if applies(get(name), architecture)), None)
    if statement is None:
        return no_formula(*unmet(get(_nearest(architecture)), architecture))
    status = get(statement).status
    return DimensionFormula(
        dimension=_STATEMENTS[statement](architecture),
        status=status,
        statement=statement,
        unmet=() if status == "theorem" else unmet(get(_theorem(architecture)), architecture),
    )


def no_formula(*reasons: str) -> DimensionFormula:
    """The answer where nothing is known, with the reasons."""
    return DimensionFormula(dimension=None, status="none", statement=None, unmet=reasons)


def _of_differences(architecture: Architecture, readout: str) -> DimensionFormula:
    """The dimension of probabilities or decisions (readouts)."""
    if architecture.widths[-1] == 1:
        return DimensionFormula(dimension=0, status="theorem", statement="readouts", unmet=())
    if architecture.skip == "residual":
        return no_formula(f"skip = residual, with readout {readout}")
    logits = dimension_formula(narrowed(architecture))
    if logits.dimension is None:
        return logits
    dimension = logits.dimension - (readout == "decisions")
    return replace(logits, dimension=dimension, statement="readouts")


def _theorem(architecture: Architecture) -> str:
    """The theorem that a conjecture falls short of."""
    if architecture.attention == "softmax":
        return "softmax-heads" if architecture.is_plain else "softmax-heads-bottleneck"
    return "all-widths"


def _nearest(architecture: Architecture) -> str:
    """The statement whose hypotheses explain why there is no formula.

    With one head and no residual skip some statement always applies.
    """
    if architecture.attention == "softmax" and architecture.skip == "residual":
        return "softmax-residual"
    return "head-mixing" if architecture.heads > 1 else "residual-skip"
