"""Every statement has code and a test, and every citation has a statement."""

from functools import partial

import pytest

from citations import IDS, NUMBERED, citations, cited_by, covered_by
from neuromanifold.errors import ArchitectureError, ArgumentError
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.formula.redundancy import redundancy
from neuromanifold.networks.weights import random_weights
from neuromanifold.statements import STATEMENTS, Facts, get, unmet

CITED = set(cited_by())
COVERED = set(covered_by())


@pytest.mark.parametrize("id_", IDS)
def test_a_statement_is_cited_by_code_and_covered_by_a_test(id_):
    assert id_ in CITED, f"no docstring or comment outside `statements` cites ({id_})"
    assert id_ in COVERED, f'no test carries @pytest.mark.statement("{id_}")'


def test_every_citation_and_every_marker_names_a_statement():
    assert CITED - set(IDS) == set()
    assert COVERED - set(IDS) == set()


def test_citations_are_found_in_prose_and_not_in_names():
    assert citations("holds by (thm-3.2) and eq-8, (all-widths, one-token)") == {
        "thm-3.2",
        "eq-8",
        "all-widths",
        "one-token",
    }
    assert citations("the redundancy of all-widths networks") == set()
    assert citations("see cor-a.4 and conj-3.10.") == {"cor-a.4", "conj-3.10"}


def test_ids_are_unique_and_every_numbered_item_is_there():
    assert len(set(IDS)) == len(IDS)
    numbered = (
        [f"def-{n}" for n in range(1, 4)]
        + [f"eq-{n}" for n in range(1, 17)]
        + [f"fig-{n}" for n in range(1, 5)]
        + ["lemma-3.1", "thm-3.2", "cor-3.3", "thm-3.4", "lemma-3.5", "lemma-3.6", "thm-3.7"]
        + ["cor-3.8", "thm-3.9", "conj-3.10"]
        + ["cor-a.1", "cor-a.2", "lemma-a.3", "cor-a.4", "prop-a.5", "cor-a.6"]
    )
    assert set(numbered) <= set(IDS)
    assert {id_ for id_ in IDS if NUMBERED.fullmatch(id_)} == set(numbered)


def test_statements_claim_what_their_kind_allows():
    for statement in STATEMENTS:
        assert statement.claim.endswith(".")
        if statement.kind in ("lemma", "theorem", "corollary", "proposition"):
            assert statement.status == "theorem"
        if statement.kind == "conjecture":  # one that was proved keeps its name and says by whom
            assert statement.status == "conjecture" or statement.prior
        if statement.kind in ("definition", "figure"):
            assert statement.status == "none"


def test_the_id_of_a_numbered_item_says_its_kind_and_its_source():
    kinds = {
        id_: (get(id_).kind, get(id_).source, get(id_).status)
        for id_ in ("def-1", "eq-1", "eq-2", "cor-a.4", "conj-3.10", "fig-3", "all-widths")
    }
    assert kinds == {
        "def-1": ("definition", "Definition 1", "none"),
        "eq-1": ("equation", "Equation 1", "none"),
        "eq-2": ("equation", "Equation 2", "theorem"),
        "cor-a.4": ("corollary", "Corollary A.4", "theorem"),
        "conj-3.10": ("conjecture", "Conjecture 3.10", "theorem"),
        "fig-3": ("figure", "Figure 3", "none"),
        "all-widths": ("result", "this project", "theorem"),
    }
    form = get("thm-3.7").to_dict()
    assert form["hypotheses"] == [one.text for one in get("thm-3.7").hypotheses]
    assert (form["id"], form["source"]) == ("thm-3.7", "Theorem 3.7")


@pytest.mark.usefixtures("wrong_types")
@pytest.mark.parametrize("wrong", [None, "4,2,3"])
@pytest.mark.parametrize("ask", [dimension_formula, redundancy, partial(random_weights, seed=0)])
def test_what_is_no_architecture_is_refused_with_its_type(ask, wrong):
    with pytest.raises(ArchitectureError, match=f"an Architecture.*got {type(wrong).__name__}: "):
        ask(wrong)


