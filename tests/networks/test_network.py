"""Networks as diagrams: what fits together, and what is refused with a sentence."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from diagrams import EXTENSIONS, NETWORKS
from neuromanifold.algebra.linear import Modular
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.errors import ArgumentError, DiagramError
from neuromanifold.formula.bounds import Bound
from neuromanifold.networks.space import Tensor
from neuromanifold.symmetry.families import all_generators, families_of

SQUARE = {"first": np.zeros((2, 3)), "second": np.zeros((1, 2))}


def linear(w, x):
    return w["second"] @ w["first"] @ x


def spaces(group=None, size=2):
    hidden = nm.Space("hidden", size, group)
    x, y = nm.Space("input", 3), nm.Space("output", 1)
    return {"first": (hidden, x.dual), "second": (y, hidden.dual)}


@pytest.mark.parametrize("network", EXTENSIONS, ids=lambda network: network.name)
def test_every_extension_is_certified_with_nothing_unexplained(network):
    certificate = nm.certify(network)
    assert certificate.verdict in ("exact", "exact given symmetries")
    assert certificate.unexplained == 0
    assert certificate.lower == network.parameters - sum(f.dimension for f in families_of(network))
    assert nm.verify(certificate, network).agrees


@pytest.mark.parametrize("network", EXTENSIONS, ids=lambda network: network.name)
def test_the_ledger_of_an_extension_names_its_spaces(network):
    ledger = nm.explain(network)
    assert sum(line.dimension for line in ledger.lines) == network.parameters
    named = {line.name for line in ledger.lines[1:-1]}
    assert named == {family.name for family in families_of(network) if family.dimension}


def test_the_columns_are_the_entries_in_the_order_of_the_tensors():
    for network in NETWORKS:
        vector = np.arange(float(network.columns))
        weights = network.assemble(vector)
        np.testing.assert_array_equal(network.flatten(weights), vector)
        for slot, place in network.places.items():
            np.testing.assert_array_equal(weights[slot.tensor][slot.index].ravel(), vector[place])


def test_generators_have_one_rank_over_floats_and_over_a_prime_field():
    field = PrimeField()
    for network in EXTENSIONS:
        weights = network.draw(0)
        exact = {name: field.from_floats(value) for name, value in weights.items()}
        rows = [network.dense(b) for b in all_generators(network, exact, Modular(field))]
        if rows:
            total = sum(family.dimension for family in families_of(network))
            assert rank(np.concatenate(rows), field) == total


def test_weights_may_be_any_pytree():
    layer = eqx.nn.MLP(3, 2, 4, 1, activation=lambda z: z**2, key=jax.random.key(0))
    network = nm.network(lambda net, x: net(x), layer, np.zeros(3), name="squares")
    assert {tensor.name for tensor in network.tensors} == {
        *("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"),
    }
    certificate = nm.certify(network)
    assert certificate.parameters == 26
    assert nm.verify(certificate, network).agrees
    named = network.values(layer)
    np.testing.assert_array_equal(named["layers.0.bias"], np.asarray(layer.layers[0].bias))
    assert nm.certify(network, weights=layer).weights is not None


def test_a_closed_over_array_is_part_of_the_fingerprint():
    def made(constant):
        return nm.network(
            lambda w, x: w * jax.jit(lambda z: z * constant)(x), np.zeros(3), np.zeros(3)
        )

    first, again, other = (made(np.array([1.0, 2.0, k])) for k in (3.0, 3.0, 4.0))
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_a_group_that_the_function_does_not_have_is_named_by_its_space():
    with pytest.raises(DiagramError, match="'hidden' changes bent"):
        nm.certify(
            nm.network(
                lambda w, x: w["second"] @ (w["first"] @ x) ** 2,
                SQUARE,
                np.zeros(3),
                spaces=spaces(nm.GL(2)),
                name="bent",
            )
        )
    assert nm.certify(nm.network(linear, SQUARE, np.zeros(3), spaces=spaces(nm.GL(2)))).lower == 3


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"spaces": spaces(size=4)}, "first has shape \\(2, 3\\), and its spaces hidden, input"),
        ({"spaces": {**spaces(), "first": (None, None)}}, "axis 0 of the tensor first is in no"),
        ({"spaces": {"first": spaces()["first"]}}, "the weight second of shape \\(1, 2\\) has no"),
        ({"spaces": {**spaces(), "third": ()}}, "has no weight third; its weights are first"),
        (
            {"spaces": {**spaces(), "second": (nm.Space("input", 1), nm.Space("h", 2))}},
            "two spaces of linear are called input",
        ),
        ({"spaces": spaces(), "absorbs": {"first": ("third",)}}, "first absorbs third, which"),
    ],
)
def test_what_is_no_diagram_is_refused_with_a_sentence(declared, sentence):
    with pytest.raises(DiagramError, match=sentence):
        nm.network(linear, SQUARE, np.zeros(3), **declared)


def test_sizes_names_and_copies_must_fit():
    with pytest.raises(DiagramError, match="the space keys has size 3, and GL_2 acts on 2"):
        nm.Space("keys", 3, nm.GL(2))
    with pytest.raises(DiagramError, match="needs a size of at least 1; got 0"):
        nm.Space("keys", 0)

    def unused(_, x):
        return x

    twice = (Tensor("a", ()), Tensor("a", ()))
    with pytest.raises(DiagramError, match="two tensors of network are called a"):
        nm.Network(twice, unused, np.zeros(1))
    heads = nm.Space("heads", 2)
    keys = nm.Space("keys", 2, nm.GL(2), over=(heads,))
    with pytest.raises(DiagramError, match="one for each of heads; it needs an axis there too"):
        nm.Network((Tensor("a", (keys,)),), unused, np.zeros(1))
    with pytest.raises(DiagramError, match="move it to the front"):
        nm.Network((Tensor("a", (keys, heads)),), unused, np.zeros(1))
    with pytest.raises(ArgumentError, match="a network is made of a function"):
        nm.network(3)


def test_given_weights_are_checked():
    network = nm.network(linear, SQUARE, np.zeros(3))
    with pytest.raises(ArgumentError, match=r"first of linear has shape \(2, 3\); got \(3, 2\)"):
        nm.certify(network, weights={**SQUARE, "first": np.zeros((3, 2))})
    with pytest.raises(ArgumentError, match="NaN or infinite"):
        nm.certify(network, weights={**SQUARE, "first": np.full((2, 3), np.nan)})
    with pytest.raises(ArgumentError, match="must be real floats; got int64"):
        nm.certify(network, weights={**SQUARE, "first": np.zeros((2, 3), int)})


def test_a_pruned_head_is_certified_at_its_weights():
    """Head mixing cannot be lifted where a head is zero; the rank there is still proved."""
    architecture = nm.Architecture((3, 3), (2,), 3, heads=2)
    weights = nm.random_weights(architecture, 0)
    layer = {name: np.array(tensor) for name, tensor in weights.layers[0].tensors().items()}
    for tensor in layer.values():
        tensor[1] = 0
    pruned = nm.Weights.from_tensors(architecture, [layer])
    one = nm.certify(nm.Architecture((3, 3), (2,), 3))
    assert nm.certify(architecture, weights=pruned).lower == one.lower


def test_a_bound_that_a_user_claims_is_no_theorem():
    claimed = Bound(3, "none", "a claim")
    network = nm.network(linear, SQUARE, np.zeros(3), bound=claimed)
    certificate = nm.certify(network)
    assert (certificate.lower, certificate.upper) == (3, 3)
    assert certificate.verdict == "exact given symmetries"


def test_a_claimed_bound_below_a_proved_rank_is_refused():
    network = nm.network(linear, SQUARE, np.zeros(3), bound=Bound(2, "none", "a claim"))
    with pytest.raises(DiagramError, match=r"the bound 2 by a claim is wrong .* at least 3"):
        nm.certify(network)


def test_quantities_of_any_network():
    network = nm.network(linear, SQUARE, np.zeros(3), spaces=spaces(nm.GL(2)))
    product = nm.identifiable(network, lambda w: (w["second"] @ w["first"])[0, 1], name="product")
    assert product.answer == "yes"
    entry = nm.identifiable(network, lambda w: w["first"][0, 0], name="an entry")
    assert (entry.answer, entry.proved, entry.moved_by) == ("no", False, ("hidden",))
    assert nm.estimate(network).rank == 3


def test_functions_of_several_inputs_and_outputs():
    def f(w, X):
        return {"a": w["u"] * X["x"], "b": jnp.sum(w["v"]) * X["y"]}

    network = nm.network(
        f, {"u": np.zeros(2), "v": np.zeros(3)}, {"x": np.zeros(2), "y": np.zeros(())}
    )
    certificate = nm.certify(network)
    assert certificate.lower == 3
    assert nm.verify(certificate, network).agrees
    assert nm.estimate(network).rank == 3


@pytest.mark.usefixtures("wrong_types")
@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: nm.Space("hidden", 2, "GL"), "must be a group such as GL\\(2\\); got 'GL'"),
        (lambda: nm.Space("hidden", 2, nm.GL), "must be a group such as GL"),
        (lambda: nm.network(linear, SQUARE, np.zeros(3), bound=2), "must be a Bound; got 2"),
        (lambda: nm.network(linear, SQUARE, np.zeros(3), families="ab"), "must be a Family"),
        (lambda: nm.network(linear, SQUARE, np.zeros(3), symmetries=linear), "list of functions"),
    ],
)
def test_what_is_no_group_family_or_bound_is_refused(made, sentence):
    with pytest.raises((ArgumentError, DiagramError), match=sentence):
        made()
