"""Interfaces between layers that the outputs do not determine: one solution of what remains.

Where the outputs of layer i span less than all d_i coordinates, C_i is known on their span only,
and must still carry what the next layer reads. With the heads in order, the scalings λ known, C for
keys, E = C^{-T} for queries and D for the factors of values, the conditions at layer i are linear:

    C_i O = O' D,    D V / λ = V' C_{i-1}    (or C_i V / λ = V' C_{i-1}),
    C K = K' C_{i-1},    λ E Q = Q' C_{i-1}.

C and E are known already where the forms seen so far have full rank a (lemma-3.1). Elsewhere both
are unknowns, and the one condition that is not linear, Eᵀ C = 1, is met by Newton's method inside
the solutions of the linear ones.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import least_squares

from neuromanifold.errors import NotCoveredError
from neuromanifold.fibers.normal_form.factors import RANK_TOLERANCE, match_factors, numeric_rank
from neuromanifold.networks.family import Element
from neuromanifold.networks.weights import Layer, Weights

Matrix = Float[np.ndarray, "_ _"]
Block = tuple[str, int, int]
Known = dict[Block, Matrix]

MOST_UNKNOWNS = 3000
"""A dense factorisation of that many unknowns takes about half a minute."""

_DRAWS = 16
_BOUND = 1e-6  # the Jacobian of the couplings comes from differences


@dataclass(frozen=True, slots=True)
class Alignment:
    """What is known of a layer after its heads were matched.

    Attributes:
        order: the order σ of the heads.
        factors: the scalings λ.
        reach: a basis B of what the first weights feed into the layer.
        reach_new: the same for the second weights, B' = C_{i-1} B.
        interface: C_i behind the layer, None where it is not determined or there is none.
    """

    order: Int[np.ndarray, " head"]
    factors: Float[np.ndarray, " head"]
    reach: Float[np.ndarray, "d r"]
    reach_new: Float[np.ndarray, "d r"]
    interface: Float[np.ndarray, "d_next d_next"] | None


def complete_interfaces(
    W: Weights, W_new: Weights, alignments: list[Alignment]
) -> tuple[Element, tuple[str, ...]]:
    """All C_i, those that are not determined chosen, and a note on each choice (lemma-3.5)."""
    architecture = W.architecture
    if architecture.adds_input or architecture.depth == 1:
        return (), ()
    known: Known = {("C", 0, 0): np.eye(architecture.widths[0])}
    known["C", architecture.depth, 0] = np.eye(architecture.widths[-1])
    for i, alignment in enumerate(alignments[:-1], start=1):
        if alignment.interface is not None:
            known["C", i, 0] = alignment.interface
    wide = [i for i in range(1, architecture.depth) if ("C", i, 0) not in known]
    if not wide:
        return tuple(known["C", i, 0] for i in range(1, architecture.depth)), ()
    system = _System(known)
    for i, alignment in enumerate(alignments):
        if i in wide or i + 1 in wide:
            _add_layer(system, W.layers[i], W_new.layers[i], alignment, i, i in wide)
    solution, free = system.solve(wide)
    note = f"inter-layer C_{', C_'.join(map(str, wide))}: {free} free parameters"
    interfaces = tuple((known | solution)["C", i, 0] for i in range(1, architecture.depth))
    return interfaces, (note,) if free else ()


class _System:
    """Linear equations Σ ± L X R = 0 in matrix blocks X, of which some are known."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.shapes: dict[Block, int] = {}
        self.couplings: list[tuple[Block, Block]] = []
        self._equations: list[list[tuple[Matrix, Block, Matrix, float]]] = []

    def unknown(self, block: Block, size: int) -> None:
        """Declare a square unknown, unless it is known."""
        if block not in self.known:
            self.shapes[block] = size

    def equate(
        self, left: tuple[Matrix, Block, Matrix], right: tuple[Matrix, Block, Matrix]
    ) -> None:
        """L X R = L' X' R'."""
        self._equations.append([(*left, 1.0), (*right, -1.0)])

    def _assemble(self) -> tuple[Matrix, Float[np.ndarray, " rows"]]:
        """The matrix and right-hand side; row-major vec(L X R) = (L ⊗ Rᵀ) vec(X)."""
        starts = dict(
            zip(self.shapes, np.cumsum([0, *(n * n for n in self.shapes.values())]), strict=False)
        )
        total = sum(n * n for n in self.shapes.values())
        if total > MOST_UNKNOWNS:
            raise NotCoveredError(
                f"the interfaces between layers are not determined by the outputs, and finding "
                f"them needs {total} unknowns; at most {MOST_UNKNOWNS} are solved for here"
            )
        rows, sides = [np.zeros((0, total))], [np.zeros(0)]
        for terms in self._equations:
            shape = terms[0][0].shape[0] * terms[0][2].shape[1]
            row, side = np.zeros((shape, total)), np.zeros(shape)
            for L, block, R, sign in terms:
                if block in self.known:
                    side -= sign * (L @ self.known[block] @ R).ravel()
                else:
                    n = self.shapes[block]
                    row[:, starts[block] : starts[block] + n * n] += sign * np.kron(L, R.T)
            rows.append(row)
            sides.append(side)
        return np.concatenate(rows), np.concatenate(sides)

    def _blocks(self, x: Float[np.ndarray, " n"]) -> Known:
        blocks: Known = {}
        start = 0
        for block, n in self.shapes.items():
            blocks[block] = x[start : start + n * n].reshape(n, n)
            start += n * n
        return blocks

    def solve(self, wide: list[int]) -> tuple[Known, int]:
        """One solution with invertible blocks, and the dimension of all solutions near it.

        Among the draws those of positive determinants come first, then the best conditioned.
        """
        matrix, side = self._assemble()
        U, S, Nt = np.linalg.svd(matrix)
        r = numeric_rank(S, RANK_TOLERANCE)
        particular = Nt[:r].T @ ((U[:, :r].T @ side) / S[:r])
        kernel = Nt[r:].T
        generator = np.random.default_rng(0)
        scale = np.linalg.norm(particular) / np.sqrt(len(particular)) or 1.0
        best, best_cost, free = self._blocks(particular), (len(wide) + 1, np.inf), 0
        for _ in range(_DRAWS if kernel.shape[1] else 1):
            y = scale * generator.standard_normal(kernel.shape[1])
            y, bound = self._coupled(particular, kernel, y)
            blocks = self._blocks(particular + kernel @ y)
            interfaces = [blocks["C", i, 0] for i in wide]
            negative = sum(np.linalg.slogdet(C).sign <= 0 for C in interfaces)
            cost = (negative + self._mismatch(blocks), max(map(np.linalg.cond, interfaces)))
            if cost < best_cost:
                best, best_cost, free = blocks, cost, kernel.shape[1] - bound
        return _invertible(best, wide), free

    def _coupled(
        self, particular: np.ndarray, kernel: Matrix, y: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Newton's method on Eᵀ C = 1, from y, inside the linear solutions.

        The rank of these conditions at the solution comes with it: so many parameters they bind.
        """
        if not self.couplings or not len(y):
            return y, 0

        def defects(y: np.ndarray) -> np.ndarray:
            blocks = self._blocks(particular + kernel @ y)
            return np.concatenate(
                [
                    (blocks[e].T @ blocks[c] - np.eye(len(blocks[c]))).ravel()
                    for c, e in self.couplings
                ]
            )

        found = least_squares(defects, y, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200)
        return found.x, numeric_rank(np.linalg.svd(found.jac, compute_uv=False), _BOUND)

    def _mismatch(self, blocks: Known) -> int:
        """How many couplings Eᵀ C = 1 are not met."""
        return sum(
            bool(np.linalg.norm(blocks[e].T @ blocks[c] - np.eye(len(blocks[c]))) > 1e-9)
            for c, e in self.couplings
        )


def _invertible(blocks: Known, wide: list[int]) -> Known:
    """The blocks with 1 in place of a singular C_i: the residual measured afterwards tells."""
    singular = [i for i in wide if not np.linalg.cond(blocks["C", i, 0]) < 1e12]
    return blocks | {("C", i, 0): np.eye(len(blocks["C", i, 0])) for i in singular}


def _add_layer(
    system: _System, layer: Layer, layer_new: Layer, alignment: Alignment, i: int, reads: bool
) -> None:
    """The conditions at layer i; those of keys and queries only where C_i before it is unknown."""
    before, after = ("C", i, 0), ("C", i + 1, 0)
    d, d_next = layer.query.shape[2], layer.value_maps().shape[1]
    system.unknown(before, d)
    system.unknown(after, d_next)
    tensors = {name: np.asarray(T)[alignment.order] for name, T in layer.tensors().items()}
    tensors_new = {name: np.asarray(T) for name, T in layer_new.tensors().items()}
    for h, factor in enumerate(alignment.factors):
        head = _Head(
            {name: T[h] for name, T in tensors.items()},
            {name: T[h] for name, T in tensors_new.items()},
            factor,
            (i, h),
        )
        head.add_values(system)
        if reads:
            head.add_scores(system, alignment)


@dataclass(frozen=True, slots=True)
class _Head:
    """A head of both weights, with its scaling λ and its place: layer and number."""

    at: dict[str, Matrix]
    at_new: dict[str, Matrix]
    factor: float
    place: tuple[int, int]

    def add_values(self, system: _System) -> None:
        """C_i O = O' D and D V / λ = V' C_{i-1}, or the two in one."""
        i, h = self.place
        before, after, D = ("C", i, 0), ("C", i + 1, 0), ("D", i, h)
        V, V_new = self.at["value"] / self.factor, self.at_new["value"]
        one, one_before = map(np.eye, V.shape)
        if "output" in self.at:
            system.unknown(D, len(V))
            O_h, O_new = self.at["output"], self.at_new["output"]
            system.equate((np.eye(len(O_h)), after, O_h), (O_new, D, one))
            after = D
        system.equate((one, after, V), (V_new, before, one_before))

    def add_scores(self, system: _System, alignment: Alignment) -> None:
        """C K = K' C_{i-1} and λ E Q = Q' C_{i-1}, C and E = C^{-T} known if determined."""
        i, h = self.place
        before, C, E = ("C", i, 0), ("K", i, h), ("Q", i, h)
        B, B_new = alignment.reach, alignment.reach_new
        K, Q = self.at["key"], self.factor * self.at["query"]
        K_new, Q_new = self.at_new["key"], self.at_new["query"]
        one, one_before = map(np.eye, K.shape)
        seen = match_factors(K @ B, Q @ B, K_new @ B_new, Q_new @ B_new)
        if seen.free:
            system.unknown(C, len(K))
            system.unknown(E, len(K))
            system.couplings.append((C, E))
        else:
            system.known |= {C: seen.matrix, E: np.linalg.solve(seen.matrix.T, one)}
        system.equate((one, C, K), (K_new, before, one_before))
        system.equate((one, E, Q), (Q_new, before, one_before))
