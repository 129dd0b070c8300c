"""Whether two weights have the same function: right in every case, with its evidence."""

import numpy as np
import pytest

from architectures import ARCHITECTURES
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, WeightsError
from neuromanifold.fibers.describe import swapped
from neuromanifold.fibers.fingerprint import fingerprint
from neuromanifold.fibers.same import same_function
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import Weights, random_weights, unflatten
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.group_element import GroupElement

NETWORKS = ARCHITECTURES[::3]
several_networks = pytest.mark.parametrize("architecture", NETWORKS, ids=str)
LAYER = Architecture(widths=(3, 4), ranks=(2,), tokens=2)
DEEP = Architecture(widths=(3, 3, 3), ranks=(2, 2), tokens=3)


def gauge(weights, seed, condition=1e3):
    generator = np.random.default_rng(1000 + seed)
    return GroupElement.random(weights.architecture, generator, condition).act(weights)


def perturbed(weights, seed, size=1e-6):
    vector = weights.flatten()
    noise = np.random.default_rng(seed).standard_normal(len(vector))
    return unflatten(weights.architecture, vector * (1 + size * noise))


def with_tensors(weights, i, **tensors):
    layers = [dict(layer.tensors()) for layer in weights.layers]
    layers[i] |= tensors
    return Weights.from_tensors(weights.architecture, layers)


def check_orbit_and_neighbours(architecture, seed):
    weights = random_weights(architecture, seed)
    moved = gauge(weights, seed)
    assert same_function(weights, moved).verdict == "same"
    assert same_function(weights, random_weights(architecture, seed + 500)).verdict == "different"
    assert same_function(weights, perturbed(moved, seed)).verdict == "different"
    assert same_function(weights, perturbed(weights, seed)).verdict == "different"


@pytest.mark.statement("eq-6")
@several_networks
def test_moved_weights_are_the_same_and_changed_ones_different(architecture):
    check_orbit_and_neighbours(architecture, 0)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_moved_weights_are_the_same_and_changed_ones_different_for_fifty_seeds(architecture):
    for seed in range(50):
        check_orbit_and_neighbours(architecture, seed)


def test_same_comes_with_the_transport_and_different_with_a_witness():
    weights = random_weights(DEEP, 0)
    same = same_function(weights, gauge(weights, 0))
    assert same.transport is not None
    assert same.transport.found
    assert same.witness is None
    assert "a symmetry carries one to the other" in str(same)
    other = random_weights(DEEP, 1)
    different = same_function(weights, other)
    assert different.witness is not None
    X = different.witness.input.astype(np.float32)
    for w, output in ((weights, different.witness.first), (other, different.witness.second)):
        low = unflatten(DEEP, w.flatten().astype(np.float32))
        np.testing.assert_allclose(attention(low, X), output, rtol=1e-3, atol=1e-4)
    assert different.error > different.bound > different.tolerance
    assert "M_" in different.reason or "L" in different.reason


def test_the_json_form_has_the_documented_keys():
    weights = random_weights(LAYER, 0)
    found = same_function(weights, random_weights(LAYER, 1)).to_dict()
    assert {"verdict", "reason", "error", "tolerance", "witness"} <= found.keys()
    assert found["verdict"] == "different"


def rank_one(seed):
    """One layer with A and V of rank one, keys and queries of rank two where possible."""
    generator = np.random.default_rng(seed)
    k, q, v = generator.standard_normal((3, 3))
    h = generator.standard_normal(4)
    tensors = {
        "key": np.stack([k, np.zeros(3)])[None],
        "query": np.stack([q, generator.standard_normal(3)])[None],
        "value": np.outer(h, v)[None],
    }
    return Weights.from_tensors(LAYER, [tensors])


@pytest.mark.statement("thm-3.2")
def test_the_rank_one_swap_is_the_same_function_for_its_own_reason():
    for seed in range(50):
        weights = rank_one(seed)
        answer = same_function(weights, gauge(swapped(weights), seed, 100.0))
        assert (answer.verdict, answer.statement) == ("same", "thm-3.2")
        assert "swapped" in answer.reason


