"""Checks of the lemmas behind the bounds of deep networks: what the values of layers show.

Networks are evaluated in plain integers mod p, straight from the definition of a layer. The weights
of softmax are random numbers with column sums one: the lemmas use nothing else of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from neuromanifold.algebra.integer_rank import flint_rank
from neuromanifold.architecture import Architecture
from neuromanifold.formula.bounds import proved_bounds
from neuromanifold.formula.layers import forms_told_apart, spanned_widths
from neuromanifold.paper.checks.exact_dimensions import certified
from neuromanifold.paper.checks.trial import Trial, check

PRIME = 1048573
Integers = np.ndarray


class RandomLayers:
    """The layers of an architecture at random weights mod p.

    Attributes:
        architecture: the network.
        generator: where all numbers come from.
        heads: A and V of all heads, layer by layer.
    """

    def __init__(self, architecture: Architecture, seed: int) -> None:
        self.architecture = architecture
        self.generator = np.random.default_rng((seed, 73, architecture.parameters))
        self.heads = [
            [self._head(shapes) for _ in range(architecture.heads)]
            for shapes in architecture.shapes
        ]

    def draw(self, *shape: int) -> Integers:
        """Random residues."""
        return self.generator.integers(PRIME, size=shape)

    def _head(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Integers, Integers]:
        drawn = {name: self.draw(*shape[1:]) for name, shape in shapes.items()}
        A, V = drawn["key"].T @ drawn["query"] % PRIME, drawn["value"]
        return A, drawn["output"] @ V % PRIME if "output" in drawn else V

    def values(self, X: Integers, depth: int | None = None) -> Integers:
        """The tokens after the first `depth` layers, all by default."""
        kind = self.architecture
        for layer in self.heads[:depth]:
            total = X if kind.skip == "residual" else 0 * (layer[0][1] @ X)
            for A, V in layer:
                inside = X @ self._weights(A, X) + (X if kind.skip == "inner" else 0)
                total = total + V @ (inside % PRIME)
            X = total % PRIME
        return X

    def _weights(self, A: Integers, X: Integers) -> Integers:
        tokens, causal = X.shape[1], self.architecture.mask == "causal"
        P = X.T @ (A @ X % PRIME) % PRIME
        if self.architecture.attention == "softmax":
            P = self.draw(tokens, tokens)
        P = np.triu(P) if causal else P
        if self.architecture.attention == "softmax":
            P[0] += 1 - P.sum(axis=0)
        return P % PRIME

    def several(self, count: int, depth: int | None = None) -> Iterator[Integers]:
        """The values at so many random inputs."""
        for _ in range(count):
            yield self.values(
                self.draw(self.architecture.widths[0], self.architecture.tokens), depth
            )


def span(architecture: Architecture, depth: int, seed: int) -> int:
    """How many dimensions the values of the first layers span (spanned-values)."""
    columns = list(RandomLayers(architecture, seed).several(architecture.widths[depth] + 4, depth))
    return flint_rank(np.concatenate(columns, axis=1), PRIME)


def spans_of_two_tokens(architecture: Architecture, depth: int, seed: int) -> tuple[int, int]:
    """How many dimensions tokens y span, two at a time, and C k for one k, C = Σ y yᵀ."""
    layers = RandomLayers(replace(architecture, tokens=min(2, architecture.tokens)), seed)
    k = layers.draw(architecture.widths[depth])
    values = list(layers.several(len(k) + 4, depth))
    products = np.stack([Y @ (Y.T @ k % PRIME) % PRIME for Y in values])
    return flint_rank(np.concatenate(values, axis=1), PRIME), flint_rank(products, PRIME)


def told_apart(architecture: Architecture, seed: int) -> int:
    """How many dimensions of forms the values of the first layer see (told-apart).

    A score is yᵀ A z, linear in A with coefficients y zᵀ; under softmax differences in a column
    count, (y_j − y_k)ᵀ A z.
    """
    rows: list[Integers] = []
    causal = architecture.mask == "causal"
    for Y in RandomLayers(architecture, seed).several(architecture.widths[1] ** 2 + 4, 1):
        for i, z in enumerate(Y.T):
            seen = Y.T[: i + 1] if causal else Y.T
            if architecture.attention == "softmax":
                seen = seen - seen[0]
            rows += [np.outer(y, z).ravel() % PRIME for y in seen]
    return flint_rank(np.array(rows), PRIME)


_WIDER = [
    *(
        Architecture((d, c, 1), (d, 1), 2, "softmax", heads=H, mask=mask, skip=skip)
        for d, c, H in ((1, 3, 3), (2, 4, 2), (2, 5, 3), (2, 6, 3), (3, 6, 2))
        for mask in ("none", "causal")
        for skip in ("none", "inner")
    ),
    *(
        Architecture((d, c, 1), (a, 1), t, heads=H, skip=skip)
        for d, c, H in ((2, 4, 2), (2, 3, 2), (3, 6, 2), (2, 6, 3), (2, 4, 3))
        for a in (1, 2)
        for t, skip in ((1, "none"), (1, "inner"), (2, "none"), (3, "none"))
    ),
]


@check("told-apart")
def forms(trial: Trial) -> str:
    """The values of a layer tell no more forms apart than is claimed (told-apart)."""
    networks, reached = _WIDER[::4] if trial.quick else _WIDER, 0
    for network in networks:
        most = forms_told_apart(network, *network.widths[:2])
        found = told_apart(network, trial.seed)
        trial.at_most(network.name, found, most)
        reached += found == most
    trial.numbers["reached"] = reached
    return (
        f"forms that the values of {len(networks)} layers see, mod {PRIME} (seed {trial.seed}); as "
        f"many as is claimed in {reached}"
    )


_SPANNING = [
    Architecture((2, 4, 2), (1, 1), 2, heads=3, value_ranks=(2, 1)),
    Architecture((2, 4, 2), (1, 1), 2, heads=4, value_ranks=(1, 1)),
    Architecture((2, 6, 2), (1, 3), 2, heads=4, mask="causal"),
    Architecture((1, 2, 2), (1, 1), 2, heads=3, skip="inner"),
    Architecture((3, 6, 2), (1, 2), 1, heads=2),
    Architecture((2, 2, 3, 4), (4, 2, 2), 3, heads=4, value_ranks=(2, 2, 1)),
    Architecture((2, 2, 4, 3), (3, 1, 2), 3, heads=3, value_ranks=(2, 2, 1)),
    Architecture((2, 2, 4, 4), (1, 2, 1), 2, heads=4, value_ranks=(3, 1, 2)),
    Architecture((4, 2, 3, 3), (1, 2, 4), 3, heads=2, value_ranks=(1, 2, 3)),
    Architecture((3, 3, 4, 2), (3, 2, 4), 3, heads=2, value_ranks=(3, 2, 3)),
    Architecture((3, 2, 4, 2), (1, 1, 1), 1, heads=2, mask="causal"),
    Architecture((4, 4, 4, 1), (1, 1, 1), 2, heads=2, value_ranks=(2, 2, 1)),
    Architecture((2, 2, 4, 1), (1, 1, 1), 2, heads=2, skip="inner", mask="causal"),
]


@check("spanned-values")
def spans(trial: Trial) -> str:
    """Values of lightning layers span at least what is claimed (spanned-values)."""
    reached = 0
    for network in _SPANNING[::3] if trial.quick else _SPANNING:
        least = spanned_widths(network, network.widths)
        for i in range(1, network.depth):
            found = span(network, i, trial.seed)
            trial.at_most(f"{network}: {i} layers", least[i], found)
            tokens, products = spans_of_two_tokens(network, i, trial.seed)
            trial.equal(f"{network}: C k after {i} layers", tokens, products)
            reached += found == least[i]
    trial.numbers["reached"] = reached
    return (
        f"the span of the values of {trial.cases // 2} networks mod {PRIME}, and of their "
        f"products with one vector (seed {trial.seed}); as small as is claimed in {reached}"
    )


def _rotation(layers: RandomLayers, tokens: int) -> Integers:
    """An orthogonal matrix mod p: the product of two reflections 1 − 2 v vᵀ / |v|²."""
    product = np.eye(tokens, dtype=int)
    for _ in range(2):
        v = layers.draw(tokens)
        scale = 2 * pow(int(v @ v % PRIME), -1, PRIME) % PRIME
        product = product @ (np.eye(tokens, dtype=int) - np.outer(v, v) % PRIME * scale) % PRIME
    return product


def _in_rotated_tokens(trial: Trial, network: Architecture) -> None:
    """φ(X O) = φ(X) O for orthogonal O, as N(C) X has it."""
    layers = RandomLayers(network, trial.seed)
    X, O = layers.draw(network.widths[0], network.tokens), _rotation(layers, network.tokens)
    rotated = layers.values(X @ O % PRIME)
    trial.equal(f"{network}: rotated tokens", layers.values(X) @ O % PRIME, rotated)


def _of_degree(trial: Trial, network: Architecture) -> None:
    """φ(sX)/s is a polynomial of degree (3^l − 1)/2 in z = s²: its next divided difference is 0."""
    layers = RandomLayers(network, trial.seed)
    X, total = layers.draw(network.widths[0], network.tokens), 0
    points = range(1, (3**network.depth - 1) // 2 + 3)
    for s in points:
        rest = np.prod([(s * s - r * r) % PRIME for r in points if r != s], dtype=object)
        factor = pow(int(rest) * s, -1, PRIME)
        total = (total + layers.values(s * X % PRIME) * factor) % PRIME
    trial.equal(f"{network}: degree", 0 * total, total)


@check("polynomial-maps")
def maps(trial: Trial) -> str:
    """Without mask lightning is X ↦ N(X Xᵀ) X, and few inputs of one coordinate show all of N."""
    networks = [
        Architecture((2, 3, 2), (2, 1), 3, heads=2),
        Architecture((3, 2), (2,), 2, heads=3, skip="inner"),
        Architecture((2, 2, 2), (1, 2), 2, heads=2, skip="inner"),
    ]
    reached = [
        Architecture((1, 2, 3), (2, 2), 2, heads=2, skip="inner"),
        Architecture((1, 3, 3), (1, 1), 1, heads=2, skip="inner"),
        Architecture((1, 3, 1), (2, 2), 2, heads=3),
    ]
    for network in networks:
        _in_rotated_tokens(trial, network)
        _of_degree(trial, network)
    for network in trial.some(reached, 1):
        (least,) = (b for b in proved_bounds(network) if b.statement == "polynomial-maps")
        found = certified(network, trial.seed).lower
        trial.equal(f"{network}: dimension", least.value, found)
    return (
        f"values at rotated and at scaled inputs mod {PRIME} for {len(networks)} networks, and the "
        f"dimensions of networks that reach the bound (seed {trial.seed})"
    )
