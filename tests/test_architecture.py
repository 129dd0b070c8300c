"""An architecture that cannot exist cannot be constructed, and the refusal says why."""

import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArchitectureError

GOOD = {"widths": (3, 3, 3), "ranks": (2, 2), "tokens": 3}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"widths": (3, 0, 3)}, r"widths\[1\] must be at least 1; got 0"),
        ({"widths": (3, -1, 3)}, r"widths\[1\] must be at least 1; got -1"),
        ({"widths": (3,)}, "at least two sizes"),
        ({"widths": "333"}, "list of whole numbers"),
        ({"widths": (3, 2.5, 3)}, r"widths\[1\] must be a whole number; got 2.5"),
        ({"widths": (3, True, 3)}, "must be a whole number; got True"),
        ({"ranks": (2,)}, "one number for each of the 2 layers .*; got 1"),
        ({"ranks": ()}, "one number for each of the 2 layers .*; got 0"),
        ({"ranks": (2, 0)}, r"ranks\[1\] must be at least 1"),
        ({"tokens": 0}, "tokens must be at least 1; got 0"),
        ({"heads": 0}, "heads must be at least 1"),
        ({"heads": (2, 2)}, "heads must be a whole number"),
        ({"value_ranks": (1,)}, "value_ranks must list one number for each of the 2 layers"),
        ({"attention": "linear"}, "attention must be one of lightning, softmax; got 'linear'"),
        ({"skip": "outer"}, "skip must be one of none, residual, inner; got 'outer'"),
        ({"mask": "full"}, "mask must be one of none, causal; got 'full'"),
        ({"temperature": 2.0}, "temperature belongs to softmax"),
        ({"attention": "softmax", "temperature": 0}, "positive and finite; got 0"),
        ({"attention": "softmax", "temperature": float("nan")}, "positive and finite"),
        ({"attention": "softmax", "temperature": "hot"}, "temperature must be a number"),
        ({"widths": (3, 2, 3), "skip": "residual"}, "needs equal widths"),
    ],
)
def test_a_wrong_combination_cannot_be_constructed(change, sentence):
    with pytest.raises(ArchitectureError, match=sentence):
        Architecture(**{**GOOD, **change})


def test_the_json_form_round_trips(architecture):
    assert Architecture.from_json(architecture.to_json()) == architecture
    assert hash(Architecture.from_dict(architecture.to_dict())) == hash(architecture)


def test_numpy_sizes_and_lists_are_taken():
    built = Architecture(widths=[np.int64(3), 3, 3], ranks=[2, np.int32(2)], tokens=np.int64(3))
    assert built == Architecture(**GOOD)
    assert type(built.widths[0]) is int


def test_names_tell_networks_apart():
    from architectures import ARCHITECTURES

    assert len({architecture.name for architecture in ARCHITECTURES}) == len(ARCHITECTURES) >= 25


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not valid JSON"),
        ("[1]", "a JSON object"),
        ('{"widths": [2, 2], "ranks": [1]}', "lacks its field 'tokens'"),
        ('{"widths": [2, 2], "ranks": [1], "tokens": 1, "depth": 3}', "unknown .* 'depth'"),
    ],
)
def test_bad_json_is_refused(text, sentence):
    with pytest.raises(ArchitectureError, match=sentence):
        Architecture.from_json(text)