@pytest.mark.statement("thm-3.2")
def test_the_swap_of_factors_is_no_symmetry_when_a_rank_is_two():
    """Just outside: V of rank two, the factors of its first part swapped with those of A."""
    weights = rank_one(0)
    extra = np.outer(np.ones(4), [1.0, -1.0, 0.5])
    other = swapped(weights)
    first = with_tensors(weights, 0, value=weights.layers[0].value + extra)
    second = with_tensors(other, 0, value=other.layers[0].value + extra)
    assert same_function(first, second).verdict == "different"


@pytest.mark.statement("thm-3.2")
def test_zero_layers_are_the_same_whatever_the_rest_is():
    for seed in range(50):
        first = random_weights(DEEP, seed)
        second = random_weights(DEEP, seed + 1)
        first = with_tensors(first, seed % 2, key=np.zeros((1, 2, 3)))
        second = with_tensors(second, 1, value=np.zeros((1, 3, 3)))
        answer = same_function(first, second)
        assert (answer.verdict, answer.reason) == ("same", "both functions are zero")
        assert same_function(first, random_weights(DEEP, seed)).verdict == "different"


def test_a_form_that_cancels_is_zero_only_if_it_does_so_exactly():
    layer = random_weights(LAYER, 0)
    null = np.linalg.svd(layer.layers[0].key[0])[2][2]
    K = layer.layers[0].key.copy()
    K[0, 1] = K[0, 0] / 3
    Q = np.stack([null, -3 * null])[None]
    cancelled = with_tensors(layer, 0, key=K, query=Q)
    zero = with_tensors(layer, 0, value=np.zeros((1, 4, 3)))
    assert same_function(cancelled, zero).verdict == "undecided"
    K[0], Q[0] = np.eye(2, 3), 0.0
    Q[0, :, 2] = [1.0, 0.0]
    K[0] = [[0.0, 0, 0], [1.0, 0, 0]]
    exact = with_tensors(layer, 0, key=K, query=Q)
    assert same_function(exact, zero).reason == "both functions are zero"


@pytest.mark.statement("thm-3.9")
def test_softmax_with_zero_scores_is_not_zero_and_tells_the_values_apart():
    architecture = Architecture(widths=(3, 3), ranks=(2,), tokens=2, attention="softmax")
    weights = with_tensors(random_weights(architecture, 0), 0, key=np.zeros((1, 2, 3)))
    doubled = with_tensors(weights, 0, value=2 * weights.layers[0].value)
    assert same_function(weights, doubled).verdict == "different"
    without = with_tensors(weights, 0, value=np.zeros((1, 3, 3)))
    other = with_tensors(random_weights(architecture, 1), 0, value=np.zeros((1, 3, 3)))
    assert same_function(without, other).verdict == "same"


@pytest.mark.parametrize("attention_kind", ["lightning", "softmax"])
@pytest.mark.parametrize("seed", range(3))
def test_permuted_heads_are_the_same(attention_kind, seed):
    architecture = Architecture(
        widths=(4, 4, 3), ranks=(2, 2), tokens=3, heads=3, attention=attention_kind
    )
    weights = random_weights(architecture, seed)
    order = (np.array([2, 0, 1]), np.array([1, 0, 2]))
    answer = same_function(weights, GroupElement(architecture, head_permutation=order).act(weights))
    assert answer.verdict == "same"
    assert answer.transport is not None
    np.testing.assert_array_equal(answer.transport.element.head_permutation, order)


@pytest.mark.statement("head-mixing")
def test_mixed_heads_are_the_same_for_their_own_reason():
    architecture = Architecture(widths=(3, 3), ranks=(3,), tokens=3, heads=2)
    weights = random_weights(architecture, 0)
    families = {family.name: family for family in attention_network(architecture).families}
    mixing = families["head mixing"]
    moved = mixing.act(mixing.random(np.random.default_rng(0)), named(weights))
    answer = same_function(weights, Weights.from_named(architecture, moved))
    assert (answer.verdict, answer.statement) == ("same", "head-mixing")


