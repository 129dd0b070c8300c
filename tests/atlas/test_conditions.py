"""Conditions compare numbers and can do nothing else."""

import pytest

from neuromanifold.atlas.expression import parse_condition
from neuromanifold.errors import ArgumentError

VALUES = {"widths": (4, 2, 3), "ranks": (2, 1), "heads": 3, "value_ranks": None, "skip": "inner"}


@pytest.mark.parametrize(
    "text",
    [
        "heads > 1",
        "max(ranks) <= min(widths)",
        "widths[0] == 4 and widths[-1] != 4",
        "len(set(widths[1:-1])) == 1 and sum(widths[:2]) == 6",
        "not (heads == 1 or skip == 'none')",
        "1 < heads <= 3",
        "value_ranks is None or value_ranks[0] > 2",
        "skip in ['inner', 'residual'] and skip not in ('none',)",
        "heads * 2 - 1 == 5 and heads // 2 == 1 and heads % 2 == 1 and -heads < 0",
        "any([heads > 5, heads < 4]) and all([heads > 0])",
        "heads / 2 > 1 and heads + 1 == 4",
    ],
)
def test_a_condition_means_what_python_means(text):
    assert parse_condition(text, VALUES).holds(VALUES)
    assert not parse_condition(f"not ({text})", VALUES).holds(VALUES)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("heads >", "is not an expression"),
        ("color == 1", "unknown name 'color'"),
        ("__import__('os')", "which conditions do not know"),
        ("heads.real > 1", "which conditions do not know"),
        ("(lambda: 1)()", "which conditions do not know"),
        ("[w for w in widths]", "which conditions do not know"),
        ("heads ** 9 > 1", "which conditions do not know"),
        ("max(ranks, key=len)", "which conditions do not know"),
        ("10**400 > 1", "which conditions do not know"),
        ("heads == 1j", "which conditions do not know"),
        ("heads == b'1'", "which conditions do not know"),
        ("not " * 1000 + "heads", "longer than 1000 characters"),
        ("not " * 200 + "heads", "nested more than 50 deep"),
        ("-" * 990 + "1", ""),
        ("(" * 300 + "heads" + ")" * 300, ""),
        (" < ".join(["heads"] * 2000), "longer than 1000 characters"),
        ("heads == 1\0", "is not an expression"),
        ("9" * 5000 + " > heads", "longer than 1000 characters"),
    ],
)
def test_what_is_no_condition_is_refused(text, sentence):
    with pytest.raises(ArgumentError) as caught:
        parse_condition(text, VALUES)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "widths[7] == 1",
        "value_ranks > 1",
        "heads // 0 == 1",
        "len((1,) * 1000000000) > 1",
        "'a' * 1000000000 == skip",
        "'%1000000000d' % 5 == skip",
        "widths + widths == ranks",
        "9" * 400 + " / 3 > 1",
        "set((set(widths), 1)) == 1",
        "max(()) > 1",
        "heads in 3",
    ],
)
def test_a_condition_without_a_value_says_so(text):
    with pytest.raises(ArgumentError, match="cannot be evaluated"):
        parse_condition(text, VALUES).holds(VALUES)
