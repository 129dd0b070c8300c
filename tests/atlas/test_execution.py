"""Execution records what fails, and holds few batches at a time."""

import multiprocessing
import os

import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.atlas.computation import run_batch, run_task
from neuromanifold.atlas.local_processes import local_processes
from neuromanifold.atlas.record import RECORD_VERSION
from neuromanifold.atlas.sweep import Finished, execute
from neuromanifold.atlas.tasks import Task
from neuromanifold.errors import NeuromanifoldError

PRIME = 8388593
SMALL = Task(Architecture((2, 2), (1,), 2), "logits", 0, PRIME)
LONG = Task(Architecture((64, 64, 64, 64), (32, 32, 32), 3), "logits", 0, PRIME)
WRONG = Task(Architecture((2, 2), (1,), 2), "logits", 0, 15)


class Inline:
    """A cluster without processes, on which some tasks kill their worker."""

    cores = 2

    def __init__(self, poison=()):
        self.poison, self.running = set(poison), []

    def submit(self, batch, time_limit):
        assert len(self.running) < self.cores
        self.running.append((batch, time_limit))

    def wait(self):
        batch, time_limit = self.running.pop(0)
        died = self.poison & set(batch)
        return Finished(batch, None if died else run_batch(batch, time_limit, RECORD_VERSION))


def collect(cluster, batches, time_limit=None):
    found = []
    execute(cluster, iter(batches), time_limit, found.extend)
    return {record.task: record for record in found}


def test_a_record_says_what_certificate_and_formula_say():
    from neuromanifold.certificates.exact import certify
    from neuromanifold.formula.formula import dimension_formula

    network = Architecture((3, 3, 2), (2, 2), 2, "softmax")
    record = run_task(Task(network, "logits", 5, PRIME))
    certificate, formula = certify(network, seed=5), dimension_formula(network)
    assert (record.rank, record.upper) == (certificate.rank, certificate.upper)
    assert (record.verdict, record.upper_source) == (certificate.verdict, certificate.upper_source)
    assert (record.formula, record.statement) == (formula.dimension, formula.statement)
    assert record.evidence["inputs"] == certificate.inputs
    assert record.evidence["independence"][0] == certificate.independence.rank
    assert record.agreement == "confirmed"


def test_a_task_that_fails_or_takes_too_long_is_recorded_and_the_others_are_done():
    with local_processes(2) as processes:
        found = collect(processes, [[WRONG, SMALL], [LONG]], time_limit=4)
    assert found[WRONG].error.startswith("ArgumentError: 15 is not a prime")
    assert found[LONG].error == "not finished within the time limit of 4 s"
    assert found[LONG].agreement == "failed"
    assert (found[SMALL].error, found[SMALL].rank) == (None, 6)


def test_few_batches_are_held_at_a_time():
    drawn = finished = most = 0

    def stream():
        nonlocal drawn, most
        for seed in range(60):
            drawn += 1
            most = max(most, drawn - finished)
            yield [Task(SMALL.architecture, "logits", seed, PRIME)]

    def count(records):
        nonlocal finished
        finished += len(records)

    execute(Inline(), stream(), None, count)
    assert finished == drawn == 60
    assert most <= Inline.cores + 1


def test_a_task_that_kills_its_worker_is_found_among_the_others_and_recorded():
    tasks = [Task(SMALL.architecture, "logits", seed, PRIME) for seed in range(7)]
    found = collect(Inline(poison=tasks[3:4]), [tasks[:5], tasks[5:]])
    assert found.pop(tasks[3]).error.startswith("every worker that tried this task died")
    assert set(found) == {*tasks} - {tasks[3]}
    assert all(record.error is None for record in found.values())


def test_a_worker_of_another_version_refuses():
    with pytest.raises(NeuromanifoldError, match="install the same neuromanifold"):
        run_batch([SMALL], None, RECORD_VERSION + 1)


class Poison(Architecture):
    """Kills the worker that receives it, and nobody else."""

    def __reduce__(self):
        return (_die_in_a_worker, ())


def _die_in_a_worker():
    if multiprocessing.parent_process() is not None:
        os._exit(1)
    return Poison((2, 2), (1,), 2)


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_found_and_recorded():
    poison = Task(Poison((2, 2), (1,), 2), "logits", 0, PRIME)
    others = [Task(SMALL.architecture, "logits", seed, PRIME) for seed in range(3)]
    with local_processes(1) as cluster:
        found = collect(cluster, [[others[0], poison, others[1]], [others[2]]])
    assert found.pop(poison).error.startswith("every worker that tried this task died")
    assert set(found) == set(others)
    assert all(record.error is None for record in found.values())
