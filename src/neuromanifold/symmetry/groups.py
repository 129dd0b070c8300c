"""The groups that act on the spaces between tensors, as values.

    GL(n)                        all changes of basis
    Orthogonal(n)                those that keep lengths
    RotationCommutant(n, r, …)   those that commute with rotary positions
    Monomial(n, …)               scalings, signs, permutations, and these together
    WithTranslations(G)          points moved by G and by a vector: affine maps, translations

(positive scalings: ReLU neurons; scalings: gated ones, a norm's gain; signs: odd activations;
permutations: heads, neurons; translations of `Monomial(n)`: a bias that the network does not see).

Each is a value with a name, a dimension, random elements and generators; the generators are
matrices of entries 0, 1 and −1, the same over the reals and over every prime field.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from neuromanifold.errors import DiagramError
from neuromanifold.networks.space import Group, Matrix

Generators = Float[np.ndarray, "count m m"]
Pairing = Literal["neighbours", "halves"]
Scale = Literal["none", "sign", "positive", "nonzero"]


class MatrixGroup(Group):
    """A group of matrices that act on a space and on its dual, and on no other power."""

    def power(self, linear: Float[np.ndarray, "*over n n"], exponent: int) -> np.ndarray:
        """G on the space, g^{-T} on its dual."""
        if exponent not in (1, -1):
            raise DiagramError(
                f"{self.name} acts on a space and on its dual only; got an axis of power "
                f"{exponent}: powers belong to groups of scalings"
            )
        return linear if exponent == 1 else np.linalg.inv(linear).mT


@dataclass(frozen=True)
class GL(MatrixGroup):
    """The general linear group GL_n: keys, values, widths between plain layers (lemma-3.1)."""

    @property
    def name(self) -> str:
        """GL_n."""
        return f"GL_{self.size}"

    @property
    def dimension(self) -> int:
        """The number n² of entries."""
        return self.size**2

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Matrix:
        """Random orthogonal factors around singular values between √κ and 1/√κ."""
        return random_invertible(self.size, generator, condition)

    def generators(self) -> Generators:
        """The matrices E_pq."""
        return np.eye(self.size**2).reshape(-1, self.size, self.size)


@dataclass(frozen=True)
class Orthogonal(MatrixGroup):
    """The orthogonal group O_n: a stream that is read through norms of length alone."""

    @property
    def name(self) -> str:
        """O_n."""
        return f"O_{self.size}"

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Matrix:
        """A random rotation or reflection; its condition number is 1."""
        del condition
        return random_orthogonal(self.size, generator)

    @property
    def dimension(self) -> int:
        """N (n−1)/2."""
        return self.size * (self.size - 1) // 2

    def generators(self) -> Generators:
        """The matrices E_pq − E_qp, p < q."""
        rows, columns = np.triu_indices(self.size, 1)
        found = np.zeros((len(rows), self.size, self.size))
        count = np.arange(len(rows))
        found[count, rows, columns], found[count, columns, rows] = 1, -1
        return found


@dataclass(frozen=True)
class RotationCommutant(MatrixGroup):
    """What commutes with the rotations of rotary positions (gauge-rope).

    The first `rotated` coordinates are planes that turn with different frequencies: a matrix that
    commutes with all these rotations is, on each plane, a rotation and a scaling. On the other
    coordinates it is any invertible matrix.

    Attributes:
        size: n.
        rotated: how many coordinates turn, an even number.
        pairing: which coordinates form plane k: `neighbours` (2k, 2k+1) or `halves` (k, k + r/2).
    """

    rotated: int
    pairing: Pairing = "halves"

    def __post_init__(self) -> None:
        if not 0 <= self.rotated <= self.size or self.rotated % 2:
            raise DiagramError(
                f"rotary positions turn an even number of coordinates, at most {self.size}; got "
                f"{self.rotated}"
            )

    @property
    def name(self) -> str:
        """(C*)^{r/2}, with the general linear group on what is left."""
        rest = self.size - self.rotated
        planes = f"rotations and scalings of {self.rotated // 2} planes"
        return planes + (f" and GL_{rest}" if rest else "")

    @property
    def planes(self) -> list[tuple[int, int]]:
        """The pairs of coordinates that turn together."""
        half = self.rotated // 2
        if self.pairing == "neighbours":
            return [(2 * k, 2 * k + 1) for k in range(half)]
        return [(k, k + half) for k in range(half)]

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Matrix:
        """A random rotation and scaling of each plane, a random matrix on the rest."""
        element = np.zeros((self.size, self.size))
        for i, j in self.planes:
            angle = generator.uniform(0, 2 * np.pi)
            scale = condition ** generator.uniform(-0.5, 0.5)
            c, s = scale * np.cos(angle), scale * np.sin(angle)
            element[np.ix_([i, j], [i, j])] = [[c, -s], [s, c]]
        if self.rotated < self.size:
            rest = random_invertible(self.size - self.rotated, generator, condition)
            element[self.rotated :, self.rotated :] = rest
        return element

    @property
    def dimension(self) -> int:
        """Two numbers for each plane, and the entries of the matrix on the rest."""
        return self.rotated + (self.size - self.rotated) ** 2

    def generators(self) -> Generators:
        """For each plane the identity and the quarter turn; E_pq on the rest."""
        found: list[np.ndarray] = []
        for i, j in self.planes:
            scaling, turn = np.zeros((2, self.size, self.size))
            scaling[i, i] = scaling[j, j] = turn[j, i] = 1
            turn[i, j] = -1
            found += [scaling, turn]
        for p in range(self.rotated, self.size):
            for q in range(self.rotated, self.size):
                found.append(np.zeros((self.size, self.size)))
                found[-1][p, q] = 1
        return np.array(found).reshape(-1, self.size, self.size)


@dataclass(frozen=True)
class Monomial(Group):
    """Scalings, signs and permutations of coordinates, and their products.

    Attributes:
        size: n.
        scale: what each coordinate may be multiplied by.
        permute: whether coordinates may be exchanged.
    """

    scale: Scale = "none"
    permute: bool = False

    @property
    def name(self) -> str:
        """What it does, in words."""
        words = {
            "none": "",
            "sign": f"signs of {self.size}",
            "positive": f"positive scalings of {self.size}",
            "nonzero": f"scalings of {self.size}",
        }[self.scale]
        permutations = f"permutations of {self.size}" if self.permute else ""
        return " and ".join(filter(None, (words, permutations))) or "the identity"

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Matrix:
        """Random factors between √κ and 1/√κ in a random order."""
        factors = np.ones(self.size)
        if self.scale in ("positive", "nonzero"):
            factors = condition ** generator.uniform(-0.5, 0.5, self.size)
        if self.scale in ("sign", "nonzero"):
            factors = factors * generator.choice([-1.0, 1.0], self.size)
        order = generator.permutation(self.size) if self.permute else np.arange(self.size)
        return factors[:, None] * np.eye(self.size)[order]

    @property
    def dimension(self) -> int:
        """One number for each coordinate, if there are scalings."""
        return self.size if self.scale in ("positive", "nonzero") else 0

    def generators(self) -> Generators:
        """The matrices E_pp, if there are scalings."""
        if self.scale not in ("positive", "nonzero"):
            return np.zeros((0, self.size, self.size))
        diagonal = np.arange(self.size)
        found = np.zeros((self.size, self.size, self.size))
        found[diagonal, diagonal, diagonal] = 1
        return found

    def power(self, linear: Float[np.ndarray, "*over n n"], exponent: int) -> np.ndarray:
        """D P ↦ D^k P: the factors to a power, the order as it is."""
        factors = linear.sum(axis=-1, keepdims=True)
        return factors ** float(exponent) * (linear != 0)


@dataclass(frozen=True, init=False)
class WithTranslations(Group):
    """The maps x ↦ g x + c with g in a linear group: affine maps (value-bias).

    Attributes:
        linear: the group of the g.
    """

    linear: Group
    affine: ClassVar[bool] = True

    def __init__(self, linear: Group) -> None:
        object.__setattr__(self, "size", linear.size)
        object.__setattr__(self, "linear", linear)

    @property
    def name(self) -> str:
        """The linear group and the translations."""
        translations = f"translations of {self.size}"
        known = self.linear.name
        return translations if known == "the identity" else f"{known} and {translations}"

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Matrix:
        """A random linear part and a normal vector."""
        element = np.eye(self.size + 1)
        element[:-1, :-1] = self.linear.random(generator, condition)
        element[:-1, -1] = generator.standard_normal(self.size)
        return element

    @property
    def dimension(self) -> int:
        """That of the linear group and n."""
        return self.linear.dimension + self.size

    def generators(self) -> Generators:
        """Those of the linear group, then the n translations."""
        inner = self.linear.generators()
        found = np.zeros((len(inner) + self.size, self.size + 1, self.size + 1))
        found[: len(inner), :-1, :-1] = inner
        found[len(inner) + np.arange(self.size), np.arange(self.size), self.size] = 1
        return found

    def power(self, linear: Float[np.ndarray, "*over n n"], exponent: int) -> np.ndarray:
        """That of the linear group."""
        return self.linear.power(linear, exponent)


def random_orthogonal(size: int, generator: np.random.Generator) -> Float[np.ndarray, "size size"]:
    """The orthogonal factor of a normal matrix; both signs of the determinant occur."""
    return np.linalg.qr(generator.standard_normal((size, size)))[0]


def random_invertible(
    size: int, generator: np.random.Generator, condition: float
) -> Float[np.ndarray, "size size"]:
    """A random matrix of condition number `condition`, its singular values around 1.

    Random orthogonal factors, so both signs of the determinant occur.
    """
    left, right = (random_orthogonal(size, generator) for _ in range(2))
    sign = generator.choice([-1.0, 1.0])
    if size == 1:
        return np.full((1, 1), sign * condition ** generator.uniform(-0.5, 0.5))
    return sign * (left * np.geomspace(condition**0.5, condition**-0.5, size)) @ right
