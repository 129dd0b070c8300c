"""Transport: the group element that carries one weights to another (lemma-3.1, lemma-3.5, eq-13).

Layer by layer. Suppose bases B and B' = C_{i-1} B of what layers before i can output are known for
both weights (B = 1 at the input). Then

1. the forms M_h = Bᵀ A_h B of the two weights agree up to the order of the heads and their
   scalings: this gives σ and λ. Where C_{i-1} is known, A_h is carried to the second weights'
   coordinates instead: B' undoes there what K' and Q' have of the condition of C_{i-1}, and the
   cancellation would cost λ as many digits;
2. the outputs B_i = (V_σ(h) B / λ_h)_h and B_i' = (V'_h B')_h satisfy B_i' = C_i B_i: least squares
   gives C_i on the image of B_i, which is everything when B_i has full row rank d_i, as it has
   behind a bottleneck when L has full rank (lemma-3.5). Otherwise C_i is not unique: `wide` finds
   one;
3. with σ, λ and all C_i undone, the remaining factors C of keys and queries, and of values and
   outputs, are those of lemma-3.1.

Where heads mix (head-mixing) and no order of them will do, or none that a path leads to, the first
weights' heads are mixed before: A_h' = Σ_k g_hk A_k is linear in g.

No matrix is inverted: C_i comes from a singular value decomposition of B_i alone. The steps of
`refine` then take away what ill-conditioned weights have made of rounding errors.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from neuromanifold.architecture import Architecture
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.normal_form.factors import match_factors, numeric_rank
from neuromanifold.fibers.transport.matching import match_heads, scale_factor
from neuromanifold.fibers.transport.refine import refine
from neuromanifold.fibers.transport.wide import Alignment, complete_interfaces
from neuromanifold.fibers.units import in_float64, in_units, unit_roundoff
from neuromanifold.networks.family import Element
from neuromanifold.networks.weights import Layer, Weights
from neuromanifold.symmetry.attention import named
from neuromanifold.symmetry.group_element import GroupElement, parts_of
from neuromanifold.symmetry.heads import HeadMixing

Reach = Float[np.ndarray, "d r"]

_STORED, _COMPUTED = 4.0, 16.0
_ROUNDING = 1e-14
_MIXED = 2.0**-40  # what is lost where a matrix of keys is inverted
_STEPS = 30
_LARGEST = 2.0**-16
"""A residual above this was not made by computing, whatever the condition of the element."""


@dataclass(frozen=True, slots=True)
class Transport(Displayed, Recorded):
    """A group element, and how well it carries the first weights to the second.

    Attributes:
        element: the group element g.
        residual: the largest ‖g·W − W'‖ / ‖W'‖ among the heads of all tensors, in units in which
            their rows have size one.
        tolerance: the residual that rounding explains: a few times the unit roundoff of the
            weights' dtype, with which W' was stored, and that of float64 times the condition of g,
            with which W' was computed, unless that could explain just any residual.
        choices: where g was not unique, and how many parameters were free.
    """

    element: GroupElement
    residual: float
    tolerance: float
    choices: tuple[str, ...]
    _json = "found unique residual tolerance condition=element.condition choices"

    @property
    def found(self) -> bool:
        """Whether g carries the first weights to the second up to rounding."""
        return self.residual <= self.tolerance

    @property
    def unique(self) -> bool:
        """Whether no other group element does the same."""
        return not self.choices

    def __str__(self) -> str:
        if not self.found:
            return (
                "No symmetry was found that carries the first weights to the second: the best one "
                f"leaves a residual of {self.residual:.2g} (tolerance {self.tolerance:.2g})."
            )
        kind = "the only one" if self.unique else f"one of many ({'; '.join(self.choices)})"
        return (
            f"A symmetry carries the first weights to the second, {kind}, "
            f"with residual {self.residual:.2g} (tolerance {self.tolerance:.2g})."
        )


def transport(first: Weights, second: Weights, *, unit: float | None = None) -> Transport:
    """The group element that carries `first` to `second` (lemma-3.1, lemma-3.5, eq-13).

    It always answers; whether the element does what is asked is in `found` and `residual`.

    Args:
        first: weights W.
        second: weights W' of the same architecture.
        unit: the unit roundoff with which the weights were stored; by default that of their dtype.
    """
    W, W_new = in_float64(first), in_float64(second)
    if first.architecture != second.architecture:
        raise ArgumentError(
            "two weights of one architecture were wanted; got "
            f"{first.architecture.name} and {second.architecture.name}"
        )
    unit = unit_roundoff(first, second) if unit is None else unit
    with np.errstate(all="ignore"):  # what overflows is found by the residual
        best = _measured(_ordered_heads, W, W_new, unit)
        if "head_mixing" in parts_of(W.architecture) and (
            not best.found or best.element.component()
        ):
            mixed = _measured(_mixed_heads, W, W_new, unit)
            best = mixed if mixed.found else best
    return best


def _measured(
    search: Callable[[Weights, Weights], tuple[GroupElement, tuple[str, ...]]],
    W: Weights,
    W_new: Weights,
    unit: float,
) -> Transport:
    """The element that a search finds, refined, with its residual."""
    try:
        element, choices = search(W, W_new)
        element, residual = _refined(element, W, W_new)
    except (np.linalg.LinAlgError, ArgumentError):
        element, choices = GroupElement.identity(W.architecture), ()
        residual = _residual(W, W_new)
    computed = _COMPUTED * float(np.finfo(np.float64).eps) * element.condition
    tolerance = _STORED * unit + (computed if computed <= _LARGEST else 0.0)
    return Transport(element, residual, tolerance, choices)


def _mixed_heads(W: Weights, W_new: Weights) -> tuple[GroupElement, tuple[str, ...]]:
    """The element that first mixes heads, where A_h' = Σ_k g_hk A_k has a solution (head-mixing).

    What is mixed must have the products that g asks for: keys that are singular do not allow it.
    """
    architecture = W.architecture
    mixing = HeadMixing(architecture, architecture.adds_values)
    B = B_new = np.eye(architecture.widths[0])
    C: np.ndarray | None = None
    found: list[np.ndarray] = []
    choices: list[str] = []
    layers: list[tuple[np.ndarray, np.ndarray]] = []
    for i, (layer, layer_new) in enumerate(zip(W.layers, W_new.layers, strict=True)):
        forms, new_forms = _forms(layer, layer_new, B, B_new, C)
        g = mixing.nearest(forms, new_forms)
        rank = numeric_rank(np.linalg.svd(forms.reshape(len(g), -1), compute_uv=False))
        if rank < len(g):
            choices.append(f"head mixing of layer {i}: {len(g) * (len(g) - rank)} free parameters")
        A = np.einsum("hk,kij->hij", g, np.asarray(layer.attention_matrices()))
        V = np.einsum("kh,kij->hij", np.linalg.inv(g), np.asarray(layer.value_maps()))
        found.append(g)
        layers.append((A, V))
        if not _is_pinned(architecture, i):
            B, B_new, C = _image(V @ B, np.asarray(layer_new.value_maps()) @ B_new)
    mixed = Weights.from_named(architecture, mixing.act(tuple(found), named(W)))
    for layer, (A, V) in zip(mixed.layers, layers, strict=True):
        for came, wanted in ((layer.attention_matrices(), A), (layer.value_maps(), V)):
            if not np.linalg.norm(np.asarray(came) - wanted) <= _MIXED * np.linalg.norm(wanted):
                raise np.linalg.LinAlgError("the factors do not allow the mixing")
    element, others = _ordered_heads(mixed, W_new)
    return replace(element, head_mixing=tuple(found)), (*choices, *others)


def _ordered_heads(W: Weights, W_new: Weights) -> tuple[GroupElement, tuple[str, ...]]:
    """Steps 1 to 3, and where the element was not unique."""
    alignments = _align(W, W_new)
    interfaces, choices = complete_interfaces(W, W_new, alignments)
    element = _element(W.architecture, alignments, interfaces)
    element, free = _with_factors(element, W, W_new)
    return element, (*choices, *free)


def _align(W: Weights, W_new: Weights) -> list[Alignment]:
    """Steps 1 and 2 for every layer: σ, λ, and C_i where the outputs determine it."""
    architecture = W.architecture
    B = B_new = np.eye(architecture.widths[0])
    C: np.ndarray | None = None
    alignments = []
    for i, (layer, layer_new) in enumerate(zip(W.layers, W_new.layers, strict=True)):
        pinned = _is_pinned(architecture, i)
        V, V_new = np.asarray(layer.value_maps()) @ B, np.asarray(layer_new.value_maps()) @ B_new
        forms = _forms(layer, layer_new, B, B_new, C)
        order, factors = _heads(forms, (V, V_new) if pinned else None, architecture)
        if pinned:
            alignments.append(Alignment(order, factors, B, B_new, None))
            continue
        image, image_new, C = _image(V[order] / factors[:, None, None], V_new)
        alignments.append(Alignment(order, factors, B, B_new, C))
        B, B_new = image, image_new
    return alignments


def _is_pinned(architecture: Architecture, i: int) -> bool:
    """Whether nothing may change the coordinates behind layer i."""
    return i == architecture.depth - 1 or architecture.adds_input


def _image(V: np.ndarray, V_new: np.ndarray) -> tuple[Reach, Reach, np.ndarray | None]:
    """Bases B and B' = C B of what the heads put out, and C where they determine it (step 2)."""
    outputs = np.hstack(list(V))
    U, S, Wt = np.linalg.svd(outputs, full_matrices=False)
    r = numeric_rank(S)
    image, image_new = U[:, :r], np.hstack(list(V_new)) @ Wt[:r].T / S[:r]
    return image, image_new, image_new @ image.T if r == len(outputs) else None


