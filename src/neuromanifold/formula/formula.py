"""What theory says about the dimension of a network, and how it is known.

The value comes from the most specific statement whose hypotheses the network meets. Its status is
`theorem` when the network also meets the hypotheses of the theorem about fibers (eq-6) that makes
the count a proof (thm-3.2, thm-3.7, thm-3.9), and `conjecture` otherwise. Where no statement
applies there is no value: the answer is `none`, never a guess.
"""

from dataclasses import dataclass, replace

from neuromanifold.architecture import READOUTS, Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.formula.all_widths import matrices_of_rank, virtual_upper_bound
from neuromanifold.formula.heads import several_heads_dimension
from neuromanifold.formula.readouts import narrowed
from neuromanifold.statements import Facts, Status, applies, get, unmet

# The statements that give a dimension, the more specific before the more general.
_STATEMENTS = (
    "cor-3.3",
    "cor-3.8",
    "thm-3.9",
    "conj-3.10",
    "all-widths",
    "one-token",
    "causal-mask",
    "inner-skip",
    "residual-skip",
    "head-mixing",
)


@dataclass(frozen=True, slots=True)
class DimensionFormula:
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

    def to_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "dimension": self.dimension,
            "status": self.status,
            "statement": self.statement,
            "unmet": list(self.unmet),
        }


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
    facts = Facts.of(architecture)
    statement = next((name for name in _STATEMENTS if applies(get(name), facts)), None)
    if statement is None:
        return no_formula(*unmet(get(_nearest(facts)), facts))
    missing = unmet(get(_theorem(facts)), facts)
    return DimensionFormula(
        dimension=_dimension(statement, architecture),
        status="conjecture" if missing else "theorem",
        statement=statement,
        unmet=missing,
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


def _dimension(statement: str, architecture: Architecture) -> int | None:
    if statement == "head-mixing":
        return several_heads_dimension(architecture)
    if statement == "residual-skip":
        return _residual_skip_dimension(architecture)
    # With one head and no residual skip, each statement says that the virtual bound is reached
    # (all-widths, one-token, causal-mask, inner-skip).
    return virtual_upper_bound(architecture)


def _residual_skip_dimension(architecture: Architecture) -> int:
    """The layers' pairs (A_i, V_i), less a scaling each for lightning (residual-skip)."""
    d = architecture.widths[0]
    pairs = sum(matrices_of_rank(min(a, d), d, d) + d * d for a in architecture.ranks)
    return pairs - (architecture.depth if architecture.attention == "lightning" else 0)


def _theorem(facts: Facts) -> str:
    """The theorem about fibers that would make the count a proof."""
    if facts.attention == "softmax":
        return "thm-3.9"
    return "thm-3.2" if facts.depth == 1 else "thm-3.7"


def _nearest(facts: Facts) -> str:
    """The statement whose hypotheses explain why there is no formula.

    With one head and no skip some statement always applies: all-widths, causal-mask or one-token.
    """
    return "head-mixing" if facts.heads > 1 else f"{facts.skip}-skip"
