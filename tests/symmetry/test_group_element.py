"""The group of all families together."""

import numpy as np
import pytest

from architectures import ARCHITECTURES
from neuromanifold.architecture import Architecture
from neuromanifold.errors import FileFormatError
from neuromanifold.fibers.transport.path import path_to
from neuromanifold.networks.weights import conditioned_weights
from neuromanifold.symmetry.group_element import PARTS, GroupElement

every_network = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)


@every_network
def test_acting_twice_is_acting_with_the_product(architecture):
    weights = conditioned_weights(architecture, 0)
    generator = np.random.default_rng(0)
    g, h = (GroupElement.random(architecture, generator, mixed=True) for _ in range(2))
    twice = g.act(h.act(weights)).flatten()
    once = g.compose(h).act(weights).flatten()
    assert np.linalg.norm(twice - once) <= 1e-11 * np.linalg.norm(twice)


@every_network
def test_a_saved_element_is_read_back_as_it_was(architecture, tmp_path):
    g = GroupElement.random(architecture, np.random.default_rng(1), mixed=True)
    g.save(tmp_path / "g.safetensors")
    back = GroupElement.load(tmp_path / "g.safetensors")
    assert back.architecture == architecture
    for name in PARTS:
        for part, read in zip(getattr(g, name), getattr(back, name), strict=True):
            np.testing.assert_array_equal(part, read)


def test_a_file_that_holds_no_element_is_refused(tmp_path):
    path = tmp_path / "g.safetensors"
    path.write_bytes(b"no safetensors")
    with pytest.raises(FileFormatError, match="is not a file with a group element"):
        GroupElement.load(path)
    with pytest.raises(FileFormatError, match="is not a file with a group element"):
        GroupElement.load(tmp_path / "missing")


def test_an_element_is_never_written_over_another_unasked(tmp_path):
    g = GroupElement.identity(ARCHITECTURES[0])
    g.save(tmp_path / "g")
    with pytest.raises(FileFormatError, match="exists"):
        g.save(tmp_path / "g")


def test_condition_numbers_keep_their_bound():
    for architecture in ARCHITECTURES:
        g = GroupElement.random(architecture, np.random.default_rng(2), 50.0)
        assert g.condition <= 50.0 * (1 + 1e-9)


def test_the_path_to_an_element_stays_in_the_group_and_keeps_the_condition():
    architecture = Architecture(widths=(4, 4, 4), ranks=(4, 3), tokens=2)
    found = 0
    for seed in range(60):
        g = GroupElement.random(architecture, np.random.default_rng(seed), 20.0)
        if g.component():
            continue
        found += 1
        path = path_to(g, 8)
        assert len(path) == 9
        identity = GroupElement.identity(architecture)
        for name in PARTS:
            for end, wanted in ((path[0], identity), (path[-1], g)):
                for part, other in zip(getattr(end, name), getattr(wanted, name), strict=True):
                    np.testing.assert_allclose(part, other, atol=1e-12)
        assert max(step.condition for step in path) <= g.condition * (1 + 1e-9)
    assert found >= 2


def test_a_rotation_by_half_a_turn_has_a_path():
    architecture = Architecture(widths=(2, 2), ranks=(2,), tokens=2)
    g = GroupElement(
        architecture, scaling=(np.ones(1),), key_query=(-np.eye(2)[None],), head_permutation=()
    )
    middle = path_to(g, 2)[1].key_query[0][0]
    np.testing.assert_allclose(middle @ middle, -np.eye(2), atol=1e-14)
