"""Discovery finds the symmetries that are known, and says what stays unexplained."""

import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from architectures import ARCHITECTURES
from diagrams import EXTENSIONS
from neuromanifold.errors import ArgumentError
from neuromanifold.symmetry.families import families_of

MIXING = ("head mixing",)


def known(network):
    """The rank of the families that are affine in the weights, as a certificate counts them."""
    ranks = nm.certify(network).symmetries
    return sum(family.dimension for family in ranks if family.name not in MIXING)


@pytest.mark.parametrize("network", EXTENSIONS, ids=lambda network: network.name)
def test_the_symmetries_of_every_extension_are_found(network):
    found = nm.discover(network)
    assert found.explained == sum(family.dimension for family in families_of(network))
    assert found.unexplained == 0
    assert sum(block.dimension for block in found.blocks) == found.explained
    assert found.certificate.verdict == "exact given symmetries"


@pytest.mark.slow
def test_the_families_of_the_papers_networks_are_found():
    """At least those: in wide layers and at special sizes more symmetries are affine."""
    for architecture in ARCHITECTURES[::4]:
        found = nm.discover(architecture)
        assert found.explained >= known(architecture.network), architecture.name
        assert found.certificate.lower == nm.certify(architecture).lower


def names(found):
    return sorted(block.name for block in found.blocks)


def test_blocks_are_named_by_their_group_and_by_what_they_move():
    found = nm.discover(nm.Architecture((3, 2, 3), (2, 2), 3))
    assert names(found) == ["GL_2", "GL_2", "GL_2", "scaling", "scaling"]
    assert "GL_2 on layers.0.query[0] axis 0, layers.0.key[0] axis 0" in str(found)
    found = nm.discover(EXTENSIONS[3])
    assert names(found) == ["GL_2"] * 4 + ["dead"] * 2 + ["translations"] * 2
    found = nm.discover(EXTENSIONS[2])
    assert names(found)[2:] == ["rotations and scalings of 1 plane and scalings of 1"] * 2


def test_a_rotation_of_a_stream_that_is_read_through_lengths():
    """x ↦ c |W x|²: W may be turned by O_3, and scaled against c."""

    def f(w, x):
        return w["c"] * jnp.sum((w["W"] @ x) ** 2)

    found = nm.discover(nm.network(f, {"W": np.zeros((3, 3)), "c": np.zeros(())}, np.zeros(3)))
    assert (found.kernel, found.explained) == (4, 4)
    assert names(found) == ["O_3", "scaling"]


def test_two_tables_that_are_added_can_be_shifted_against_each_other():
    def f(w, x):
        return w["position"] @ x["where"] + w["token"] @ x["which"]

    one = {"where": np.zeros(2), "which": np.zeros(2)}
    weights = {"position": np.zeros((3, 2)), "token": np.zeros((3, 2))}

    def added(w, x):
        which = x["which"] / jnp.sum(x["which"])
        return f(w, {"where": x["where"] / jnp.sum(x["where"]), "which": which})

    assert nm.discover(nm.network(f, weights, one)).kernel == 0
    found = nm.discover(nm.network(added, weights, one))
    assert (found.kernel, found.unexplained) == (3, 0)
    assert [(block.name, block.dimension) for block in found.blocks] == [("shift", 3)]


def test_a_symmetry_that_is_not_affine_stays_unexplained():
    """sin is missing here: w ↦ (w₀, w₁) seen through w₀ + w₁³ only has a curved fiber."""
    found = nm.discover(
        nm.network(lambda w, x: (w[0] + w[1] ** 3) * x, np.zeros(2), np.zeros(()), name="curved")
    )
    assert (found.kernel, found.explained, found.unexplained) == (1, 0, 1)
    assert "1 unexplained" in str(found)
    assert found.to_dict()["blocks"] == []


def test_networks_too_large_for_discovery_are_refused():
    with pytest.raises(ArgumentError, match="discovery takes at most 6000"):
        nm.discover(nm.network(lambda w, x: w @ x, np.zeros((100, 100)), np.zeros(100)))
