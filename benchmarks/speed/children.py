"""Peak memory and time of a piece of work in a process of its own, where nothing else has left its mark."""

import ctypes
import gc
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Cost", "cost_in_child"]

_WARM_UP = 300  # items with which libraries load and kernels compile beforehand


@dataclass(frozen=True)
class Cost:
    seconds: float
    mb: float | None
    """Beyond what was held before the work began; None where the system does not tell."""


def cost_in_child(prepare: Callable[[int], Callable[[], object]], n: int) -> Cost:
    """Run prepare(n)() in a new process and measure the second call; prepare is a function of a module.

    The data that prepare holds ready does not count.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as child:
        return child.submit(_measure, prepare, n).result()


def _measure(prepare, n: int) -> Cost:
    from entourage.comparison.memory import peak_memory

    prepare(min(n, _WARM_UP))()
    work = prepare(n)
    _give_back_freed_memory()
    with peak_memory() as peak:
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
    return Cost(seconds, peak.mb)


def _give_back_freed_memory() -> None:
    """What preparation has freed but not returned to the system would be used again unseen."""
    gc.collect()
    with suppress(OSError, AttributeError):  # where there is no glibc
        ctypes.CDLL(None).malloc_trim(0)
