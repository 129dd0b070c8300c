"""All families of a network: its changes of basis first, then its other symmetries."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.family import Family, GeneratorBlock, Tensors
from neuromanifold.networks.function import function_network
from neuromanifold.networks.network import Network
from neuromanifold.networks.space import ledger_lines
from neuromanifold.symmetry.attention import attention_network
from neuromanifold.symmetry.change_of_basis import ChangeOfBasis
from neuromanifold.symmetry.one_parameter import Action, given


def families_of(network: Network) -> tuple[Family, ...]:
    """The families of a network, in the order in which a ledger counts them.

    What two families share counts for the first.
    """
    lines = ledger_lines(network.spaces).items()
    changes = [ChangeOfBasis(line, spaces, network) for line, spaces in lines]
    return (*changes, *network.families)


def all_generators(
    network: Network, weights: Tensors, linear: LinearAlgebra
) -> list[GeneratorBlock]:
    """The tangent vectors of all families, family by family."""
    return [
        block for family in families_of(network) for block in family.generators(weights, linear)
    ]


def network(
    f: Any,
    weights: Any = None,
    inputs: Any = None,
    *,
    symmetries: Sequence[Action] = (),
    readout: Readout = "logits",
    **declared: Any,
) -> Network:
    """The network of a JAX function, or of an architecture.

    >>> import jax.numpy as jnp
    >>> from neuromanifold.networks.space import Space
    >>> from neuromanifold.symmetry.groups import GL
    >>> hidden = Space("hidden", 2, GL(2))
    >>> x, y = Space("input", 3), Space("output", 1)
    >>> net = network(
    ...     lambda w, x: w["out"] @ w["in"] @ x,
    ...     {"in": jnp.zeros((2, 3)), "out": jnp.zeros((1, 2))},
    ...     jnp.zeros(3),
    ...     spaces={"in": (hidden, x.dual), "out": (y, hidden.dual)},
    ... )
    >>> net.parameters, [family.name for family in families_of(net)]
    (8, ['hidden'])

    Args:
        f: the function of weights and one input; an `Architecture` needs nothing else.
        weights: any pytree with the shapes of the weights; modules of Equinox and Flax are such.
        inputs: a pytree with the shapes of one input.
        symmetries: one-parameter actions (s, weights) ↦ weights, the identity at s = 0.
        readout: what is looked at of an architecture's output.
        **declared: `spaces`, `absorbs`, `families`, `name`, `bound` of `function_network`.
    """
    if isinstance(f, Network):
        if readout not in ("logits", f.readout):
            raise ArgumentError(
                f"a readout is for an architecture, and {f.name} is looked at as it is: let the "
                f"function itself return what {readout} see, such as the differences of outputs"
            )
        return f
    if isinstance(f, Architecture):
        return attention_network(f, readout)
    if not callable(f):
        raise ArgumentError(
            f"a network is made of a function f(weights, X), got {type(f).__name__}; for an "
            "architecture give an Architecture"
        )
    if callable(symmetries):
        raise ArgumentError("symmetries are a list of functions (s, weights) ↦ weights; got one")
    made = function_network(f, weights, inputs, **declared)
    return replace(made, families=(*made.families, *given(symmetries, made)))
