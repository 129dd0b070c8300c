"""Which quantities the function determines, which symmetry moves the others, and what is proved."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.identifiable import identifiable
from neuromanifold.certificates.quantity import parse_quantity
from neuromanifold.errors import ArgumentError, DiagramError, NotCoveredError
from neuromanifold.networks.virtual import virtual_weights
from neuromanifold.networks.weights import random_weights

LAYER = Architecture((3, 2), (2,), 3)
SOFTMAX = Architecture((3, 2), (2,), 3, "softmax")
DEEP = Architecture((3, 2, 3), (2, 2), 3)
WIDE = Architecture((2, 4, 2), (2, 2), 3)
HEADS = Architecture((3, 3), (3,), 3, heads=2)


def ask(text, architecture, **options):
    return identifiable(architecture, text, **options)


@pytest.mark.parametrize(
    ("architecture", "text", "moved_by"),
    [
        (LAYER, "layers.0.query[0,0,1]", ("key-query", "scaling")),
        (LAYER, "layers.0.key[0,1,1]", ("key-query",)),
        (LAYER, "A.0[0,0,1]", ("scaling",)),
        (LAYER, "norm(V.0)", ("scaling",)),
        (SOFTMAX, "layers.0.query[0,0,1]", ("key-query",)),
        (DEEP, "V.0[0,1,2]", ("inter-layer", "scaling")),
        (DEEP, "M.1[0,1]", ("scaling",)),
        (DEEP, "L[0,1]", ("scaling",)),
        (HEADS, "A.0[0,0,1]/A.0[0,0,0]", ("head mixing",)),
        (
            Architecture((3, 4), (2,), 3, value_ranks=(2,)),
            "layers.0.output[0,3,1]",
            ("value-output",),
        ),
    ],
    ids=str,
)
def test_what_a_symmetry_moves_is_not_determined_and_that_is_proved(architecture, text, moved_by):
    found = ask(text, architecture)
    assert (found.answer, found.proved, found.moved_by) == ("no", True, moved_by)
    assert found.rank_with == found.rank + 1


@pytest.mark.parametrize(
    ("architecture", "text"),
    [
        (LAYER, "A.0[0,0,1]/A.0[0,2,2]"),
        (LAYER, "A.0[0,0,1]*V.0[0,1,1]"),
        (LAYER, "norm(A.0)*norm(V.0)"),
        (SOFTMAX, "A.0[0,0,1]"),
        (SOFTMAX, "norm(V.0)"),
        (DEEP, "M.1[0,1]/M.1[2,2]"),
        (DEEP, "L[0,1]/L[2,0]"),
        (DEEP, "M.0[1,1]*M.0[0,1]*M.0[2,2]*M.1[0,1]*L[0,1]"),
        (Architecture((3, 2, 3), (2, 2), 3, "softmax"), "M.1[0,1]"),
    ],
    ids=str,
)
def test_what_no_symmetry_moves_is_determined_at_a_random_point(architecture, text):
    found = ask(text, architecture)
    assert (found.answer, found.proved, found.moved_by) == ("yes", False, ())
    assert found.rank_with == found.rank


@pytest.mark.statement("eq-13")
@pytest.mark.parametrize(("powers", "answer"), [((3, 1, 1), "yes"), ((1, 1, 1), "no")])
def test_products_of_virtual_weights_are_determined_when_the_rescalings_cancel(powers, answer):
    def product(weights):
        virtual = virtual_weights(weights)
        factors = (*(M[0, 1] for M in virtual.forms), virtual.linear[0, 0])
        return jnp.prod(jnp.stack([x**n for x, n in zip(factors, powers, strict=True)]))

    assert identifiable(DEEP, product).answer == answer


@pytest.mark.statement("virtual-bound")
def test_what_the_virtual_weights_do_not_see_is_not_determined_though_no_symmetry_moves_it():
    """In 2-4-2 the last layer acts on four dimensions, of which the image of V_0 is two.

    With S = A_1 + A_1ᵀ the matrix B = V_1 S^{-1} V_1ᵀ is the same in every basis, and scaling
    multiplies it by a number, so that no family moves the ratio of its entries. The function sees
    A_1 and V_1 on the image of V_0 only.
    """

    def invariant(weights):
        A, V = weights.layers[1].attention_matrices()[0], weights.layers[1].value_maps()[0]
        B = V @ adjugate(A + A.T) @ V.T
        return B[0, 0] / B[0, 1]

    found = identifiable(WIDE, invariant)
    assert (found.answer, found.moved_by, found.proved) == ("no", (), True)
    assert found.rank == found.upper == 10


def adjugate(B):
    """adj(B) for 4 × 4 by Faddeev and LeVerrier, up to its sign: rational, without branches."""
    M = jnp.eye(4)
    for k in range(1, 4):
        M = B @ M - jnp.trace(B @ M) / k * jnp.eye(4)
    return M


def test_an_array_is_determined_when_all_of_its_entries_are():
    def ratios(weights):
        A = weights.layers[0].attention_matrices()[0]
        return A / A[0, 0]

    def matrix(weights):
        return weights.layers[0].attention_matrices()[0]

    assert identifiable(LAYER, ratios).answer == "yes"
    found = identifiable(LAYER, matrix)
    assert (found.answer, found.rank_with) == ("no", found.rank + 1)


@pytest.mark.statement("readouts")
@pytest.mark.parametrize(
    ("readout", "text", "moved_by"),
    [
        ("probabilities", "V.0[0,1,1]", ("output shift",)),
        ("decisions", "V.0[0,1,1]", ("output shift", "output scaling")),
        ("decisions", "norm(A.0)", ()),
    ],
)
def test_a_readout_determines_less(readout, text, moved_by):
    found = ask(text, SOFTMAX, readout=readout)
    assert found.moved_by == moved_by
    assert found.answer == ("no" if moved_by else "yes")


def test_another_seed_and_prime_give_the_same_answer():
    found = ask("A.0[0,0,1]/A.0[0,2,2]", LAYER, seed=7, prime=1048583)
    assert (found.answer, found.seed, found.prime) == ("yes", 7, 1048583)


def test_an_answer_is_one_sentence_and_json():
    found = ask("A.0[0,0,1]", LAYER)
    assert str(found) == (
        "A.0[0,0,1] of lightning 3-2 ranks 2 tokens 3 is not determined by the function: moved by "
        "scaling (proved; rank 13, 14 with its gradient; prime 8388593, seed 0)."
    )
    assert "determined locally by the function (at a random point, not proved;" in str(
        ask("A.0[0,0,1]", SOFTMAX)
    )
    data = json.loads(json.dumps(ask("A.0[0,0,1]", SOFTMAX).to_dict()))
    assert (data["identifiable"], data["moved_by"], data["independence"]["columns"]) == (
        "yes",
        [],
        data["independence"]["rank"],
    )


@pytest.mark.usefixtures("wrong_types")
@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (lambda w: jnp.exp(w.layers[0].query[0, 0, 0]), "rational function.* has exponentials"),
        (lambda w: w.layers, "real number or array; got tuple"),
        (lambda w: (w.layers[0].query > 0).astype(int), "type int64; return real numbers"),
        (lambda w: jnp.max(w.layers[0].query), "rational function.* maxima"),
        (lambda w: w.layers[0].query[:0], r"real number or array; got \(0,\)"),
        (lambda w: w["query"], "cannot be traced"),
        (3, r'or a text like "A\.0\[0,0,1\]"; got int'),
    ],
)
def test_what_is_no_quantity_is_refused(quantity, text):
    with pytest.raises(ArgumentError, match=text):
        identifiable(LAYER, quantity)


def test_a_small_prime_is_refused():
    with pytest.raises(ArgumentError, match="above 2\\^20"):
        ask("A.0[0,0,1]", LAYER, prime=101)


@pytest.mark.statement("eq-8")
def test_texts_name_what_they_say():
    weights = random_weights(DEEP, 0)
    first, second = weights.layers
    virtual = virtual_weights(weights)
    expected = {
        "layers.1.key[0,1,0]": second.key[0, 1, 0],
        "A.0[0,1,2]": (first.key[0].T @ first.query[0])[1, 2],
        "V.1[0,2,1]": second.value[0, 2, 1],
        "M.1[2,0]": virtual.forms[1][2, 0],
        "L[2,1]": virtual.linear[2, 1],
        "norm(L)": (virtual.linear**2).sum(),
        "norm(layers.0.query)": (first.query**2).sum(),
        "L[0,1] / L[0,2] / L[1,1]": virtual.linear[0, 1]
        / virtual.linear[0, 2]
        / virtual.linear[1, 1],
        "L[0,1] * norm(V.0)": virtual.linear[0, 1] * (first.value**2).sum(),
    }
    for text, value in expected.items():
        name, quantity = parse_quantity(text, DEEP)
        assert name == text.replace(" ", "")
        assert float(quantity(weights)) == pytest.approx(float(value), rel=1e-5)


@pytest.mark.parametrize(
    ("architecture", "text", "message"),
    [
        (DEEP, "", "'' is no quantity; write an entry like"),
        (DEEP, "A.0", "'A.0' is no quantity"),
        (DEEP, "A.0[0,1,2]/", "'' is no quantity"),
        (DEEP, "A.0[0,-1,2]", "is no quantity"),
        (DEEP, "A.0[0,1,2]+L[0,0]", "is no quantity"),
        (DEEP, "__import__('os')", "is no quantity"),
        (DEEP, "A.0[0,1,3]", r"has the shape \(1, 3, 3\); .* counted from 0; got \[0,1,3\]"),
        (DEEP, "A.0[1,2]", r"an entry of it is A.0\[0,0,0\], counted from 0; got \[1,2\]"),
        (DEEP, "L[0,1,2]", r"an entry of it is L\[0,0\], counted from 0"),
        (DEEP, "A.2[0,0,0]", "are 0 to 1; got A.2"),
        (DEEP, "norm(A.x)", "are 0 to 1; got A.x"),
        (DEEP, "layers.0.output[0,0,0]", "has no layers.0.output; name layers.0.query"),
        (DEEP, "B.0[0,0,0]", "has no B.0"),
        (DEEP, "L.0[0,0]", "has no L.0"),
        (HEADS, "M.0[0,0]", "only networks with one head and no residual skip"),
        (Architecture((3, 3), (2,), 3, skip="residual"), "L[0,0]", "no residual skip"),
    ],
    ids=str,
)
def test_other_texts_are_refused_with_the_reason(architecture, text, message):
    with pytest.raises(ArgumentError, match=message):
        parse_quantity(text, architecture)


@jax.custom_jvp
def flat(x):
    return x


flat.defjvp(lambda at, moved: (at[0], 0 * moved[0]))


@pytest.mark.parametrize("hidden", [jax.lax.stop_gradient, flat])
def test_it_is_the_quantity_that_is_differentiated_whatever_rule_it_brings(hidden):
    """They were determined by every function: their gradients are zero by their own rules."""
    assert identifiable(LAYER, lambda w: hidden(w.layers[0].query[0, 0, 0])).answer == "no"


PLAIN = {"first": np.zeros((2, 3)), "second": np.zeros((1, 2))}


def declared(f):
    hidden, x, y = nm.Space("hidden", 2, nm.GL(2)), nm.Space("x", 3), nm.Space("y", 1)
    spaces = {"first": (hidden, x.dual), "second": (y, hidden.dual)}
    return nm.network(f, PLAIN, np.zeros(3), spaces=spaces)


def test_what_a_user_says_of_a_network_is_checked_and_proves_nothing():
    def entry(w):
        return w["first"][0, 0]

    found = identifiable(declared(lambda w, x: w["second"] @ w["first"] @ x), entry)
    assert (found.answer, found.moved_by, found.proved) == ("no", ("hidden",), False)
    wrong = declared(lambda w, x: w["second"] @ jnp.tanh(w["first"] @ x))
    with pytest.raises(DiagramError, match="'hidden' changes"):
        identifiable(wrong, entry)  # was a proved "yes"


def scaled(w, x):
    return w["scale"] * (w["maps"][1] @ (w["maps"][0] @ x))


OWN = nm.network(
    scaled, {"maps": [np.zeros((1, 3)), np.zeros((2, 1))], "scale": np.zeros(())}, np.zeros(3)
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("maps.0[0,1]", "no"),
        ("scale[]", "no"),
        ("norm(maps.1)", "no"),
        ("maps.0[0,1]/maps.0[0,2]", "yes"),
        ("scale[]*maps.0[0,1]*maps.1[1,0]", "yes"),
    ],
)
def test_the_weights_of_any_network_are_named_in_text(text, answer):
    """The function is the matrix scale · maps.1 maps.0 of rank one, and no more is determined."""
    assert ask(text, OWN).answer == answer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("maps[0,1]", "has no maps; name maps.0 or maps.1 or scale"),
        ("scale[0]", r"has the shape \(\); an entry of it is scale\[\], counted from 0; got \[0\]"),
    ],
)
def test_names_that_a_network_does_not_have_are_refused_with_those_it_has(text, message):
    with pytest.raises(ArgumentError, match=message):
        parse_quantity(text, OWN)


@pytest.mark.parametrize("seed", [3, 4])
def test_what_a_rare_cell_shows_is_determined(seed):
    """A ReLU network shows v_k w_k, v_k b_k and the last bias, also where few inputs are."""

    def f(w, x):
        return w["v"] @ jax.nn.relu(w["W"] @ x + w["b"]) + w["last"]

    weights = {"W": np.zeros((3, 2)), "b": np.zeros(3), "last": np.zeros(1), "v": np.zeros((1, 3))}
    net = nm.network(f, weights, np.zeros(2))
    found = identifiable(net, lambda w: w["v"][0, :, None] * w["W"], seed=seed)
    assert (found.answer, found.rank) == ("yes", 10)
    assert identifiable(net, lambda w: w["v"], seed=seed).answer == "no"


def test_ranks_with_unknown_relations_are_no_answer():
    """√(4x) is 2√x, so the first weight is seen by nothing: "yes" was wrong."""

    def f(w, x):
        return w[0] * (jnp.sqrt(4 * x) - 2 * jnp.sqrt(x)) + w[1] * x

    net = nm.network(f, np.zeros(2), np.zeros(()))
    with pytest.raises(NotCoveredError, match=r"not shown to be independent \(square roots: rank"):
        identifiable(net, lambda w: w[0])
