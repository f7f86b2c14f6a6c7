"""Work shared out among threads: as many as torch uses, so that one setting rules products and kernels alike.

`torch.set_num_threads` and OMP_NUM_THREADS are that setting; several processes side by side lower it, and nothing here
starts more. The work must release the interpreter's lock, as kernels compiled with nogil do. Unlike the threads of
numba's own `prange`, calls from several threads of a server do not get into each other's way.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["share_out"]


def share_out(work: Callable[[int, int], None], n: int, least: int = 256) -> None:
    """Call work(start, stop) for parts of range(n), one part a thread; no part has fewer than `least`, if n has.

    >>> done = []
    >>> share_out(lambda start, stop: done.extend(range(start, stop)), 5)
    >>> done
    [0, 1, 2, 3, 4]
    """
    import torch

    parts = max(1, min(torch.get_num_threads(), n // least))
    if parts == 1:
        work(0, n)
        return
    ends = [part * n // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts - 1) as others:
        waiting = [others.submit(work, *ends[part : part + 2]) for part in range(1, parts)]
        work(*ends[:2])
    for part in waiting:
        part.result()
