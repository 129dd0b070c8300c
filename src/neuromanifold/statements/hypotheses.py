"""The hypotheses that statements share, each with the text of how it is unmet."""

from collections.abc import Sequence

from neuromanifold.statements.facts import Facts
from neuromanifold.statements.statement import Hypothesis


def tokens_at_least(least: int) -> Hypothesis:
    """At least this many tokens."""
    return Hypothesis(
        f"at least {least} tokens",
        lambda facts: _fails(facts.tokens < least, f"tokens = {facts.tokens} < {least}"),
    )


def _fails(unmet: bool, text: str) -> tuple[str, ...]:
    return (text,) if unmet else ()


def _below(least: int, name: str, sizes: Sequence[int], first: int = 0) -> tuple[str, ...]:
    """The sizes, counted from `first`, that are smaller; `name` has a place for the number."""
    return tuple(
        f"{name.format(i)} = {size} < {least}"
        for i, size in enumerate(sizes, start=first)
        if size < least
    )


def _word(field: str, wanted: str) -> Hypothesis:
    def failures(facts: Facts) -> tuple[str, ...]:
        value = getattr(facts, field)
        return _fails(value != wanted, f"{field} = {value}, not {wanted}")

    return Hypothesis(f"{field} {wanted}", failures)


LIGHTNING = _word("attention", "lightning")
SOFTMAX = _word("attention", "softmax")
NO_SKIP = _word("skip", "none")
RESIDUAL_SKIP = _word("skip", "residual")
INNER_SKIP = _word("skip", "inner")
NO_MASK = _word("mask", "none")
CAUSAL_MASK = _word("mask", "causal")

ALL_SEE_ALL = Hypothesis(
    "no mask, or one token",
    lambda facts: _fails(
        facts.mask != "none" and facts.tokens > 1, f"mask = {facts.mask}, not none"
    ),
)

NOT_RESIDUAL = Hypothesis(
    "skip none or inner",
    lambda facts: _fails(facts.skip == "residual", "skip = residual, not none or inner"),
)

ONE_HEAD = Hypothesis(
    "one head", lambda facts: _fails(facts.heads > 1, f"heads = {facts.heads} > 1")
)
SEVERAL_HEADS = Hypothesis("several heads", lambda facts: _fails(facts.heads == 1, "heads = 1 < 2"))
ONE_TOKEN = Hypothesis(
    "one token", lambda facts: _fails(facts.tokens > 1, f"tokens = {facts.tokens} > 1")
)
ONE_LAYER = Hypothesis(
    "one layer",
    lambda facts: _fails(facts.depth > 1, f"depth = {facts.depth} > 1 with {facts.attention}"),
)
SEVERAL_LAYERS = Hypothesis(
    "at least two layers", lambda facts: _fails(facts.depth < 2, "depth = 1 < 2")
)


def _bottleneck(facts: Facts) -> tuple[str, ...]:
    d = facts.widths
    delta = d[1] if facts.depth > 1 else min(d)
    unequal = [f"widths[{i}] = {d[i]}, not {delta}" for i in range(2, facts.depth) if d[i] != delta]
    narrow = [f"widths[{i}] = {d[i]} < {delta}" for i in (0, facts.depth) if d[i] < delta]
    return (*unequal, *narrow)


BOTTLENECK = Hypothesis(
    "a bottleneck: all interior widths equal to some δ, input and output widths at least δ",
    _bottleneck,
)

WIDE_BOTTLENECK = Hypothesis(
    "interior widths at least 2",
    lambda facts: _below(2, "widths[{}]", facts.widths[1 : facts.depth], first=1),
)

RANKS_AT_LEAST_TWO = Hypothesis(
    "query/key ranks at least 2", lambda facts: _below(2, "ranks[{}]", facts.ranks)
)


def _full_values(facts: Facts) -> tuple[str, ...]:
    if facts.value_ranks is None:
        return ()
    return tuple(
        f"value_ranks[{i}] = {v} < {min(facts.widths[i : i + 2])}"
        for i, v in enumerate(facts.value_ranks)
        if v < min(facts.widths[i : i + 2])
    )


FULL_VALUES = Hypothesis(
    "value maps of any rank: not factored, or factored through enough coordinates", _full_values
)


def _not_too_small(facts: Facts) -> tuple[str, ...]:
    d, d_out, a = facts.widths[0], facts.widths[1], facts.ranks[0]
    if d < 2:
        return (f"widths[0] = {d} < 2",)
    return _fails(d_out < 2 and a < 2, f"widths[1] = {d_out} < 2 and ranks[0] = {a} < 2")


NOT_TOO_SMALL = Hypothesis(
    "input width at least 2, and output width or query/key rank at least 2", _not_too_small
)