def test_behind_a_rank_one_layer_skew_parts_do_not_count():
    architecture = Architecture(widths=(3, 3, 3), ranks=(1, 3), tokens=3)
    weights = random_weights(architecture, 0)
    A = weights.layers[1].key[0].T @ weights.layers[1].query[0]
    skew = np.array([[0, 1, -2], [-1, 0, 3], [2, -3, 0.0]])
    plain = with_tensors(weights, 1, key=np.eye(3)[None], query=A[None])
    turned = with_tensors(weights, 1, key=np.eye(3)[None], query=(A + skew)[None])
    answer = same_function(plain, turned)
    assert (answer.verdict, answer.statement) == ("same", "all-widths")
    whole = [with_tensors(weights, 1, key=np.eye(3)[None], query=B[None]) for B in (skew, 2 * skew)]
    whole = [with_tensors(w, 1, query=w.layers[1].query + np.rint(4 * A)) for w in whole]
    answer = same_function(*whole, exact=True)
    assert (answer.verdict, answer.statement) == ("same", "all-widths")
    other = with_tensors(whole[1], 1, query=whole[1].layers[1].query + np.eye(3))
    assert same_function(whole[0], other, exact=True).verdict == "different"
    full = Architecture(widths=(3, 3, 3), ranks=(3, 3), tokens=3)
    first = random_weights(full, 0).layers[0]
    pair = [Weights((first, w.layers[1]), full) for w in (plain, turned)]
    assert same_function(*pair).verdict == "different"


@pytest.mark.statement("eq-8")
@pytest.mark.parametrize("attention_kind", ["lightning", "softmax"])
def test_what_virtual_weights_do_not_see_does_not_count(attention_kind):
    architecture = Architecture(widths=(2, 4, 2), ranks=(2, 2), tokens=3, attention=attention_kind)
    weights = random_weights(architecture, 0)
    unseen = np.linalg.svd(weights.layers[0].value[0])[0][:, 2:]
    change = np.random.default_rng(0).standard_normal((2, 2)) @ unseen.T
    other = with_tensors(weights, 1, value=weights.layers[1].value + change)
    answer = same_function(weights, other)
    assert answer.verdict == "same"
    assert answer.statement == ("eq-13" if attention_kind == "lightning" else "eq-8")


@pytest.mark.statement("softmax-fibers")
@pytest.mark.parametrize("exact", [False, True], ids=["floats", "exact"])
@pytest.mark.parametrize(("tokens", "size"), [(2, 1.5), (2, 0.0), (3, 0.0), (3, 1.5)])
def test_behind_a_layer_that_makes_tokens_equal_nothing_counts(tokens, size, exact):
    """A skew form collapses two tokens, a zero form any number."""
    architecture = Architecture(widths=(2, 2, 2), ranks=(2, 2), tokens=tokens, attention="softmax")
    A = size * np.array([[0.0, 1.0], [-1.0, 0.0]])
    weights = with_tensors(random_weights(architecture, 0), 0, key=np.eye(2)[None], query=A[None])
    behind = with_tensors(weights, 1, query=np.array([[[1.0, 2.0], [3.0, 4.0]]]))
    at = with_tensors(weights, 0, query=np.array([[[0.0, 2.0], [-2.0, 0.0]]]))
    collapses = tokens == 2 or size == 0
    answer = same_function(weights, behind, exact=exact)
    assert answer.verdict == ("same" if collapses else "different")
    assert answer.statement == "softmax-fibers"
    answer = same_function(weights, at, exact=exact)
    assert (answer.verdict, answer.statement) == ("different", "softmax-fibers")


def test_networks_of_other_ranks_can_be_compared():
    narrow = random_weights(LAYER, 0)
    wide = Architecture(widths=(3, 4), ranks=(3,), tokens=2)
    padded = {
        name: np.pad(T, ((0, 0), (0, 1), (0, 0))) if name != "value" else T
        for name, T in narrow.layers[0].tensors().items()
    }
    answer = same_function(narrow, Weights.from_tensors(wide, [padded]))
    assert (answer.verdict, answer.statement) == ("same", "eq-13")


