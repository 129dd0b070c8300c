"""What a worker does: batches of tasks to records. Only here are array libraries imported."""

import time
from collections.abc import Sequence

from neuromanifold.atlas.deadline import DeadlinePassed, deadline
from neuromanifold.atlas.record import RECORD_VERSION, Record, failed
from neuromanifold.atlas.tasks import Task
from neuromanifold.errors import NeuromanifoldError


def run_batch(tasks: Sequence[Task], time_limit: float | None, record_version: int) -> list[Record]:
    """The records of a batch; a task that fails or takes too long is recorded with its error.

    Args:
        tasks: the batch.
        time_limit: seconds for each task.
        record_version: what the sweep's command writes; a worker of another version refuses.
    """
    if record_version != RECORD_VERSION:
        raise NeuromanifoldError(
            f"a worker writes records of version {RECORD_VERSION} and this command of version "
            f"{record_version}: install the same neuromanifold on all workers"
        )
    return [run_task(task, time_limit) for task in tasks]


def run_task(task: Task, time_limit: float | None = None) -> Record:
    """The record of one task."""
    # The first import takes seconds and is no part of the task.
    from neuromanifold.certificates.exact import certify  # noqa: F401

    started = time.perf_counter()
    try:
        with deadline(time_limit):
            return _certified(task)
    except DeadlinePassed:
        error = f"not finished within the time limit of {time_limit:g} s"
    except Exception as exception:  # any failure belongs into the record, not in the sweep's way
        error = f"{type(exception).__name__}: {exception}"
    return failed(task, error, time.perf_counter() - started)


def _certified(task: Task) -> Record:
    from neuromanifold.certificates.exact import certify
    from neuromanifold.formula.formula import dimension_formula

    certificate = certify(task.architecture, seed=task.seed, prime=task.prime, readout=task.readout)
    formula = dimension_formula(task.architecture, task.readout)
    check = certificate.independence
    return Record(
        task=task,
        rank=certificate.rank,
        upper=certificate.upper,
        upper_source=certificate.upper_source,
        rank_proved=certificate.lower_is_proved,
        verdict=certificate.verdict,
        formula=formula.dimension,
        formula_status=formula.status,
        statement=formula.statement,
        seconds=certificate.seconds,
        evidence={
            "attempt": certificate.attempt,
            "inputs": certificate.inputs,
            "kernel_checks": certificate.kernel_checks,
            "symmetries": {family.name: family.dimension for family in certificate.symmetries},
            "independence": None if check is None else [check.rank, check.columns],
            "dyadic_constants": list(certificate.readings.dyadic),
            "versions": certificate.versions,
        },
    )
