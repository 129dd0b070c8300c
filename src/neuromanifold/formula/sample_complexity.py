"""How many samples a network's function needs, as far as its dimension tells."""

from dataclasses import dataclass
from math import ceil, isfinite

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.formula.formula import DimensionFormula, dimension_formula


@dataclass(frozen=True, slots=True)
class SampleComplexity:
    """Numbers of samples, with what they assume.

    Attributes:
        formula: the dimension that was used, with its status and statement.
        equations_per_sample: the number t·d_l of real numbers in one output.
        least_samples: with fewer noiseless samples the function is not even locally determined.
        samples_for_excess: samples for the wanted excess error; None when none was given.
        assumptions: what the numbers above rest on, in words.
    """

    formula: DimensionFormula
    equations_per_sample: int
    least_samples: int | None
    samples_for_excess: int | None
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        if self.least_samples is None:
            return str(self.formula)
        noisy = ""
        if self.samples_for_excess is not None:
            noisy = f" and about {self.samples_for_excess} noisy ones for the wanted excess error"
        return (
            f"At least {self.least_samples} noiseless samples{noisy}, assuming that "
            f"{'; that '.join(self.assumptions)}. {self.formula}"
        )


def sample_complexity(architecture: Architecture, excess: float | None = None) -> SampleComplexity:
    """The numbers of samples that the dimension asks for (sample-complexity).

    A sample is one input with its output, t·d_l real numbers. N noiseless samples are N·t·d_l
    equations on a set of functions of dimension D, so at least D/(t·d_l) of them are needed to
    leave isolated solutions. With noise of variance σ² in every number, least squares has
    asymptotically the excess squared error D σ²/N at a smooth point (N samples, error summed over
    one output), so an excess of ε σ² takes about D/ε samples.

    Args:
        architecture: the network.
        excess: the wanted excess squared error ε, in units of the noise variance.
    """
    if excess is not None and not (isfinite(excess) and excess > 0):
        raise ArgumentError(f"excess must be positive and finite; got {excess}")
    formula = dimension_formula(architecture)
    equations = architecture.tokens * architecture.widths[-1]
    D = formula.dimension
    assumptions = [
        "inputs are generic",
        "the least number counts equations, and may be too small: several equations of one sample "
        "can depend on each other",
    ]
    if excess is not None:
        assumptions.append(
            "the noisy number is the limit of least squares for many samples, with independent "
            "noise, at a smooth point of the neuromanifold"
        )
    return SampleComplexity(
        formula=formula,
        equations_per_sample=equations,
        least_samples=None if D is None else -(-D // equations),
        samples_for_excess=None if D is None or excess is None else ceil(D / excess),
        assumptions=tuple(assumptions),
    )
