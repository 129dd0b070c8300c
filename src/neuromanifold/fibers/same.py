"""Whether two weights have the same function (eq-6).

*Same* needs a positive reason, *different* a difference that rounding does not explain, in what the
function determines; anything else is `undecided`. Outputs that agree are no reason: softmax layers
average what distinguishes two functions away until it is below rounding.

1. Invariants (`fibers.invariants`): the virtual weights, or the table of one lightning layer, each
   in scale-free form with its own noise. All agree: same. One that the function determines
   (`fibers.determined`) differs: different, by that theorem.
2. A symmetry that carries one to the other, found and measured: the residual is of the size of
   rounding, head by head, and what else can be compared is no further apart than 1/16 of its size.
3. Outputs at inputs that keep tokens apart: where they differ by more than rounding explains, the
   input is a witness, and the functions are different.
4. A proof for the floats as they are: equal invariants in whole numbers, or layers that are equal
   when both networks run side by side (`fibers.side_by_side`).

Nothing here depends on the order of the two weights, and all sizes are free of powers of two.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from neuromanifold.architecture import Architecture
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.agreement import LARGEST_TOLERANCE, UNDECIDED_FACTOR
from neuromanifold.fibers.evidence import Evidence, gather, side_by_side
from neuromanifold.fibers.outputs import (
    OutputDifference,
    Outputs,
    common_units,
    output_difference,
    outputs,
    random_inputs,
)
from neuromanifold.fibers.transport.transport import Transport, transport
from neuromanifold.fibers.units import InUnits, in_float64, unit_roundoff
from neuromanifold.networks.weights import Weights, replace_layers, scale_output

Verdict = Literal["same", "different", "undecided"]

_LARGEST_EXPONENT = 900  # in units numbers have size about one, and float64 ends at 2^1024


@dataclass(frozen=True, slots=True)
class Witness(Recorded):
    """An input at which two functions differ.

    Attributes:
        input: X, one token a column.
        first: φ(X) of the first weights.
        second: φ(X) of the second weights.
    """

    input: Float[np.ndarray, "d t"]
    first: Float[np.ndarray, "d_l t"]
    second: Float[np.ndarray, "d_l t"]
    _json = "input outputs"

    @property
    def outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """Both outputs."""
        return self.first, self.second


@dataclass(frozen=True, slots=True)
class Comparison(Displayed, Recorded):
    """Whether two weights have the same function, and how that is known.

    Attributes:
        verdict: `same`, `different` or `undecided`.
        reason: why they are the same, what differs, or why it cannot be told.
        statement: the id of the statement behind the reason, or None.
        compared: what `error` and `tolerance` are about: an invariant, weights or outputs.
        error: the distance there, relative to the size of what is compared.
        tolerance: the distance up to which rounding explains it.
        bound: the distance above which it does not.
        witness: an input at which the outputs differ by more than rounding explains, if one was
            found.
        transport: the symmetry that carries the first weights to the second, if one was found.
        tested: over which inputs outputs were compared, in words.
        inputs: how many these were.
        seed: the seed that they came from.
        exact: whether the floats were compared as the rationals they are.
    """

    verdict: Verdict
    reason: str
    statement: str | None
    compared: str
    error: float
    tolerance: float
    bound: float
    witness: Witness | None
    transport: Transport | None
    tested: str
    inputs: int
    seed: int
    exact: bool = False

    def __str__(self) -> str:
        word = {
            "same": "Same function",
            "different": "Different functions",
            "undecided": "Undecided",
        }[self.verdict]
        how = (
            f"{self.compared}: distance {self.error:.2g}, tolerance {self.tolerance:.2g}, "
            f"different from {self.bound:.2g} on; {self.tested}"
        )
        if self.exact:
            how = f"exact, the floats as they are; {self.tested}"
        return f"{word}: {self.reason} ({how})."


def same_function(
    first: Weights, second: Weights, *, inputs: int = 64, seed: int = 0, exact: bool = False
) -> Comparison:
    """Whether two weights have the same function (eq-6).

    The architectures may differ in ranks, inner widths, heads, factors of values and temperature;
    what the functions take and give, and the kind of attention, must agree.

    Args:
        first: weights W.
        second: weights W'.
        inputs: the number of random inputs to compare outputs at.
        seed: where they come from.
        exact: take the floats as the rationals they are, so that weights that are the same up to
            rounding only are different.
    """
    double = in_float64(first), in_float64(second)  # refuses what is no finite float
    _check_comparable(first, second)
    if exact:
        from neuromanifold.fibers.same_exact import compare_exactly

        return compare_exactly(*double, inputs=inputs, seed=seed)
    units = common_units(first, second)
    X = random_inputs((first.architecture, second.architecture), inputs, seed)
    whole = first.architecture.adds_input != second.architecture.adds_input
    at = [outputs(scaled, X, seed, whole=whole) for scaled in units]
    compared = output_difference(*at)
    evidence = gather(first, second, units)
    worst = compared.telling
    seen_to_differ = bool(compared.differences[worst] > compared.bounds[worst])
    found, forward = None, True
    if evidence.differ is None and not seen_to_differ:
        found, forward = _carried(first, second, units, also_back=evidence.equal is None)
    verdict, reason, statement = _decide(first, second, evidence, compared, found)
    witness = None
    if verdict != "same" and seen_to_differ:
        witness = _witness((first, second), at, X[worst], worst, units[0].input, whole=whole)
    about, error, tolerance = _measure(verdict, evidence, compared, found)
    return Comparison(
        verdict=verdict,
        reason=reason,
        statement=statement,
        compared=about,
        error=error,
        tolerance=tolerance,
        bound=UNDECIDED_FACTOR * tolerance,
        witness=witness,
        transport=found if verdict == "same" and found and forward else None,
        tested=_tested(first, inputs, seed),
        inputs=inputs,
        seed=seed,
    )


def _carried(
    first: Weights, second: Weights, units: tuple[InUnits, InUnits], *, also_back: bool
) -> tuple[Transport | None, bool]:
    """The symmetry between the weights, None if none was found, and whether it goes forward.

    The search starts from the first weights; if it fails, it starts from the second when that is
    still needed, since what one end hides in rounding the other may show; and then in units, in
    which no size is extreme.
    """
    unit = unit_roundoff(first, second)
    first, second = _at_one_temperature(first, second)
    if first.architecture != second.architecture:
        return None, True
    found = transport(first, second)
    if found.found or not also_back:
        return (found if found.found else None), True
    W, W_new = (one.weights for one in units)
    exponent = units[1].output - units[0].output
    finite = all(one.is_finite for one in units) and abs(exponent) < _LARGEST_EXPONENT
    if finite and W.architecture == W_new.architecture:
        W_new = scale_output(W_new, exponent)
        for pair in ((W, W_new), (W_new, W)):
            found = transport(*pair, unit=unit)
            if found.found:
                return found, False
    return None, False


def _decide(
    first: Weights,
    second: Weights,
    evidence: Evidence,
    compared: OutputDifference,
    found: Transport | None,
) -> tuple[Verdict, str, str | None]:
    """The verdict with its reason and statement, in the order of the module's docstring."""
    worst = compared.telling
    seen_to_differ = compared.differences[worst] > compared.bounds[worst]
    if evidence.differ is not None:
        if evidence.equal is not None:
            return "undecided", "the invariants contradict one another", None
        where = "" if seen_to_differ else ", though no input was found at which float64 shows it"
        return "different", f"{evidence.differ}{where}", evidence.statement
    if seen_to_differ:
        if evidence.equal is not None:
            return "undecided", "the invariants agree and the outputs differ", None
        return "different", evidence.largest or "the outputs at the witness differ", None
    telling = compared.bounds <= UNDECIDED_FACTOR * LARGEST_TOLERANCE * compared.sizes
    if found is not None and evidence.near and (bool(telling.any()) or evidence.compared):
        statement = "eq-9" if first.architecture.depth > 1 else "lemma-3.1"
        if found.element.mixes_heads:
            statement = "head-mixing"
        return "same", "a symmetry carries one to the other", statement
    reason = evidence.equal or gather(first, second).equal or side_by_side(first, second)
    if reason is not None:
        return "same", reason.text, reason.statement
    return "undecided", evidence.doubt, None


