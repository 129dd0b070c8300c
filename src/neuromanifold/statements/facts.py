"""`Facts`: what is known about a network when one asks whether a statement applies to it."""

from dataclasses import dataclass, fields
from itertools import accumulate

from neuromanifold.architecture import Architecture


@dataclass(frozen=True, slots=True)
class Facts:
    """A plain record that hypotheses are read from.

    The sizes are always known. What depends on weights is None as long as no weights are meant; a
    hypothesis then speaks about generic weights of these sizes.

    Attributes:
        widths: d_0, …, d_l.
        ranks: a_1, …, a_l.
        tokens: the number t of tokens.
        attention: `lightning` or `softmax`.
        heads: the number of heads.
        value_ranks: None, or the ranks v_i that factor the value maps.
        skip: `none`, `residual` or `inner`.
        mask: `none` or `causal`.
        attention_ranks: the ranks of the attention matrices A_1, …, A_l.
        value_map_ranks: the ranks of the value maps V_1, …, V_l.
        form_ranks: the ranks of the virtual weights M_1, …, M_l.
        skew_forms: for each of M_1, …, M_l whether it is skew-symmetric.
        paired_forms: the pairs (k, m), k < m, counted from 1, for which 2^{k−1} M_k is plus or
            minus 2^{m−1} M_m, or cannot be told from it.
        linear_rank: the rank of the virtual weight L.
    """

    widths: tuple[int, ...]
    ranks: tuple[int, ...]
    tokens: int
    attention: str = "lightning"
    heads: int = 1
    value_ranks: tuple[int, ...] | None = None
    skip: str = "none"
    mask: str = "none"
    attention_ranks: tuple[int, ...] | None = None
    value_map_ranks: tuple[int, ...] | None = None
    form_ranks: tuple[int, ...] | None = None
    skew_forms: tuple[bool, ...] | None = None
    paired_forms: tuple[tuple[int, int], ...] | None = None
    linear_rank: int | None = None

    @classmethod
    def of(cls, architecture: Architecture) -> "Facts":
        """What the architecture alone says, that is, the facts of its generic weights."""
        known = {field.name for field in fields(cls)} & {
            field.name for field in fields(architecture)
        }
        return cls(**{name: getattr(architecture, name) for name in known})

    @property
    def depth(self) -> int:
        """The number l of layers."""
        return len(self.ranks)

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
    def first_collapsing(self) -> int | None:
        """The first layer, 1-based, whose softmax makes all tokens equal; None if there is none.

        That is so where M_i = 0, and with two tokens where M_i is skew-symmetric (softmax-fibers).
        Generic forms do not collapse.
        """
        forms = zip(self.form_ranks or (), self.skew_forms or (), strict=True)
        for i, (rank, skew) in enumerate(forms, start=1):
            if rank == 0 or (skew and self.tokens == 2):
                return i
        return None

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
