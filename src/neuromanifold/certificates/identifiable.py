"""Identifiability: is a quantity of the weights determined by the network's function?

Let J be the Jacobian of W ↦ φ_W at generic weights and g a quantity with gradient ∇g. Locally the
weights with the same function form a manifold with tangent space ker J, so g is a function of φ_W
near W if and only if ∇g vanishes on ker J: if the rank of J does not grow when ∇g is added to its
rows. Both ranks are taken mod p at a random point (field-rank, softmax-exact).

What is proved. "No" is, in two cases. A proved symmetry's tangent vector v has ∇g·v ≠ 0 mod p: then
∇g·v is not identically zero, and g changes along orbits on which the function does not. Or the rank
with ∇g, a lower bound of the generic rank of both together, exceeds a proved upper bound of the
dimension. "Yes" rests on the random point: a rank can be smaller there than generically, with a
chance of about degree/p. Where formal elements are not shown to be independent the ranks say
nothing, and only a symmetry answers.

At given weights the same is asked to first order: does ∇g vanish on ker J there? "No" is proved in
the same two cases, for the floats as they are: tangent vectors and ranks are those at these
weights, with what is free there alone (softmax-fibers). A symmetry that moves g changes it along
weights with the same function; a kernel direction that no symmetry explains says so to first order
only. "Yes" rests on the prime and on the random inputs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.modular import Obligation, rows_over_prime_field
from neuromanifold.algebra.modular.tracing import output_of
from neuromanifold.algebra.prime_field import DEFAULT_PRIME, PrimeField
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.exact import (
    certificate_field,
    check_kernel,
    given_weights,
    upper_bound,
    weights_hash,
)
from neuromanifold.certificates.jacobian import settled_rank
from neuromanifold.certificates.point import Point, in_shown_cells
from neuromanifold.certificates.quantity import Quantity, parse_quantity
from neuromanifold.certificates.symmetry_bound import known_generators, known_kernel
from neuromanifold.certificates.virtual_rank import at_weights
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.family import GeneratorBlock, Tensors
from neuromanifold.networks.network import Network
from neuromanifold.symmetry.families import network


@dataclass(frozen=True, slots=True)
class Identifiability(Recorded, Displayed):
    """Whether a quantity is determined by the function, with the ranks that say so.

    Attributes:
        architecture: the attention network, or None for another one.
        subject: the name of the network.
        readout: what is looked at of its output.
        quantity: the name of the quantity.
        answer: `yes` when the function determines it locally at generic weights, or to first order
            at the given ones, else `no`.
        proved: whether the answer is proved; if not, it holds with a chance of about 1 − degree/p.
        weights: the hash of the given weights, None at generic ones.
        moved_by: the families of symmetries that change the quantity.
        rank: the rank of the Jacobian.
        rank_with: the rank with the quantity's gradient added.
        upper: the proved upper bound of the first rank.
        obligations: what has to be shown for formal elements, with the ranks that show it.
        prime: the prime p.
        seed: the seed of the point.
        inputs: the number of inputs.
    """

    _json = (
        "architecture subject readout quantity identifiable=answer proved weights moved_by rank "
        "rank_with upper independence prime seed inputs"
    )

    architecture: Architecture | None
    subject: str
    readout: Readout
    quantity: str
    answer: Literal["yes", "no"]
    proved: bool
    weights: str | None
    moved_by: tuple[str, ...]
    rank: int
    rank_with: int
    upper: int
    obligations: tuple[Obligation, ...]
    prime: int
    seed: int
    inputs: int

    def __str__(self) -> str:
        subject = f"{self.quantity} of {self.subject}"
        seen = "function" if self.readout == "logits" else self.readout
        how = (
            f"rank {self.rank}, {self.rank_with} with its gradient; prime {self.prime}, "
            f"seed {self.seed}"
        )
        drawn = "a random point" if self.weights is None else "random inputs"
        known = "proved" if self.proved else f"at {drawn}, not proved"
        where = "" if self.weights is None else " to first order at the given weights"
        if self.answer == "yes":
            local = where or " locally"
            return f"{subject} is determined{local} by the {seen} ({known}; {how})."
        cause = f": moved by {' and '.join(self.moved_by)}" if self.moved_by else ""
        return f"{subject} is not determined{where} by the {seen}{cause} ({known}; {how})."

    @property
    def independence(self) -> dict[str, int] | None:
        """The obligation of exponentials and logarithms as JSON values, or None without any."""
        named = [o for o in self.obligations if o.name.startswith("exponentials")]
        return {"columns": named[0].columns, "rank": named[0].rank} if named else None


def identifiable(
    subject: Network | Architecture,
    quantity: Quantity | str,
    *,
    seed: int = 0,
    prime: int = DEFAULT_PRIME,
    readout: Readout = "logits",
    name: str | None = None,
    weights: Any = None,
) -> Identifiability:
    """Say whether the network's function determines a quantity, at generic or at given weights.

    At generic weights: locally. At given weights: to first order, that is whether every direction
    in which the function's derivative vanishes there leaves the quantity alone. A "no" is proved
    when a proved symmetry moves the quantity or the ranks exceed a proved bound; a "yes" rests on
    what is drawn, and so does all that a user has said of a network of their own.

    >>> net = Architecture(widths=(3, 2), ranks=(2,), tokens=3)
    >>> print(identifiable(net, lambda w: w.layers[0].attention_matrices()[0, 0, 1], name="A_01"))
    A_01 of lightning 3-2 ranks 2 tokens 3 is not determined by the function: moved by scaling \
