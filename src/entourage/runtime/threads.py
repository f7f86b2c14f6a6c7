"""Work shared out among threads, as many as `thread_count`, so that one setting rules products and kernels alike.

OMP_NUM_THREADS is that setting, which numpy and torch obey too; where torch is loaded, `torch.set_num_threads` is.
Several processes side by side lower it, and nothing here starts more. The work must release the interpreter's lock, as
kernels compiled with nogil do. Unlike the threads of numba's own `prange`, calls from several threads of a server do
not get into each other's way.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

__all__ = ["blocks", "in_threads", "one_thread_each", "share_out", "thread_count"]

_worker = threading.local()
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def thread_count() -> int:
    """How many threads work is shared out among.

    Returns
    -------
    int
        What torch uses, if this process has loaded it; else the first number of OMP_NUM_THREADS, if it is set; else
        the processors this process may use, by affinity and the limits of its container.
    """
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):  # else another thread is just importing torch
        return int(torch.get_num_threads())
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # "4,2": outer and nested teams
    if asked.isdecimal() and int(asked):
        return int(asked)
    return _processors()


@cache
def _processors() -> int:
    from joblib import cpu_count  # which scikit-learn brings

    return int(cpu_count())


def share_out(work: Callable[[int, int], None], n: int, least: int = 256) -> None:
    """Call work(start, stop) for parts of range(n), one part a thread; no part has fewer than `least`, if n has.

    >>> done = []
    >>> share_out(lambda start, stop: done.extend(range(start, stop)), 5)
    >>> done
    [0, 1, 2, 3, 4]
    """
    alone = getattr(_worker, "busy", False)  # the other threads have work of their own
    parts = 1 if alone else max(1, min(thread_count(), n // least))
    if parts == 1:
        work(0, n)
        return
    ends = [part * n // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts - 1) as others:
        waiting = [others.submit(work, *ends[part : part + 2]) for part in range(1, parts)]
        work(*ends[:2])
    for part in waiting:
        part.result()


def blocks(n: int, most: int) -> Iterator[slice]:
    """Cut 0..n-1 into slices of at most that many."""
    for start in range(0, n, most):
        yield slice(start, min(start + most, n))


def in_threads(work: Callable[[_Task], _Result], tasks: Iterable[_Task]) -> Iterator[_Result]:
    """Do tasks in as many threads as `thread_count`, only a few tasks ahead of what is taken.

    Parameters
    ----------
    work : callable
        Is called with each task.
    tasks : iterable

    Yields
    ------
    object
        What `work` returned, in the order of the tasks.
    """
    n_threads = thread_count()
    if n_threads == 1 or getattr(_worker, "busy", False):
        for task in tasks:
            with one_thread_each:
                result = work(task)
            yield result
        return
    ahead: deque[Future[_Result]] = deque()
    with one_thread_each, ThreadPoolExecutor(n_threads, initializer=_begin_worker) as pool:
        try:
            for task in tasks:
                ahead.append(pool.submit(work, task))
                if len(ahead) > 2 * n_threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def _begin_worker() -> None:
    _OneThreadEach.limit()
    _worker.busy = True


class _OneThreadEach:
    """While anyone is inside, numpy multiplies on the thread that asks; afterwards as before.

    Some libraries keep one number of threads for all and some one for each thread, so each thread has to call `limit`.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = [library.get_num_threads() for library in _libraries()]
                self.limit()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._set(self._before)
                self._release()

    @classmethod
    def limit(cls) -> None:
        cls._set([1] * len(_libraries()))

    @staticmethod
    def _set(counts: Sequence[int | None]) -> None:
        _OneThreadEach._release()
        for library, count in zip(_libraries(), counts, strict=True):
            if count is not None:
                library.set_num_threads(count)

    @staticmethod
    def _release() -> None:
        """Some libraries obey only the thread that first set a number, until it lets go."""
        for library in _libraries():
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


one_thread_each = _OneThreadEach()


@cache
def _libraries() -> list[Any]:
    """What numpy may multiply with."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers
