"""A computation over its time is stopped, and only that one."""

import time

import pytest

from neuromanifold.atlas.deadline import DeadlinePassed, deadline


def work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        try:
            sum(range(100))
        except Exception:
            raise AssertionError from None


def test_what_takes_too_long_is_stopped():
    started = time.perf_counter()
    with pytest.raises(DeadlinePassed), deadline(0.1):
        work(30)
    assert time.perf_counter() - started < 10


def test_what_is_in_time_is_left_alone_also_afterwards():
    with deadline(0.1):
        work(0.01)
    work(0.3)


def test_no_limit_is_no_limit():
    with deadline(None):
        work(0.01)


def test_ending_at_the_limit_never_disturbs_what_comes_after():
    stopped = 0
    for step in range(60):
        try:
            with deadline(0.01):
                work(0.005 + 0.0002 * step)  # from half the limit to well above it
        except DeadlinePassed:
            stopped += 1
        work(0.005)
    with pytest.raises(DeadlinePassed), deadline(0.01):
        work(30)
    assert stopped < 60