def _forms_of_rank_two(facts: Facts) -> tuple[str, ...]:
    if facts.form_ranks is not None:
        return _below(2, "rank M_{}", facts.form_ranks, first=1)
    # At generic weights rank M_i = min(a_i, d_0, …, d_{i-1}, v_1, …, v_{i-1}): name the ones.
    last = max((i for i, rank in enumerate(facts.generic_form_ranks) if rank < 2), default=-1)
    return (
        *_below(2, "ranks[{}]", facts.ranks),
        *_below(2, "widths[{}]", facts.widths[: last + 1]),
        *_below(2, "value_ranks[{}]", (facts.value_ranks or ())[: max(last, 0)]),
    )


FORMS_OF_RANK_TWO = Hypothesis("every M_i of rank at least 2", _forms_of_rank_two)

FORMS_NOT_SKEW = Hypothesis(
    "no M_i with i > 1 skew-symmetric",
    lambda facts: tuple(
        f"M_{i} is skew-symmetric"
        for i, skew in enumerate(facts.skew_forms or (), start=1)
        if skew and i > 1
    ),
)

LINEAR_NOT_ZERO = Hypothesis(
    "L not zero", lambda facts: _fails(facts.linear_rank == 0, "rank L = 0 < 1")
)


def _linear_of_full_rank(facts: Facts) -> tuple[str, ...]:
    delta = min(facts.widths)
    rank = facts.reach[-1] if facts.linear_rank is None else facts.linear_rank
    return _fails(rank < delta, f"rank L = {rank} < {delta}")


LINEAR_OF_FULL_RANK = Hypothesis("L of rank δ", _linear_of_full_rank)


def _attention_of_full_rank(facts: Facts) -> tuple[str, ...]:
    found = facts.attention_ranks or tuple(map(min, facts.ranks, facts.widths))
    return tuple(
        f"rank A_{i} = {rank} < {a} = ranks[{i - 1}]"
        for i, (rank, a) in enumerate(zip(found, facts.ranks, strict=True), start=1)
        if rank < a
    )


ATTENTION_OF_FULL_RANK = Hypothesis("every A_i of rank a_i", _attention_of_full_rank)


VALUE_MAP_NOT_ZERO = Hypothesis(
    "V not zero", lambda facts: _below(1, "rank V_{}", facts.value_map_ranks or (), first=1)
)


def _no_widening(facts: Facts) -> tuple[str, ...]:
    if facts.attention == "softmax" and facts.tokens >= 3:
        return ()
    c = facts.seen_widths
    return tuple(
        f"widths[{i}] = {facts.widths[i]} > {c[i - 1]}, wider than the layer before it, inside a "
        "network with several heads"
        for i in range(1, facts.depth)
        if c[i] > c[i - 1]
    )


NO_WIDENING = Hypothesis(
    "no interior layer wider than the one before it, as far as its width counts; or softmax and at "
    "least 3 tokens",
    _no_widening,
)

ALL_WIDTHS_TWO = Hypothesis(
    "input and interior widths at least 2", lambda facts: _below(2, "widths[{}]", facts.widths[:-1])
)

NO_SKEW_FORM_OF_TWO_TOKENS = Hypothesis(
    "at least 3 tokens, or no M_i with i < l skew-symmetric",
    lambda facts: tuple(
        f"M_{i} is skew-symmetric, with two tokens"
        for i, skew in enumerate((facts.skew_forms or ())[:-1], start=1)
        if skew and facts.tokens == 2
    ),
)


def _apart_with_two_tokens(facts: Facts) -> tuple[str, ...]:
    if facts.tokens != 2:
        return ()
    ranks = enumerate(facts.form_ranks or (), start=1)
    zero = [f"M_{i} = 0, with two tokens" for i, rank in ranks if rank == 0]
    pairs = [
        f"M_{k} = ± {2 ** (m - k)} M_{m} to within rounding, with two tokens"
        for k, m in facts.paired_forms or ()
    ]
    return (*zero, *pairs)


FORMS_APART_WITH_TWO_TOKENS = Hypothesis(
    "at least 3 tokens, or no 2^{k-1} M_k zero or plus or minus another one", _apart_with_two_tokens
)


def _one_token_shows_all(facts: Facts) -> tuple[str, ...]:
    if facts.skip != "residual" or facts.value_ranks is None or facts.depth == 1:
        return ()
    d, most = facts.widths[0], facts.heads * max(facts.value_ranks)
    return _fails(most < d, f"heads · value_ranks = {most} < {d} in every layer, skip = residual")


ONE_TOKEN_SHOWS_ALL = Hypothesis(
    "no residual skip, or one layer, or a layer whose value maps add up to any matrix",
    _one_token_shows_all,
)
