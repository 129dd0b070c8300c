"""A grid covers exactly the architectures that it describes."""

from itertools import product

import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.atlas.grid import Grid, load_grid
from neuromanifold.atlas.shipped import shipped
from neuromanifold.atlas.store import open_for_writing
from neuromanifold.atlas.sweep import run_sweep
from neuromanifold.atlas.tasks import (
    batches,
    count_text,
    largest_primes,
    survey,
)
from neuromanifold.cost import certifying, sizes_of
from neuromanifold.errors import ArgumentError, FileFormatError

SHIPPED = list(shipped("grids"))


def grid(architecture=None, **tasks):
    fields = {"widths": [2, 2], "ranks": [1], "tokens": 2, **(architecture or {})}
    return Grid.from_dict({"architecture": fields, "tasks": tasks})


def test_all_combinations_of_every_field_are_covered_once():
    found = list(
        grid(
            {
                "depth": "1..2",
                "widths": {"each": "1..2"},
                "ranks": {"equal": [1, 3]},
                "tokens": "1..5 step 2",
                "heads": range(1, 3),
                "attention": ["lightning", "softmax"],
                "value_ranks": ["none", {"each": [2]}],
            }
        ).architectures()
    )
    expected = {
        Architecture(
            widths,
            (a,) * l,
            t,
            attention,
            heads=H,
            value_ranks=v and (2,) * l,
        )
        for l in (1, 2)
        for widths in product((1, 2), repeat=l + 1)
        for a in (1, 3)
        for t in (1, 3, 5)
        for attention in ("lightning", "softmax")
        for H in (1, 2)
        for v in (None, 2)
    }
    assert len(found) == len(expected)
    assert set(found) == expected


def test_lists_that_are_written_out_give_the_depth():
    found = list(grid({"widths": [[3, 2], [4, 2, 3]], "ranks": {"each": [1, 2]}}).architectures())
    assert {a.widths for a in found} == {(3, 2), (4, 2, 3)}
    assert len(found) == 2 + 4
    assert [a.widths for a in grid({"widths": [4, 3], "ranks": [2]}).architectures()] == [(4, 3)]


def test_overlapping_alternatives_are_covered_once():
    both = grid({"depth": 2, "widths": [{"equal": "1..3"}, {"each": "1..2"}], "ranks": [1, 1]})
    found = list(both.architectures())
    assert len(found) == len(set(found)) == 3 + 8 - 2
    assert survey(both).dropped == {"repeated": 2}


def test_what_is_dropped_is_counted():
    found = survey(
        grid(
            {"widths": {"each": "1..3"}, "skip": ["none", "residual"], "tokens": [2, 3]},
            where="tokens == 3 or widths[0] == 1",
            max_parameters=14,
            seeds=3,
            primes=2,
            readouts=["logits", "decisions"],
        )
    )
    networks = [
        Architecture((d, e), (1,), t, skip=skip)
        for d, e, t in product((1, 2, 3), (1, 2, 3), (2, 3))
        for skip in ("none", "residual")
        if skip == "none" or d == e
    ]
    passing = [a for a in networks if a.tokens == 3 or a.widths[0] == 1]
    small = [a for a in passing if a.parameters <= 14]
    assert 0 < len(small) < len(passing) < len(networks) < 36
    assert found.architectures == len(small)
    assert found.tasks == len(small) * 3 * 2 * 2
    assert found.dropped == {
        "no network": 36 - len(networks),
        "filtered out": len(networks) - len(passing),
        "too many parameters": len(passing) - len(small),
    }


def test_a_sample_is_fixed_by_its_seed_and_gives_every_depth_its_share():
    def sample(seed):
        fields = {"depth": "1..3", "widths": {"each": "1..9"}, "ranks": {"each": "1..3"}}
        return list(grid(fields, sample=60, sample_seed=seed).architectures())

    assert sample(1) == sample(1) != sample(2)
    assert len(set(sample(1))) == 60
    assert [sum(a.depth == l for a in sample(1)) for l in (1, 2, 3)] == [20, 20, 20]


def test_a_sample_larger_than_the_grid_is_the_grid():
    fields = {"widths": {"each": "1..3"}}
    assert set(grid(fields, sample=50).architectures()) == set(grid(fields).architectures())


