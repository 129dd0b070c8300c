"""`Facts`: what is known about a network when one asks whether a statement applies to it."""

from dataclasses import dataclass, fields
from itertools import accumulate

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArchitectureError


@dataclass(frozen=True, slots=True)
class Facts(Architecture):
    """A network, and what is known about its weights: what hypotheses are read from.

    The sizes are always known. What depends on weights is None as long as no weights are meant; a
    hypothesis then speaks about generic weights of these sizes.

    Attributes:
        attention_ranks: the ranks of the attention matrices A_1, …, A_l.
        value_map_ranks: the ranks of the value maps V_1, …, V_l.
        form_ranks: the ranks of the virtual weights M_1, …, M_l.
        skew_forms: for each of M_1, …, M_l whether it is skew-symmetric.
        paired_forms: the pairs (k, m), k < m, counted from 1, for which 2^{k−1} M_k is plus or
            minus 2^{m−1} M_m, or cannot be told from it.
        linear_rank: the rank of the virtual weight L.
    """

    attention_ranks: tuple[int, ...] | None = None
    value_map_ranks: tuple[int, ...] | None = None
    form_ranks: tuple[int, ...] | None = None
    skew_forms: tuple[bool, ...] | None = None
    paired_forms: tuple[tuple[int, int], ...] | None = None
    linear_rank: int | None = None

    @classmethod
    def of(cls, architecture: Architecture) -> "Facts":
        """What the architecture says: the facts of its generic weights, unless it has facts."""
        if isinstance(architecture, Facts):
            return architecture
        if not isinstance(architecture, Architecture):
            raise ArchitectureError(
                f"statements are about an Architecture; got {type(architecture).__name__}: give an "
                "Architecture, or ask `certify`, which takes every Network"
            )
        return cls(
            **{field.name: getattr(architecture, field.name) for field in fields(architecture)}
        )

    @property
    def reach(self) -> tuple[int, ...]:
        """The largest possible ranks r_0, …, r_l of L_0 = 1, L_1, …, L_l.

        r_i is the smallest of d_0, …, d_i and, with factored value maps, of v_1, …, v_i.
        """
        values = self.value_ranks or self.widths[1:]
        sizes = (
            self.widths[0],
            *(min(d, v) for d, v in zip(self.widths[1:], values, strict=True)),
        )
        return tuple(accumulate(sizes, min))

    @property
    def seen_widths(self) -> tuple[int, ...]:
        """Of every width what counts with several heads (head-mixing).

        The layer before an interior width fills at most the sum of the images of its H value maps
        (for lightning, at most the space of its quadratic forms), and the layer after it sees at
        most what its heads' forms and value maps see; both depend on the neighbouring widths.
        """
        H, c = self.heads, list(self.widths)
        if self.skip == "residual":
            return tuple(c)
        values = self.value_ranks or self.widths[1:]
        before: list[int] = []
        while c != before:
            before = list(c)
            for i in range(1, self.depth):
                filled = H * min(c[i - 1], values[i - 1])
                if self.attention == "lightning":
                    space = c[i - 1] * c[i - 1] * (c[i - 1] + 1) // 2
                    filled = min(filled, space + (c[i - 1] if self.skip == "inner" else 0))
                seen = H * (2 * min(self.ranks[i], c[i]) + min(c[i], c[i + 1], values[i]))
                c[i] = min(c[i], filled, seen)
        return tuple(c)

    @property
    def generic_form_ranks(self) -> tuple[int, ...]:
        """The ranks α_i = min(a_i, r_{i-1}) of the virtual weights M_i at generic weights."""
        return tuple(min(a, r) for a, r in zip(self.ranks, self.reach, strict=False))
