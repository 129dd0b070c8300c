"""Threads for exact linear algebra: as many as BLAS would use, each with a single-threaded BLAS.

The matrices are cut into tiles, and a tile needs a product and several elementwise passes. NumPy
releases the GIL in all of them, so Python threads over tiles also share out the passes that BLAS
threads would leave to one core; both kinds of threads at once fight for the cores.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Argument = TypeVar("Argument")


@dataclass(frozen=True, slots=True)
class Workers:
    """Threads that share out a list of tasks; without a pool the caller does them all.

    Attributes:
        count: how many tasks run at the same time.
        pool: the threads, or None for the caller's own thread.
    """

    count: int = 1
    pool: ThreadPoolExecutor | None = None

    def run(self, task: Callable[[Argument], None], arguments: Iterable[Argument]) -> None:
        """Run `task` on every argument; an exception of any of them is raised here."""
        if self.pool is None:
            for argument in arguments:
                task(argument)
        else:
            for _ in self.pool.map(task, arguments):
                pass


CALLER = Workers()


@contextmanager
def workers() -> Iterator[Workers]:
    """As many workers as BLAS has threads now, while BLAS itself is held to one thread.

    So `OMP_NUM_THREADS`, `threadpoolctl.threadpool_limits` and a scheduler that gives every process
    one BLAS thread mean here what they mean for BLAS. The limit holds for the whole process until
    the context is left.
    """
    blas = _controller().select(user_api="blas")
    count = max((library["num_threads"] for library in blas.info()), default=1)
    with blas.limit(limits=1):
        if count == 1:
            yield CALLER
        else:
            with ThreadPoolExecutor(count, thread_name_prefix="elimination") as pool:
                yield Workers(count, pool)


@cache
def _controller() -> ThreadpoolController:
    """The libraries loaded with NumPy, looked up once: that takes longer than a small rank."""
    return ThreadpoolController()