def _forms(
    layer: Layer, layer_new: Layer, B: Reach, B_new: Reach, C: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The forms of all heads of the two layers in shared coordinates, as in step 1."""
    K, Q, K_new, Q_new = (
        np.asarray(T) for T in (layer.key, layer.query, layer_new.key, layer_new.query)
    )
    if C is None:
        return (K @ B).mT @ (Q @ B), (K_new @ B_new).mT @ (Q_new @ B_new)
    K, Q = (np.linalg.solve(C.T, T.mT).mT for T in (K, Q))
    return K.mT @ Q, K_new.mT @ Q_new


def _heads(
    forms: tuple[np.ndarray, np.ndarray],
    values: tuple[np.ndarray, np.ndarray] | None,
    architecture: Architecture,
) -> tuple[Int[np.ndarray, " head"], Float[np.ndarray, " head"]]:
    """σ and λ of one layer from the forms in shared coordinates, and the values where shared."""
    scaled = architecture.trades_scale
    M, M_new = forms
    V, V_new = values if values is not None else (None, None)
    order = match_heads(M, M_new, V, V_new, scaled=scaled)
    factors = np.ones(len(order))
    if scaled:
        factors = np.array([scale_factor(M[k], M_new[h]) for h, k in enumerate(order)])
    return order, factors


def _element(
    architecture: Architecture, alignments: list[Alignment], interfaces: Element
) -> GroupElement:
    """The element found so far; key-query and value-output are still 1."""
    found = {
        "head_permutation": tuple(alignment.order for alignment in alignments),
        "scaling": tuple(alignment.factors for alignment in alignments),
        "inter_layer": interfaces,
    }
    parts = {
        name: found[name] if name in found else family.identity()
        for name, family in parts_of(architecture).items()
    }
    return GroupElement(architecture, **parts)


def _with_factors(
    element: GroupElement, W: Weights, W_new: Weights
) -> tuple[GroupElement, tuple[str, ...]]:
    """Step 3: the element with the factors of lemma-3.1, and where they were not unique."""
    moved = element.act(W)
    choices: list[str] = []
    found: dict[str, list[np.ndarray]] = {"key-query": [], "value-output": []}
    for i, (layer, layer_new) in enumerate(zip(moved.layers, W_new.layers, strict=True)):
        pairs = {"key-query": (layer.key, layer.query, layer_new.key, layer_new.query)}
        if layer.output is not None and layer_new.output is not None:
            pairs["value-output"] = (
                layer.value,
                layer.output.mT,
                layer_new.value,
                layer_new.output.mT,
            )
        for name, tensors in pairs.items():
            matches = [
                match_factors(*heads) for heads in zip(*map(np.asarray, tensors), strict=True)
            ]
            found[name].append(np.stack([match.matrix for match in matches]))
            choices += [
                f"{name} of layer {i} head {h}: {match.free} free parameters"
                for h, match in enumerate(matches)
                if match.free
            ]
    complete = replace(
        element,
        value_output=tuple(found["value-output"]),
        key_query=tuple(found["key-query"]),
    )
    return complete, tuple(choices)


def _refined(element: GroupElement, W: Weights, W_new: Weights) -> tuple[GroupElement, float]:
    """The element after steps of `refine`, as long as they halve the residual."""
    residual = _residual(element.act(W), W_new)
    for _ in range(_STEPS):
        if not _ROUNDING < residual < np.inf:
            break
        try:
            candidate = refine(element, W, W_new)
            improved = _residual(candidate.act(W), W_new)
        except np.linalg.LinAlgError:
            break
        if not improved < residual / 2:
            break
        element, residual = candidate, improved
    return element, residual


def _residual(moved: Weights, wanted: Weights) -> float:
    """The largest relative error of a head; where it should be 0 only 0 has none.

    Both are taken in the units of W', in which a small row counts as much as a large one.
    """
    worst, units = 0.0, in_units(wanted)
    for layer, goal, shifts in zip(moved.layers, units.weights.layers, units.shifts, strict=True):
        for name, T_new in goal.arrays().items():
            T = np.ldexp(np.asarray(layer.tensors()[name]), shifts[name])
            errors = np.linalg.norm(T - T_new, axis=(1, 2))
            with np.errstate(all="ignore"):
                relative = np.where(errors == 0, 0.0, errors / np.linalg.norm(T_new, axis=(1, 2)))
            worst = max(worst, float(np.where(np.isnan(relative), np.inf, relative).max()))
    return worst
