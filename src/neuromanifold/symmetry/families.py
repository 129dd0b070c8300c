"""The list of all families, and their tangent vectors together."""

from neuromanifold.algebra.linear import LinearAlgebra
from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.family import Family, GeneratorBlock
from neuromanifold.symmetry.head_mixing import HeadMixing
from neuromanifold.symmetry.head_permutation import HeadPermutation
from neuromanifold.symmetry.inter_layer import InterLayer
from neuromanifold.symmetry.key_query import KeyQuery
from neuromanifold.symmetry.scaling import Scaling
from neuromanifold.symmetry.value_output import ValueOutput

FAMILIES: tuple[Family, ...] = (
    KeyQuery(),
    ValueOutput(),
    InterLayer(),
    Scaling(),
    HeadMixing(),
    HeadPermutation(),
)
"""All families, in the order in which a ledger counts them: what two share counts for the first."""


def families_of(architecture: Architecture) -> tuple[Family, ...]:
    """The families that hold for the network."""
    return tuple(family for family in FAMILIES if family.holds_for(architecture))


def all_generators(weights: Weights, linear: LinearAlgebra) -> list[GeneratorBlock]:
    """The tangent vectors of all families that hold, family by family."""
    return [
        block
        for family in families_of(weights.architecture)
        for block in family.generators(weights, linear)
    ]
