"""Checks of the objects: layers in tokens and in matrices, deep networks, fibers."""

from functools import partial
from itertools import combinations_with_replacement
from math import comb, factorial, prod

import jax
import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.architecture import Architecture, Attention
from neuromanifold.formula.ambient import ambient_dimension
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import (
    Layer,
    Weights,
    conditioned_weights,
    random_weights,
    replace_layers,
)
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    distance,
    exact_output,
    generic,
    integers,
    normal_input,
    output,
    token_loop,
)
from neuromanifold.paper.checks.exact_dimensions import certified
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.families import families_of

_SIZES = [(1, 1, 1, 1), (2, 1, 2, 2), (3, 2, 2, 3), (2, 3, 4, 3), (4, 4, 2, 5), (3, 5, 3, 2)]


def _single_layers(trial: Trial, kind: Attention = "lightning") -> list[Architecture]:
    sizes = trial.some(_SIZES, 2, first=1)
    return [Architecture((d, d_out), (a,), t, kind) for d, d_out, a, t in sizes]


@check("def-1")
def lightning_layer(trial: Trial) -> str:
    """A layer is linear in Q, K and V, cubic in X, and takes time linear in t (def-1)."""
    layers = _single_layers(trial)
    for layer in layers:
        W, X = integers(layer, trial.seed)
        (more, _), Y = integers(layer, trial.seed + 1), output(W, X)
        trial.equal(f"{layer}: token loop", exact_output(W, X).astype(np.float64), Y)
        trial.equal(f"{layer}: cubic in X", 8 * Y, output(W, 2 * X))
        for name, other in more.layers[0].arrays().items():
            total = replace_layers(W, [{name: W.layers[0].arrays()[name] + other}])
            parts = Y + output(replace_layers(W, [{name: other}]), X)
            trial.equal(f"{layer}: linear in {name}", parts, output(total, X))
    largest = {t: _largest_array(t) for t in (64, 128, 256)}
    for t in largest:
        trial.equal(f"memory at {t} tokens", t // 64 * largest[64], largest[t])
    trial.numbers["largest array by tokens"] = largest
    return (
        f"{len(layers)} layers with integer weights, exactly, against a loop over tokens "
        f"in Python integers (seed {trial.seed}); size of the largest array for 64 to 256 tokens"
    )


def _largest_array(tokens: int) -> int:
    """The entries of the largest array that the layer makes: no t × t matrix among them."""
    layer = Architecture((4, 4), (2,), tokens)
    program = jax.make_jaxpr(partial(attention, random_weights(layer, 0, dtype=np.float32)))(
        np.zeros((4, tokens), np.float32)
    )
    return max(prod(var.aval.shape) for eqn in program.eqns for var in eqn.outvars)


@check("eq-1")
def token_by_token(trial: Trial) -> str:
    """Token i of the output is Σ_j (x_jᵀ A x_i) V x_j (eq-1)."""
    layers = _single_layers(trial)
    for layer in layers:
        W, X = integers(layer, trial.seed)
        trial.equal(layer.name, exact_output(W, X).astype(np.float64), output(W, X))
    return f"{len(layers)} layers with integer weights, exactly (seed {trial.seed})"


@check("eq-2")
def in_matrices(trial: Trial) -> str:
    """The layer is V X Xᵀ Kᵀ Q X (eq-2)."""
    layers = _single_layers(trial)
    for layer in layers:
        W, X = integers(layer, trial.seed)
        Q, K, V = (tensor[0] for tensor in W.layers[0].arrays().values())
        trial.equal(layer.name, V @ X @ X.T @ K.T @ Q @ X, output(W, X))
    return f"{len(layers)} layers with integer weights and inputs, exactly (seed {trial.seed})"


@check("eq-3")
def attention_matrix(trial: Trial) -> str:
    """A = Kᵀ Q has rank at most a, min(a, d) in general, and only A matters (eq-3)."""
    field, seed = PrimeField(), trial.seed
    sizes = [(d, a) for d in range(1, 3 if trial.quick else 5) for a in range(1, 5)]
    for d, a in sizes:
        layer = Architecture((d, 2), (a,), 2)
        K, Q = (field.random(seed, f"{name} {d} {a}", (a, d)) for name in ("key", "query"))
        trial.equal(f"rank A, {layer}", min(a, d), rank(field.matmul(K.T, Q), field))
        W, X = integers(layer, seed)
        (part,) = W.layers
        whole = Layer(part.attention_matrices(), np.eye(d)[None], part.value)
        same = Weights((whole,), Architecture((d, 2), (d,), 2))
        trial.equal(f"K = 1, Q = A, {layer}", output(W, X), output(same, X))
    return f"{len(sizes)} sizes (d, a), exactly (seed {seed})"


@check("eq-15")
def normalised_layer(trial: Trial) -> str:
    """Value V x_j counts S(x_jᵀ A x_i), divided by the sum over j; S(x) = exp(x/τ) (eq-15)."""
    layers = _single_layers(trial, "softmax")
    layers.append(Architecture((3, 2), (2,), 4, "softmax", temperature=0.5))
    for layer in layers:
        W, X = generic(layer, trial.seed)
        trial.close(layer.name, distance(token_loop(W.layers[0], X, layer), output(W, X)), ROUNDING)
    layer = Architecture((3, 2), (2,), 4, "softmax")
    W, X = generic(layer, trial.seed)
    (part,) = W.layers
    printed = Layer(query=part.key, key=part.query, value=part.value)
    swapped = distance(token_loop(printed, X, layer), output(W, X))
    trial.apart("the printed order of query and key", swapped, DIFFERENT)
    trial.refute(
        f"With x_iᵀ A x_j as printed, in place of x_jᵀ A x_i, the outputs of {layer} (seed "
        f"{trial.seed}) differ by {swapped:.2g} of their size: query and key are swapped against "
        "Definition 1.",
        swapped >= DIFFERENT,
        {"relative distance": swapped},
    )
    return (
        f"{len(layers)} softmax layers at normal inputs against a loop over tokens, "
        f"float64 (seed {trial.seed})"
    )


_DEEP = [
    Architecture((2, 1), (2,), 2),
    Architecture((3, 2, 2), (2, 1), 3),
    Architecture((2, 3, 2), (2, 2), 2),
    Architecture((2, 2, 2, 2), (1, 2, 2), 2),
]


@check("def-2")
def homogeneous(trial: Trial) -> str:
    """A deep lightning network is homogeneous of degree 3^l (def-2).

    Doubling an input doubles every rounding error with it, so in floats too the two sides must be
    the same to the last bit.
    """
    networks = trial.some(_DEEP, 2)
    degrees = {network.name: 3**network.depth for network in networks}
    for network in networks:
        W, X = random_weights(network, trial.seed), normal_input(network, trial.seed)
        expected = 2.0 ** degrees[network.name] * output(W, X)
        trial.equal(f"{network}: φ(2X)", expected, output(W, 2 * X))
    trial.numbers["degrees"] = degrees
    return (
        f"φ(2X) = 2^(3^l) φ(X) for {len(networks)} networks of depth 1 to "
        f"{networks[-1].depth}, to the last bit (seed {trial.seed})"
    )


@check("eq-4")
def layer_after_layer(trial: Trial) -> str:
    """The network is the composition of its layers (eq-4)."""
    networks = trial.some(_DEEP, 2)
    for network in networks:
        W, X = integers(network, trial.seed, 1)
        Y = X
        for i in range(network.depth):
            Y = output(Weights((W.layers[i],), network.layer(i)), Y)
        trial.equal(network.name, Y, output(W, X))
    return f"{len(networks)} networks of integer weights, layer by layer (seed {trial.seed})"


@check("def-3")
def parameters(trial: Trial) -> str:
    """There are Σ_i d_{i-1}(2 a_i + d_i) parameters (def-3)."""
    example = Architecture((4, 2, 3), (2, 1), 3)
    networks = [*_DEEP, example, Architecture((5, 1), (3,), 2)]
    for network in networks:
        d, a = network.widths, network.ranks
        count = sum(d[i] * (2 * a[i] + d[i + 1]) for i in range(network.depth))
        trial.equal(f"{network}: count", count, network.parameters)
        trial.equal(f"{network}: entries", count, random_weights(network, 0).flatten().size)
        trial.equal(f"{network}: Jacobian columns", count, attention_network(network).columns)
    d, a = example.widths, example.ranks
    printed = sum(d[i + 1] * (2 * a[i] + d[i]) for i in range(example.depth))
    trial.refute(
        f"Widths 4, 2, 3 and ranks 2, 1 have {example.parameters} weights; the printed "
        f"Σ d_i(2a_i + d_{{i-1}}) gives {printed}.",
        printed != example.parameters,
        {"parameters": example.parameters, "printed": printed},
    )
    return (
        f"{len(networks)} architectures: the formula, the entries of weights and the columns of "
        "the Jacobian"
    )


@check("eq-5")
def inside_polynomials(trial: Trial) -> str:
    """Functions of lightning networks are polynomial maps of degree 3^l (eq-5).

    On a line s ↦ φ(X + sY) a polynomial of degree n has n-th difference n! times its leading
    coefficient, φ(Y) as φ is homogeneous, and the next difference is zero. In Python integers.
    """
    networks = trial.some(_DEEP, 2)
    for network in networks:
        degree = 3**network.depth
        (W, X), (_, Y) = (integers(network, trial.seed + k, 1) for k in (0, 1))
        values = [exact_output(W, X + s * Y) for s in range(degree + 2)]
        for order, expected in ((degree, factorial(degree) * exact_output(W, Y)), (degree + 1, 0)):
            found = sum((-1) ** (order - s) * comb(order, s) * values[s] for s in range(order + 1))
            trial.equal(f"{network}: difference {order}", expected + 0 * found, found)
    return (
        f"differences of order 3^l and 3^l + 1 along a line, for {len(networks)} networks in "
        f"Python integers (seed {trial.seed})"
    )


@check("ambient")
def ambient(trial: Trial) -> str:
    """The space of polynomial maps has dimension t·d_l·C(t·d_0 + 3^l − 1, 3^l) (ambient)."""
    sizes = [(2, 1, 2, 1), (1, 1, 1, 1), (3, 2, 2, 1), (1, 2, 2, 2), (2, 1, 1, 2), (2, 3, 2, 2)]
    networks = [
        Architecture((d, *(2,) * (depth - 1), d_out), (1,) * depth, t)
        for d, d_out, t, depth in trial.some([*sizes, (1, 1, 2, 3)], 4)
    ]
    for network in networks:
        variables = range(network.tokens * network.widths[0])
        monomials = sum(1 for _ in combinations_with_replacement(variables, 3**network.depth))
        count = network.tokens * network.widths[-1] * monomials
        trial.equal(network.name, count, ambient_dimension(network))
    slice_of = ambient_dimension(Architecture((2, 1), (2,), 2))
    trial.equal("the layer of Figure 1", 40, slice_of)
    trial.numbers["Figure 1"] = slice_of
    return f"{len(networks)} networks, all monomials listed one by one"


_KINDS = [
    Architecture((3, 2, 3), (2, 2), 3),
    Architecture((3, 3), (2,), 3, "softmax"),
    Architecture((3, 3), (3,), 3, heads=2),
    Architecture((3, 3, 3), (2, 2), 3, skip="residual"),
    Architecture((3, 3, 3), (2, 2), 3, mask="causal"),
]


@check("eq-6")
def fibers(trial: Trial) -> str:
    """Symmetries stay in the fiber, other weights are outside; its dimension (eq-6)."""
    networks = trial.some(_KINDS, 2)
    dimensions = {}
    for network in networks:
        W, X = generic(network, trial.seed)
        generator = np.random.default_rng(trial.seed)
        for family in families_of(attention_network(network)):
            moved = family.act(family.random(generator), named(W))
            error = distance(output(W, X), output(Weights.from_named(network, moved), X))
            trial.close(f"{network}: moved by {family.name}", error, ROUNDING)
        other = conditioned_weights(network, trial.seed + 1)
        off = distance(output(W, X), output(other, X))
        trial.apart(f"{network}: other weights", off, DIFFERENT)
        found = certified(network, trial.seed)
        dimensions[network.name] = found.parameters - found.lower
        known = sum(family.dimension for family in found.symmetries)
        trial.equal(f"{network}: fiber dimension", known, dimensions[network.name])
    trial.numbers["dimensions of generic fibers"] = dimensions
    return (
        f"{len(networks)} networks, every family of symmetries of each, float64; dimensions of "
        f"generic fibers by exact ranks (seed {trial.seed})"
    )