@pytest.mark.parametrize("architecture", [LAYER, DEEP, ARCHITECTURES[15]], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_float32_weights_are_compared_within_their_precision(architecture, seed):
    weights = random_weights(architecture, seed)
    moved = gauge(weights, seed, 10.0)
    low = [unflatten(architecture, w.flatten().astype(np.float32)) for w in (weights, moved)]
    answer = same_function(*low)
    assert answer.verdict == "same"
    assert answer.tolerance > 1e-7
    changed = perturbed(low[1], seed, 1e-3)
    low_changed = unflatten(architecture, changed.flatten().astype(np.float32))
    assert same_function(low[0], low_changed).verdict == "different"


def test_a_difference_near_rounding_is_undecided_between_two_numbers():
    weights = random_weights(LAYER, 0)
    tolerance = same_function(weights, perturbed(weights, 0)).tolerance
    size = 3 * tolerance * 1e-6 / same_function(weights, perturbed(weights, 0)).error
    answer = same_function(weights, perturbed(weights, 0, size))
    assert answer.verdict == "undecided"
    assert answer.tolerance < answer.error < answer.bound
    assert "Undecided" in str(answer)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (Architecture(widths=(4, 4), ranks=(2,), tokens=2), "input width 3 and 4"),
        (Architecture(widths=(3, 3), ranks=(2,), tokens=2), "output width 4 and 3"),
        (Architecture(widths=(3, 4), ranks=(2,), tokens=3), "tokens 2 and 3"),
        (
            Architecture(widths=(3, 4), ranks=(2,), tokens=2, attention="softmax"),
            "attention lightning and softmax",
        ),
        (Architecture(widths=(3, 4), ranks=(2,), tokens=2, mask="causal"), "mask none and causal"),
    ],
)
def test_functions_of_different_kinds_are_refused(other, name):
    with pytest.raises(ArgumentError, match=f"functions of the same kind were wanted; got {name}"):
        same_function(random_weights(LAYER, 0), random_weights(other, 0))


def test_entries_that_are_not_finite_are_refused():
    wrong = with_tensors(random_weights(LAYER, 0), 0, value=np.full((1, 4, 3), np.nan))
    with pytest.raises(WeightsError, match=r"layers\.0\.value has entries that are NaN"):
        same_function(random_weights(LAYER, 0), wrong)


@pytest.mark.statement("eq-13")
@pytest.mark.parametrize("factors", [(8.0, 0.5, 4.0), (3.0, -5.0, 7.0)])
def test_exact_rescalings_of_deep_networks_are_the_same_and_others_are_not(factors):
    """(λ_i A_i, V_i/λ_i) in whole numbers; a factor 2, −1 or 27 too many is another function."""
    net = Architecture((2, 2, 2, 2), (2, 2, 2), 3)
    generator, scale = np.random.default_rng(0), 3.0 * 5.0 * 7.0
    layers = [
        {name: generator.integers(1, 9, shape).astype(float) for name, shape in shapes.items()}
        for shapes in net.shapes
    ]
    first = [layer | {"value": scale * layer["value"]} for layer in layers]
    moved = [
        layer | {"query": factor * layer["query"], "value": layer["value"] / factor}
        for layer, factor in zip(first, factors, strict=True)
    ]
    W = Weights.from_tensors(net, first)
    assert same_function(W, Weights.from_tensors(net, moved), exact=True).verdict == "same"
    for wrong in (2.0, -1.0, 27.0):
        other = [*moved[:-1], moved[-1] | {"value": wrong * moved[-1]["value"]}]
        found = same_function(W, Weights.from_tensors(net, other), exact=True)
        assert found.verdict == "different"
        assert "the size" in found.reason


@pytest.mark.parametrize("exact", [False, True], ids=["floats", "exact"])
def test_a_zero_form_hides_nothing_behind_an_inner_skip(exact):
    """V(X + XP) is V X where the form is zero: what follows is seen."""
    architecture = Architecture((3, 2, 3), (2, 2), 3, skip="inner")
    weights = with_tensors(random_weights(architecture, 0), 0, key=np.zeros((1, 2, 3)))
    behind = with_tensors(weights, 1, query=random_weights(architecture, 1).layers[1].query)
    answer = same_function(weights, behind, exact=exact)
    assert answer.verdict == "different"
    assert answer.witness is not None