def _measure(
    verdict: Verdict, evidence: Evidence, compared: OutputDifference, found: Transport | None
) -> tuple[str, float, float]:
    """What the numbers of the answer are about, the distance, and the tolerance."""
    if evidence.compared and (verdict != "different" or evidence.differ is not None):
        telling = [
            one
            for one in evidence.compared
            if verdict == "same" or (one.differ if verdict == "different" else not one.agree)
        ]
        worst = max(telling or evidence.compared, key=lambda one: one.ratio)
        if found is None or verdict == "different" or worst.agree:
            return worst.name, worst.distance, worst.tolerance
    if verdict == "same" and found is not None:
        return "weights", found.residual, found.tolerance
    return "outputs", compared.agreement.distance, compared.agreement.tolerance


def _witness(
    pair: tuple[Weights, Weights],
    at: list[Outputs],
    X: Float[np.ndarray, "d t"],
    number: int,
    s: int,
    *,
    whole: bool,
) -> Witness:
    """The input with both outputs in the units of the user.

    Lightning without skip is homogeneous: there the input takes the size at which both outputs are
    floats. A residual skip adds the input that was left out.
    """
    exponents = [int(part.exponents[number]) for part in at]
    if all(w.architecture.is_homogeneous for w in pair):
        degree = 3 ** pair[0].architecture.depth
        s = -round(max(exponents) / degree)
        exponents = [exponent + s * degree for exponent in exponents]
    with np.errstate(over="ignore", under="ignore"):
        X = np.ldexp(X, s)
        shown = [
            np.ldexp(part.values[number], exponent)
            for part, exponent in zip(at, exponents, strict=True)
        ]
    for k, w in enumerate(pair):
        if w.architecture.adds_input and not whole:
            shown[k] = shown[k] + X
    return Witness(X, *shown)