@pytest.mark.parametrize(
    ("word", "near"),
    [("thm-9.9", "like thm-3.9 or "), ("Thm 3.7", "like thm-3.7 or "), ("?", "like def-1 or ")],
)
def test_an_unknown_id_is_refused_with_near_ones(word, near):
    with pytest.raises(ArgumentError) as refused:
        get(word)
    assert f"a statement id was wanted, {near}" in str(refused.value)
    assert f"got {word!r}: `neuromanifold statements` lists all" in str(refused.value)


PLAIN = {"widths": (3, 3, 3), "ranks": (2, 2), "tokens": 3}


@pytest.mark.parametrize(
    ("id_", "changes", "expected"),
    [
        ("thm-3.7", {}, ()),
        ("thm-3.7", {"tokens": 2}, ("tokens = 2 < 3",)),
        ("thm-3.7", {"ranks": (1, 2)}, ("ranks[0] = 1 < 2",)),
        ("thm-3.7", {"widths": (3, 1, 3)}, ("widths[1] = 1 < 2",)),
        ("thm-3.7", {"widths": (3, 3, 1)}, ()),
        ("thm-3.7", {"value_ranks": (1, 3)}, ("value_ranks[0] = 1 < 2",)),
        ("thm-3.7", {"value_ranks": (3, 1)}, ()),
        ("thm-3.7", {"form_ranks": (2, 1)}, ("rank M_2 = 1 < 2",)),
        ("thm-3.7", {"skew_forms": (True, False)}, ()),
        ("thm-3.7", {"skew_forms": (False, True)}, ("M_2 is skew-symmetric",)),
        ("thm-3.7", {"linear_rank": 0}, ("rank L = 0 < 1",)),
        ("thm-3.7", {"heads": 2, "skip": "inner"}, ("heads = 2 > 1", "skip = inner, not none")),
        ("thm-3.7", {"mask": "causal"}, ("mask = causal, not none",)),
        ("thm-3.9", {"attention": "softmax"}, ("depth = 2 > 1 with softmax",)),
        ("thm-3.9", {}, ("attention = lightning, not softmax", "depth = 2 > 1 with lightning")),
        ("cor-3.8", {"widths": (2, 3, 2)}, ("widths[0] = 2 < 3", "widths[2] = 2 < 3")),
        ("cor-3.8", {"widths": (3, 1, 3)}, ("widths[1] = 1 < 2",)),
        (
            "cor-3.8",
            {"widths": (4, 3, 2, 4), "ranks": (2, 2, 2)},
            ("widths[2] = 2, not 3",),
        ),
        ("cor-3.8", {"value_ranks": (2, 3)}, ("value_ranks[0] = 2 < 3",)),
        ("cor-3.3", {"widths": (1, 2), "ranks": (2,)}, ("widths[0] = 1 < 2",)),
        (
            "cor-3.3",
            {"widths": (2, 1), "ranks": (1,)},
            ("widths[1] = 1 < 2 and ranks[0] = 1 < 2",),
        ),
        ("cor-3.3", {"widths": (2, 1), "ranks": (2,)}, ()),
        ("lemma-3.1", {"ranks": (2, 4)}, ("rank A_2 = 3 < 4 = ranks[1]",)),
        ("lemma-3.1", {"attention_ranks": (1, 2)}, ("rank A_1 = 1 < 2 = ranks[0]",)),
        ("lemma-3.5", {"linear_rank": 2}, ("rank L = 2 < 3",)),
        (
            "thm-3.9",
            {
                "widths": (3, 3),
                "ranks": (2,),
                "attention": "softmax",
                "value_map_ranks": (0,),
            },
            ("rank V_1 = 0 < 1",),
        ),
        ("one-token", {}, ("tokens = 3 > 1",)),
        ("head-mixing", {}, ("heads = 1 < 2",)),
        ("head-mixing", {"heads": 2, "mask": "causal", "attention": "softmax"}, ()),
        (
            "head-mixing",
            {"heads": 2, "widths": (2, 4, 2)},
            (
                "widths[1] = 4 > 2, wider than the layer before it, inside a network with several "
                "heads",
            ),
        ),
        ("virtual-bound", {"skip": "residual"}, ("skip = residual, not none or inner",)),
    ],
)
def test_unmet_hypotheses_are_named(id_, changes, expected):
    assert unmet(get(id_), Facts(**{**PLAIN, **changes})) == expected