@pytest.mark.statement("softmax-inner-fibers")
@pytest.mark.parametrize("exact", [False, True], ids=["floats", "exact"])
def test_two_tokens_with_an_inner_skip_show_all_forms_that_are_apart(exact):
    """Just outside: (N, −N/2) and (0, N/2) have one function if N is skew, though M_1 differs."""
    architecture = Architecture((2, 2, 2), (2, 2), 2, "softmax", skip="inner")
    one, N = np.eye(2)[None], np.array([[[0.0, 1.0], [-1.0, 0.0]]])
    maps = {"key": one, "value": one}

    def network(*forms):
        return Weights.from_tensors(architecture, [maps | {"query": M} for M in forms])

    inside = network(N, N + one)
    for other in (network(N, N + 2 * one), network(2 * N, N + one)):
        answer = same_function(inside, other, exact=exact)
        assert (answer.verdict, answer.statement) == ("different", "softmax-inner-fibers")
        assert same_function(other, inside, exact=exact).statement == answer.statement
    paired = same_function(network(N, N / 2), network(N / 4, N / 8), exact=exact)
    assert (paired.verdict, paired.statement) == ("different", None)
    outside = same_function(network(N, -N / 2), network(0 * N, N / 2), exact=exact)
    assert outside.verdict != "different"
    assert fingerprint(inside).hash != fingerprint(network(N, N + 2 * one)).hash
    assert fingerprint(network(N, -N / 2)).hash is None


@pytest.mark.statement("eq-8")
def test_what_vanishes_modulo_primes_is_not_zero():
    """An update 2^-2800 times the input, of weights that are multiples of two known primes."""
    architecture = Architecture((2, 2, 2), (2, 2), 3, skip="residual")
    weights = random_weights(architecture, 0)
    tiny = np.full((1, 2, 2), np.ldexp(8388593.0 * 8388587.0, -1000))
    second = with_tensors(weights, 1, query=tiny, key=tiny, value=tiny)
    zero = with_tensors(weights, 1, query=0 * tiny, key=0 * tiny, value=0 * tiny)
    assert same_function(second, zero, exact=True).verdict == "undecided"


def merged(layer):
    """Equal heads: what one has more the other may have less."""
    query, key, value = (np.array(T) for T in (layer.query, layer.key, layer.value))
    query[1], key[1] = query[0], key[0]
    return query, key, value


@pytest.mark.statement("softmax-layer")
@pytest.mark.parametrize("exact", [False, True], ids=["floats", "exact"])
@pytest.mark.parametrize("skip", ["none", "inner", "residual"])
@pytest.mark.parametrize("tokens", [2, 3])
def test_heads_of_one_form_share_their_values_and_opposite_ones_for_two_tokens(tokens, skip, exact):
    architecture = Architecture((3, 3, 3), (2, 2), tokens, "softmax", heads=2, skip=skip)
    weights = random_weights(architecture, 0)
    query, key, value = merged(weights.layers[0])
    value = np.round(256 * value) / 256
    extra = np.round(value[0])
    first = with_tensors(weights, 0, query=query, key=key, value=value)
    moved = value + np.stack([extra, -extra])
    assert same_function(first, with_tensors(first, 0, value=moved), exact=exact).verdict == "same"
    opposite = np.stack([key[0], -key[0]])
    first = with_tensors(first, 0, key=opposite)
    for sign, other in ((1, value + np.stack([extra, extra])), (-1, moved)):
        answer = same_function(first, with_tensors(first, 0, value=other), exact=exact)
        assert answer.verdict == "different", (sign, answer)
    # V_1 + V_2 and V_1 − V_2 are seen: with two tokens (V_1, V_2) at ±A and (V_2, V_1) at ∓A
    swapped_heads = with_tensors(first, 0, key=opposite[::-1], value=value[::-1])
    assert same_function(first, swapped_heads, exact=exact).verdict == "same"