def _tested(weights: Weights, inputs: int, seed: int) -> str:
    kind = "of one size"
    if not weights.architecture.is_homogeneous:
        kind = "from 1/8 to 16 times the size at which the first layer has scores of size one"
    return f"outputs at {inputs} random inputs, {kind}, seed {seed}"


def _at_one_temperature(first: Weights, second: Weights) -> tuple[Weights, Weights]:
    """Both weights with the first one's temperature, the keys of the second scaled to fit."""
    one, other = first.architecture, second.architecture
    if one.temperature == other.temperature:
        return first, second
    ratio = one.temperature / other.temperature
    keys = [np.asarray(layer.key) for layer in second.layers]
    fitted = replace_layers(second, [{"key": (K * ratio).astype(K.dtype)} for K in keys])
    return first, Weights(fitted.layers, replace(other, temperature=one.temperature))


def _face(architecture: Architecture) -> dict[str, object]:
    """What two networks must share for their functions to be compared."""
    return {
        "input width": architecture.widths[0],
        "output width": architecture.widths[-1],
        "tokens": architecture.tokens,
        "attention": architecture.attention,
        "mask": architecture.mask,
    }


def _check_comparable(first: Weights, second: Weights) -> None:
    faces = _face(first.architecture), _face(second.architecture)
    for name, one, other in zip(faces[0], *map(dict.values, faces), strict=True):
        if one != other:
            raise ArgumentError(
                f"functions of the same kind were wanted; got {name} {one} and {other}: compare "
                "weights whose input width, output width, tokens, attention and mask agree"
            )
