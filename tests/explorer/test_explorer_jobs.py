"""Work in a process of its own: it answers, reports, ends in time, and can be cancelled."""

import os
import time

import pytest

from neuromanifold.errors import ArgumentError
from neuromanifold.explorer.jobs import WAITING_JOBS, Jobs


def runner(task, arguments, report):
    """What the workers of these tests run; it is imported by them."""
    report(f"doing {task}")
    if task == "sleep":
        time.sleep(60)
    if task == "refuse":
        raise ArgumentError("something\n   else was wanted")
    if task == "break":
        raise RuntimeError("broken")
    if task == "die":
        os._exit(3)
    return {"task": task, "arguments": arguments, "process": os.getpid()}


@pytest.fixture
def jobs():
    made = Jobs(runner, time_limit=20.0)
    yield made
    made.close()


def done(job):
    assert job.finished.wait(30)
    return job


def test_one_process_does_one_job_after_another(jobs):
    first = done(jobs.submit("answer", {"n": 1}, long=False))
    second = done(jobs.submit("answer", {"n": 2}, long=False))
    assert first.state == second.state == "done"
    assert second.result["arguments"] == {"n": 2}
    assert first.result["process"] == second.result["process"] != os.getpid()


def test_a_mistake_is_a_sentence_and_the_worker_goes_on(jobs, capfd):
    assert done(jobs.submit("refuse", {}, long=False)).message == "something else was wanted"
    broken = done(jobs.submit("break", {}, long=False))
    assert broken.state == "failed"
    assert "please report it" in broken.message
    assert "RuntimeError: broken" in capfd.readouterr().err
    assert done(jobs.submit("answer", {}, long=False)).state == "done"


def test_a_cancelled_job_ends_at_once_and_frees_the_lane(jobs):
    running = jobs.submit("sleep", {}, long=True)
    while running.message != "doing sleep":
        time.sleep(0.02)
    waiting = jobs.submit("sleep", {}, long=True)
    started = time.monotonic()
    assert jobs.cancel(running.id).state == "cancelled"
    jobs.cancel(waiting.id)
    assert done(jobs.submit("answer", {}, long=True)).state == "done"
    assert time.monotonic() - started < 15
    assert waiting.result is None


def test_a_long_job_does_not_hold_up_the_quick_ones(jobs):
    jobs.submit("sleep", {}, long=True)
    assert done(jobs.submit("answer", {}, long=False)).state == "done"


def test_a_job_that_takes_too_long_is_ended():
    jobs = Jobs(runner, time_limit=1.5)
    ended = done(jobs.submit("sleep", {}, long=True))
    assert ended.state == "cancelled"
    assert "time limit" in ended.message
    jobs.close()


def test_a_worker_that_dies_is_replaced(jobs):
    dead = done(jobs.submit("die", {}, long=False))
    assert dead.state == "failed"
    assert "memory" in dead.message
    assert done(jobs.submit("answer", {}, long=False)).state == "done"


def test_the_queue_is_bounded(jobs):
    first = jobs.submit("sleep", {}, long=True)
    while first.state == "waiting":
        time.sleep(0.02)
    for _ in range(WAITING_JOBS):
        jobs.submit("sleep", {}, long=True)
    with pytest.raises(ArgumentError, match="are waiting"):
        jobs.submit("sleep", {}, long=True)