(proved; rank 13, 14 with its gradient; prime 8388593, seed 0).

    Args:
        subject: the network, or an architecture.
        quantity: a JAX function of the weights, rational, with a number or an array as its value,
            or a text like "A.0[0,0,1]" (`parse_quantity`).
        seed: of the random point.
        prime: p, between 2^20 and 2^23.
        readout: what is looked at of an architecture's output (readouts).
        name: how the answer calls the quantity.
        weights: ask here instead of at generic weights.
    """
    net, field = at_weights(network(subject, readout=readout), weights), certificate_field(prime)
    given = None if weights is None else given_weights(net, weights)
    if isinstance(quantity, str):
        text, quantity = parse_quantity(quantity, net)
        name = name or text
    if not callable(quantity):
        raise ArgumentError(
            'a quantity is a function of the weights, or a text like "A.0[0,0,1]"; got '
            f"{type(quantity).__name__}"
        )
    gradients = _gradients(quantity, net)
    called = name or getattr(quantity, "__name__", "quantity")

    def compute(point: Point) -> Identifiability:
        at = net.assemble(point.weights)
        blocks = list(known_generators(net, at, field))
        kernel = known_kernel(net, at, field, seed)
        upper, _ = upper_bound(net, kernel.families)
        found = settled_rank(net.bare, point, upper, kernel.checks)
        check_kernel(net, found, kernel)
        rows = gradients(field, at)
        grown = found.row_space.add(rows)
        checks = point.obligations(net.bare, found.batch)
        beyond = found.rank + grown > upper + len(net.constants)
        moved_by = _moved_by(blocks, rows, net, field)
        # What a user says of a network is seen at random points only, and proves nothing.
        shown = bool(moved_by) or (beyond and all(check.met for check in checks))
        return Identifiability(
            architecture=net.architecture,
            subject=net.name,
            readout=net.readout,
            quantity=called,
            answer="no" if grown else "yes",
            proved=net.is_built_in and shown,
            weights=None if weights is None else weights_hash(net, weights),
            moved_by=moved_by,
            rank=found.rank,
            rank_with=found.rank + grown,
            upper=upper + len(net.constants),
            obligations=checks,
            prime=prime,
            seed=seed,
            inputs=found.inputs,
        )

    found = in_shown_cells(net, field, seed, compute, lambda one: one.obligations, given)
    if not found.moved_by:
        _check(found.obligations, called, net)
    return found


def _check(obligations: tuple[Obligation, ...], quantity: str, net: Network) -> None:
    """Refuse to answer by ranks where formal elements may satisfy relations that are not known."""
    unmet = [f"{o.name}: rank {o.rank} of {o.columns}" for o in obligations if not o.met]
    if unmet:
        raise NotCoveredError(
            f"whether {net.name} determines {quantity} is not known: what stands for formal "
            f"functions in it was not shown to be independent ({'; '.join(unmet)})"
        )


def _gradients(
    quantity: Quantity, net: Network
) -> Callable[[PrimeField, Tensors], Float[np.ndarray, "entries columns"]]:
    """The gradients of a quantity's entries, as a function on residues."""
    shapes = net.shapes[0]

    def entries(named: Any, _: Any) -> Any:
        return jax.tree.map(jnp.ravel, quantity(net.rebuilt(named)))

    output = output_of(entries, (shapes, ()))
    if not isinstance(output, jax.ShapeDtypeStruct) or not output.size:
        raise ArgumentError(
            "a quantity is a function of the weights whose value is a real number or array; "
            f"got {getattr(output, 'shape', type(output).__name__)}"
        )
    program = rows_over_prime_field(entries, shapes, (), output.size, output)
    if program.formals or program.maxima:
        raise ArgumentError(
            "a quantity must be a rational function of the weights; this one has exponentials, "
            "roots or maxima: ask for their arguments instead"
        )
    return lambda field, at: net.rows(program(field, dict(at), (), np.eye(output.size)))


def _moved_by(
    blocks: list[GeneratorBlock],
    rows: Float[np.ndarray, "entries columns"],
    net: Network,
    field: PrimeField,
) -> tuple[str, ...]:
    """The families with a tangent vector on which a gradient does not vanish, in their order."""
    moving = [
        block.family
        for block in blocks
        if np.any(field.matmul(net.dense(block), np.ascontiguousarray(rows.T)))
    ]
    return tuple(dict.fromkeys(moving))
