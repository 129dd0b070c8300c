"""Discovery finds the symmetries that are known, and says what stays unexplained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from architectures import ARCHITECTURES
from diagrams import EXTENSIONS
from neuromanifold.algebra.prime_field import ZeroResidueError
from neuromanifold.certificates.discovery import moving, symmetry_algebra
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


def test_a_rotation_behind_gains_is_found_where_they_are_one():
    """W Γ E x/|E x|: E may be turned or scaled, and W takes it back as W Γ Aᵀ Γ⁻¹."""

    def f(w, x):
        y = w["E"] @ x
        return w["W"] @ (w["gain"] * y / jnp.sqrt(jnp.sum(y * y)))

    weights = {"E": np.zeros((3, 3)), "W": np.zeros((2, 3)), "gain": np.zeros(3)}
    found = nm.discover(nm.network(f, weights, np.zeros(3)))
    assert (found.kernel, found.unexplained) == (7, 0)
    assert names(found) == ["O_3", "scaling", "scalings of 3"]
    assert [s.name for s in found.certificate.symmetries] == ["discovered", "discovered on a slice"]
    assert str(found.blocks[-1]) == "scalings of 3 on gain, W"
    assert sum(block.dimension for block in found.blocks) == 7


def test_what_is_found_before_gains_are_one_is_named_too():
    """A bias that absorbs the shift of a norm has scalings, but W s + b = 0 is another slice."""

    def f(w, x):
        y = w["E"] @ x
        y = w["gain"] * y / jnp.sqrt(jnp.sum(y * y)) + w["s"]
        curved = (w["p"][0] + w["p"][1] ** 3) * x
        return w["V"] @ (w["W"] @ y + w["b"]) ** 2, curved

    shapes = {"E": (2, 2), "W": (2, 2), "V": (1, 2), **dict.fromkeys(["gain", "s", "b", "p"], 2)}
    weights = {name: np.zeros(shape) for name, shape in shapes.items()}
    found = nm.discover(nm.network(f, weights, np.zeros(2)))
    assert (found.explained, found.unexplained) == (8, 2)
    assert sum(block.dimension for block in found.blocks) == 8
    assert "translations on b absorbing W, s constant" in str(found)


@pytest.mark.parametrize("shifted", [False, True])
def test_the_direction_that_a_centred_norm_leaves_out(shifted):
    """The gain is seen, so it cannot be made 1: W + u/γ, and b − u⟨1/γ, β⟩ where there is a β."""

    def f(w, x):
        y = x - jnp.mean(x)
        y = w["gain"] * y / jnp.sum(y * y) + (w["shift"] if shifted else 0)
        return {"seen": y, "read": w["W"] @ y + w["bias"]}

    weights = {"W": np.zeros((2, 3)), "bias": np.zeros(2), "gain": np.zeros(3)}
    weights |= {"shift": np.zeros(3)} if shifted else {}
    found = nm.discover(nm.network(f, weights, np.zeros(3)))
    assert (found.kernel, found.unexplained) == (2, 0)
    (block,) = found.blocks
    assert (block.name, block.dimension) == ("directions that a norm leaves out", 2)
    assert block.moves == ("W along 1/gain", *(["bias constant"] if shifted else []))


CENTRED = np.eye(3)[:2] - np.eye(3)[2]
PAIRS = np.array([[1.0, -1, 0, 0], [0, 0, 1, -1]])


@pytest.mark.parametrize(
    ("seen", "gain", "shift"),
    [(CENTRED, True, False), (CENTRED, True, True), (CENTRED, False, True), (PAIRS, True, True)],
    ids=["gain", "gain and shift", "shift", "two directions unseen"],
)
def test_shears_that_fix_what_a_norm_puts_out(seen, gain, shift):
    """W reads y = Γ P z + β and x = M u + b, which is seen besides but along some vectors c.

    By hand: y shows Γ and β, and with W y + d all of W but t in W + t ⊗ g, g = 1/γ, and d. Then
    W x + d is known but for products of t and the unseen ⟨g, x − β⟩: for one c a matrix of rank
    one, whose factors can be scaled against each other. So x ↦ x + c ⟨g, x − β⟩ is all there is.
    Two vectors c leave t and 2·3 numbers of M and b against the 2·3 of W x + d: two dimensions.
    """
    n = seen.shape[1]

    def f(w, inputs):
        z, x = inputs["z"], w["M"] @ inputs["u"] + w.get("b", 0.0)
        y = w.get("gain", 1.0) * (z - jnp.mean(z)) + w.get("shift", 0.0)
        d = w.get("d", 0.0)
        return {"x": seen @ x, "y": y, "read": (w["W"] @ x + d, w["W"] @ y + d)}

    weights = {"M": np.zeros((n, 2)), "W": np.zeros((2, n))}
    weights |= {"gain": np.zeros(n)} if gain else {}
    weights |= {"shift": np.zeros(n), "b": np.zeros(n), "d": np.zeros(2)} if shift else {}
    found = nm.discover(nm.network(f, weights, {"z": np.zeros(n), "u": np.zeros(2)}))
    unseen = n - len(seen)
    assert (found.kernel, found.unexplained) == (unseen, 0)
    (block,) = found.blocks
    assert (block.name, block.dimension) == ("shears that fix what a norm puts out", unseen)
    if gain:
        assert {"M axis 0 measured by 1/gain", "W axis 1 along 1/gain"} <= set(block.moves)


def test_relations_between_exponentials_are_respected_where_they_are_needed():
    """Taken as independent, exp(x) and exp(2x) exp(−x) would be two functions."""

    def f(w, x):
        return w["a"] * jnp.exp(x) + w["b"] * jnp.exp(2 * x) * jnp.exp(-x)

    found = nm.discover(nm.network(f, {k: np.zeros(()) for k in "ab"}, np.zeros(())))
    assert (found.kernel, found.unexplained) == (1, 0)
    assert names(found) == ["shift"]
    assert [s.name for s in found.certificate.symmetries] == ["discovered"]


def test_solutions_are_checked_and_more_weights_taken_while_they_fail(monkeypatch):
    """Both tokens see the same gain: the six rows of one sample are three equations."""
    monkeypatch.setattr(moving, "MOST_SAMPLES", 5)
    net = nm.network(lambda w, x: w * x, np.zeros(3), np.zeros((2, 3)), name="gain")
    found = nm.discover(net)
    assert (found.kernel, found.explained) == (0, 0)
    assert found.points[0] > 5 - found.points[1]


def test_weights_at_which_a_gain_is_zero_are_passed_over(monkeypatch):
    at, calls = symmetry_algebra.equations, []

    def once(*args):
        calls.append(args)
        if len(calls) == 1:
            raise ZeroResidueError("a gain is 0")
        return at(*args)

    monkeypatch.setattr(symmetry_algebra, "equations", once)
    found = nm.discover(nm.network(lambda w, x: w[0] * w[1] * x, np.zeros(2), np.zeros(())))
    assert (found.explained, found.unexplained, len(calls)) == (1, 0, 2)


def test_what_is_looked_at_up_to_a_factor_may_be_scaled():
    """The factor of decisions is no weight, and takes the scaling of the last values back."""
    found = nm.discover(nm.Architecture((3, 2, 3), (2, 2), 3), readout="decisions")
    assert (found.kernel, found.explained) == (17, 17)
    assert any("constant" in block.moves for block in found.blocks)


def test_a_symmetry_times_a_function_of_the_weights_is_counted_once():
    """Behind centring 1 may be added to every column; X = 1cᵀ does so too, c times the weights."""

    def f(w, x):
        y = w["E"] @ x
        return y - jnp.mean(y)

    found = nm.discover(nm.network(f, {"E": np.zeros((3, 2))}, np.zeros(2)))
    assert (found.kernel, found.unexplained) == (2, 0)
    assert [(block.name, block.dimension) for block in found.blocks] == [("translations", 2)]


@pytest.mark.parametrize(
    ("f", "weights", "expected"),
    [
        (lambda w, x: (w[0, 0] * w[1, 1] - w[0, 1] * w[1, 0]) * x[0], (2, 2), [("SL_2", 3)]),
        (
            lambda w, x: jnp.stack([jnp.sum((w[:2] @ x) ** 2), jnp.sum((w[2:] @ x) ** 2)]),
            (4, 3),
            [("2 dimensions of gl_4", 2)],  # O_2 × O_2, not O_4
        ),
        (lambda w, x: jnp.stack([w[0] * w[1], w[2]]) * x[0], 3, [("1 dimension of gl_3", 1)]),
        (lambda w, x: jnp.prod(w) * x[0], 3, [("scalings of 3, of determinant 1", 2)]),
        (
            lambda w, x: jnp.sum((w @ x) ** 2) / jnp.sum((w @ x[::-1]) ** 2),
            (3, 3),
            [("O_3", 3), ("scaling", 1)],
        ),
        (
            lambda w, x: jnp.stack([w[0] / w[1], w[2] / w[3]]) * x[0],
            4,
            [("2 dimensions of gl_4", 2)],
        ),
    ],
    ids=["determinant", "two planes", "a pair", "a product", "a ratio of lengths", "two ratios"],
)
def test_the_name_of_a_group_means_all_of_it_and_no_more(f, weights, expected):
    found = nm.discover(nm.network(f, np.zeros(weights), np.zeros(3)))
    assert found.unexplained == 0
    assert [(block.name, block.dimension) for block in found.blocks] == expected


def test_a_network_is_traced_once_for_all_seeds_and_whatever_is_known_about_it():
    calls = []

    def f(w, x):
        calls.append(x)
        return w["out"] @ jnp.tanh(w["in"] @ x)

    net = nm.network(f, {"in": np.zeros((2, 3)), "out": np.zeros((1, 2))}, np.zeros(3))
    first = nm.discover(net)
    traced = len(calls)
    assert nm.discover(net, seed=1).blocks == first.blocks
    assert nm.certify(first.network, seed=2).lower == first.certificate.lower
    assert len(calls) == traced
    other = nm.network(lambda w, x: f(w, 2 * x), net.shapes[0], np.zeros(3))
    assert other.bare is not net.bare
    assert first.network.bare is net.bare


@pytest.mark.parametrize(
    ("f", "shapes", "expected"),
    [
        (lambda w, x: w["a"] * (w["b"] + 1) * x[0], ((), ()), "scaling about a point on a, b"),
        (lambda w, x: w["a"] @ ((1 + w["b"]) * x), ((3, 2), (2,)), "scalings of 2 on a axis 1"),
        (lambda w, x: (w["b"] + jnp.eye(2)) @ w["a"] @ x, ((2, 2), (2, 2)), "GL_2 on a axis 0"),
        (
            lambda w, x: jnp.stack([w["a"][0] * w["b"][0], w["a"][1], w["b"][1]]) * x[0],
            ((2,), (2,)),
            "1 dimension of gl_2 on a axis 0, b axis 0",
        ),
        (lambda w, x: jnp.sum(w["a"]) * x + w["b"], ((2,), (2,)), "translations on a constant"),
        (
            lambda w, x: w["b"] @ jnp.array([[1.0, 2.0], [0.0, 1.0]]) @ w["a"] @ x,
            ((2, 2), (2, 2)),
            "SL_2 on a axis 0, b axis 1",
        ),
    ],
    ids=["about a point", "gains 1 + g", "a residual", "one of two", "a part", "seen through"],
)
def test_groups_that_act_about_a_point_or_on_a_part_have_their_names(f, shapes, expected):
    """They were `dead`, `of determinant 1`, all of GL_2, and translations that are none."""
    weights = {name: np.zeros(shape) for name, shape in zip("ab", shapes, strict=True)}
    found = nm.discover(nm.network(f, weights, np.zeros(2)))
    assert found.unexplained == 0
    assert sum(block.dimension for block in found.blocks) == found.explained
    assert str(found.blocks[0]).startswith(expected)


def test_a_kernel_that_is_zero_is_said_to_be():
    found = nm.discover(nm.network(lambda w, x: w * x, np.zeros(2), np.zeros(2)))
    assert "the kernel is zero, of 2 parameters none is moved by a symmetry" in str(found)


def test_of_a_rank_that_is_not_proved_the_kernel_is_the_one_found():
    found = nm.discover(nm.network(lambda w, t: jnp.exp(w[t]), np.zeros(3), np.array(2)))
    assert (found.certificate.lower, found.kernel, found.unexplained) == (0, 0, 0)
    assert "the kernel found, not proved, is zero" in str(found)


def convolved(x, kernel):
    names = ("NCH", "OIH", "NCH")
    return jax.lax.conv_general_dilated(x[None], kernel, (1,), "VALID", dimension_numbers=names)[0]


@pytest.mark.parametrize(
    ("f", "shapes", "example", "expected"),
    [
        (
            lambda w, x: jnp.einsum("ijk,ai,bj,ck,a,b->c", w["G"], w["A"], w["B"], w["C"], x, x**2),
            {"G": (2, 2, 2), "A": (3, 2), "B": (3, 2), "C": (3, 2)},
            (3,),
            [f"GL_2 on {name} axis 1, G axis {k}" for k, name in enumerate("ABC")],
        ),
        (
            lambda w, x: (
                convolved(convolved(x, w["a"]) + w["b"][:, None], w["c"]) + w["d"][:, None]
            ),
            {"a": (2, 3, 3), "b": (2,), "c": (2, 2, 2), "d": (2,)},
            (3, 6),
            [
                "GL_2 on a axis 0, b axis 0, c axis 1",
                "translations on d absorbing c, b constant",
            ],
        ),
        (
            lambda w, x: jnp.einsum("hij,hjk,k->hi", w["o"], w["v"], x),
            {"o": (2, 3, 2), "v": (2, 2, 3)},
            (3,),
            ["GL_2 on o[0] axis 1, v[0] axis 0", "GL_2 on o[1] axis 1, v[1] axis 0"],
        ),
    ],
    ids=["Tucker", "convolutions", "heads"],
)
def test_tensors_of_order_three_are_moved_along_every_axis(f, shapes, example, expected):
    """As a whole, or where they are heads each matrix by itself."""
    weights = {name: np.zeros(shape) for name, shape in shapes.items()}
    found = nm.discover(nm.network(f, weights, np.zeros(example)))
    assert found.unexplained == 0
    assert sorted(map(str, found.blocks)) == sorted(expected)
    assert sum(block.dimension for block in found.blocks) == found.explained


def test_what_holds_in_a_rare_cell_is_solved_for_there():
    """One input in twenty sees b: its few rows have solutions that are no symmetries."""

    def f(w, x):
        return w["a"] * x[0] ** 2 + jnp.where(jnp.abs(x[1]) < 0.2, w["b"] @ x, 0.0)

    found = nm.discover(nm.network(f, {"a": np.zeros(()), "b": np.zeros(6)}, np.zeros(6)))
    assert found.explained == 0
    assert found.certificate.upper == 7