@pytest.mark.statement("head-mixing")
@pytest.mark.parametrize("exact", [False, True], ids=["floats", "exact"])
@pytest.mark.parametrize("skip", ["none", "inner", "residual"])
def test_deep_heads_of_rank_one_swap_keys_and_values(skip, exact):
    """h vᵀ X (kᵀ X)ᵀ qᵀ X in k and v is symmetric; the inner skip shows V, and there it is not."""
    architecture = Architecture((3, 3, 3), (1, 2), 3, heads=2, skip=skip, value_ranks=(1, 3))
    weights = random_weights(architecture, 0)
    layer = weights.layers[0]
    key, value = np.array(layer.key), np.array(layer.value)
    key[0], value[0] = layer.value[0], layer.key[0]
    answer = same_function(weights, with_tensors(weights, 0, key=key, value=value), exact=exact)
    assert answer.verdict == ("different" if skip == "inner" else "same")


def test_small_rows_count_as_much_as_large_ones():
    """Deep layers average the difference away; the weights differ by far more than rounding."""
    architecture = Architecture((3,) * 9, (2,) * 8, 2, "softmax", heads=2)
    last = random_weights(architecture, 1).layers[-1]
    sizes = np.array([1e13, 1.0])[:, None]
    weights = with_tensors(
        random_weights(architecture, 1), 7, key=last.key * sizes, query=last.query / sizes
    )
    key = np.array(last.key * sizes)
    key[1, 1] *= 1.01
    assert same_function(weights, with_tensors(weights, 7, key=key)).verdict != "same"
    assert same_function(weights, weights).verdict == "same"


@pytest.mark.parametrize("exact", [False, True], ids=["floats", "exact"])
def test_weights_are_real_numbers_that_float64_holds(exact):
    weights = random_weights(DEEP, 0)

    def typed(dtype, more=0):
        layers = [
            {name: (4 * T).round().astype(dtype) + more for name, T in layer.arrays().items()}
            for layer in weights.layers
        ]
        return Weights.from_tensors(DEEP, layers)

    assert same_function(typed(int), typed(float), exact=exact).verdict == "same"
    assert same_function(typed(int), weights, exact=exact).verdict == "different"
    with pytest.raises(WeightsError, match=r"real floats; layers.0.query is complex"):
        same_function(typed(complex), typed(complex), exact=exact)
    with pytest.raises(WeightsError, match="has more digits"):
        same_function(typed(np.int64, 2**60), weights, exact=exact)


def test_an_exact_witness_shows_a_difference_in_floats_where_it_can():
    """The first input may show it below float64 only."""
    architecture = Architecture((2, 2, 2), (2, 2), 1, heads=2, skip="residual")
    weights = random_weights(architecture, 0)
    weights = with_tensors(weights, 0, key=256 * weights.layers[0].key)
    value = np.array(weights.layers[1].value)
    value[0, 0, 0] *= 1 + 2.0**-40
    answer = same_function(weights, with_tensors(weights, 1, value=value), exact=True)
    assert answer.verdict == "different"
    assert answer.error > 0
    assert not np.array_equal(answer.witness.first, answer.witness.second)


@pytest.mark.parametrize("size", [1e100, 1e-100])
def test_an_exact_witness_of_a_homogeneous_network_has_outputs_that_are_floats(size):
    weights = unflatten(DEEP, size * random_weights(DEEP, 0).flatten())
    answer = same_function(weights, perturbed(weights, 0), exact=True)
    assert 0 < answer.error < 1
    for output in answer.witness.outputs:
        assert np.isfinite(output).all()
        assert np.abs(output).max() > 1e-100
    assert not np.array_equal(*answer.witness.outputs)


@pytest.mark.parametrize("attention_kind", ["lightning", "softmax"])
def test_networks_of_another_skip_or_mask_have_another_fingerprint(attention_kind):
    """The same pair (A, V) is another function there; also V = 0, zero or the identity."""
    kinds = [{}, {"mask": "causal"}, {"skip": "residual"}, {"skip": "residual", "mask": "causal"}]
    networks = [Architecture((2, 2), (2,), 3, attention_kind, **kind) for kind in kinds]
    for size in (1.0, 0.0):
        vector = np.arange(1.0, 13.0)
        vector[8:] *= size
        hashes = [fingerprint(unflatten(network, vector)).hash for network in networks]
        assert None not in hashes
        assert len(set(hashes)) == len(networks)
