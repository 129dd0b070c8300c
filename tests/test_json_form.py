"""The one JSON form of values: what pages, commands and reports show."""

from fractions import Fraction

import numpy as np
import pytest

from neuromanifold.files import LARGEST_EXACT, as_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        ({1: (2.5, None, True)}, {"1": [2.5, None, True]}),
        (float("nan"), None),
        ([float("inf"), np.array([-np.inf, 1.0])], [None, [None, 1.0]]),
        (Fraction(1, 3), 1 / 3),
        (2**60, 2**60),
    ],
)
def test_values_become_what_json_has(value, expected):
    assert as_json(value) == expected
    assert type(as_json(value)) is type(expected)


def test_a_page_gets_numbers_that_javascript_would_round_as_text():
    assert as_json([2**53, 2**53 + 1, True], largest=LARGEST_EXACT) == [2**53, str(2**53 + 1), True]