@pytest.mark.parametrize(
    ("architecture", "tasks", "sentence"),
    [
        ({"color": 1}, {}, "unknown field 'color' in [architecture]"),
        ({}, {"color": 1}, "unknown field 'color' in [tasks]"),
        ({"heads": "4..1"}, {}, "heads = '4..1' is empty"),
        ({"heads": []}, {}, "heads = [] is empty"),
        ({"widths": []}, {}, "widths = [] is empty"),
        ({"heads": "1-4"}, {}, "a range like '1..4'"),
        ({"heads": "1..4 step 0"}, {}, "step of heads must be at least 1"),
        ({"heads": 1.5}, {}, "heads must be a whole number"),
        ({"heads": True}, {}, "heads must be a whole number"),
        ({"widths": "1..4"}, {}, "widths has one size a layer"),
        ({"widths": {"every": [1]}}, {}, "widths has one size a layer"),
        ({"widths": [[2, "x"]]}, {}, "a range like '1..4'"),
        ({"widths": [2, 2, 2], "depth": 1}, {}, "a list is written out for 2 layers"),
        ({"depth": 0, "ranks": {"each": 1}, "widths": {"each": 1}}, {}, "depth must be at least 1"),
        ({"attention": "linear"}, {}, "attention must be some of lightning, softmax"),
        ({"temperature": "hot"}, {}, "temperature must be a number"),
        ({"tokens": 0}, {}, "contains no architecture: of its 1 combinations 1 no network"),
        ({}, {"where": "tokens > 9"}, "contains no architecture"),
        ({}, {"where": "t > 9"}, "unknown name 't'"),
        ({}, {"seeds": 0}, "seeds must be a whole number of at least 1"),
        ({}, {"readouts": ["loss"]}, "readouts must be some of"),
        ({}, {"readouts": []}, "readouts must be some of"),
        ({}, {"max_parameters": "many"}, "max_parameters must be a whole number"),
        ({}, {"readouts": 3}, "readouts must be some of"),
        ({}, {"readouts": [["logits"]]}, "readouts must be some of"),
        ({}, {"where": 5}, "where must be a condition as text"),
        ({}, {"seeds": 10**30}, "seeds must be at most"),
        ({}, {"primes": 10**6}, "primes must be at most 100"),
        ({"depth": 10**9}, {}, "depth must be at most 1000"),
        ({"depth": "1..1000000000"}, {}, "depth must be at most 1000"),
        ({"widths": [["1..1000000000"]]}, {}, "more than 1001 sizes"),
        ({"widths": [[1, 1]] * 2000}, {}, "more than 1000"),
        ({"heads": "1.." + "9" * 40}, {}, "a range like '1..4'"),
        ({"tokens": [2, [3]]}, {}, "tokens must be a whole number"),
        ({"attention": [["softmax"]]}, {}, "attention must be some of"),
        ({"heads": 1 << 20000}, {}, "heads must be at most 1000000000000"),
        ({}, {"sample": 1 << 20000}, "sample must be at most"),
    ],
)
def test_a_grid_that_is_wrong_is_one_sentence(architecture, tasks, sentence):
    with pytest.raises(ArgumentError) as caught:
        survey(grid(architecture, **tasks))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_combinations_are_counted_and_not_walked_through():
    huge = {"depth": "1..1000", "widths": {"each": "1..1000000000"}, "ranks": {"each": "1..9"}}
    counted = grid(huge, sample=3)
    assert counted.combinations == sum(10 ** (9 * (l + 1)) * 9**l for l in range(1, 1001))
    assert [a.depth for a in counted.architectures()] == [1, 2, 3]
    assert count_text(10**9) == "1000000000"
    assert count_text(10**5000) == "more than 10^4999"
    assert len(survey(grid({"heads": "1..1000000000"}, sample=5)).networks) == 5


def test_a_sample_of_nothing_gives_up():
    nothing = grid({"heads": "1..1000000000"}, sample=10**9, where="tokens > 5")
    with pytest.raises(ArgumentError, match="contains no architecture"):
        survey(nothing)


def test_a_grid_is_walked_once_in_a_sweep(tmp_path, monkeypatch):
    walks = []
    examine = Grid.examine
    monkeypatch.setattr(Grid, "examine", lambda self: walks.append(self) or examine(self))
    plan = survey(grid({"heads": [1, 2]}, seeds=2))
    with open_for_writing(tmp_path / "a.sqlite") as store:
        with pytest.raises(ZeroDivisionError):
            run_sweep(plan, store, lambda: 1 / 0, report=lambda _: None)
        assert store.sweeps()[0].tasks == plan.tasks == len(list(plan)) == 4
    assert len(walks) == 1


def test_a_grid_needs_widths_ranks_and_tokens():
    with pytest.raises(ArgumentError, match="lacks 'ranks'"):
        Grid.from_dict({"architecture": {"widths": [1, 1], "tokens": 1}})


def test_a_file_that_is_no_grid_is_refused(tmp_path):
    path = tmp_path / "g.toml"
    with pytest.raises(FileFormatError, match="is not a file"):
        load_grid(path)
    path.write_text("[architecture")
    with pytest.raises(FileFormatError, match="is not valid TOML"):
        load_grid(path)
    for text in ("a = " + "[" * 5000 + "]" * 5000, "a = " + "9" * 5000, "#" + "x" * 2**20):
        path.write_text(text)
        with pytest.raises(FileFormatError):
            load_grid(path)
    path.write_text("[architectures]\n")
    with pytest.raises(ArgumentError, match=r"g\.toml: unknown field 'architectures'"):
        load_grid(path)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_grids_are_of_a_size_for_minutes(name):
    read = load_grid(name)
    found = survey(read)
    assert read.name == name
    assert 400 <= found.architectures <= found.tasks <= 1600


def test_batches_hold_every_task_once_and_tasks_of_similar_cost():
    sweep = grid(
        {"depth": "1..3", "widths": {"each": "1..36"}, "ranks": {"equal": "1..2"}}, sample=300
    )
    cut = list(batches(survey(sweep)))
    tasks = [task for batch in cut for task in batch]
    assert len(tasks) == len(set(tasks)) == 300
    assert set(tasks) == set(survey(sweep))
    assert len(cut) < 100
    everything = [certifying(sizes_of(task.architecture)).seconds for task in tasks]
    assert max(everything) > 3 * min(everything)
    for batch in cut:
        costs = [certifying(sizes_of(task.architecture)).seconds for task in batch]
        assert max(costs) <= 2 * min(costs)


def test_primes_are_the_largest_below_the_bound():
    from flint import nmod

    first, *rest = largest_primes(3)
    assert first == 8388593
    assert rest == sorted(rest, reverse=True)
    assert all(pow(int(nmod(3, p)), p - 1, p) == 1 for p in rest)
