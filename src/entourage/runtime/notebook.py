"""Progress in a notebook: a bar of tqdm for each kind of work, drawn by ipywidgets."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from entourage.runtime.display import Stage, kind_of
from entourage.runtime.extras import is_installed

__all__ = ["notebook_bars", "notebook_shows_bars"]

_LIBRARIES = ("tqdm", "ipywidgets")


def notebook_shows_bars() -> bool:
    """Whether this process is the kernel of a notebook, with what draws bars in one (`entourage[notebook]`)."""
    ipython = sys.modules.get("IPython")  # a kernel has loaded it
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell" and all(map(is_installed, _LIBRARIES))


@contextmanager
def notebook_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Show bars below the cell that is run; the first appears with the first report.

    Yields
    ------
    callable
        To be called as show(title, done, total).
    """
    from tqdm.notebook import tqdm

    bars: dict[str, Any] = {}
    stages: dict[str, Stage] = {}

    def show(title: str, done: int, total: int) -> None:
        now, kind = time.monotonic(), kind_of(title)
        if kind not in bars:
            bars[kind], stages[kind] = tqdm(total=total), Stage(title, done, total, now)
        elif not stages[kind].goes_on_with(done, total) or total != stages[kind].total:
            bars[kind].reset(total)
            stages[kind] = Stage(title, done, total, now)
        stages[kind].update(title, done, total, now)
        bars[kind].set_description(title, refresh=False)
        bars[kind].update(done - bars[kind].n)
        bars[kind].refresh()  # tqdm leaves out what comes soon after the last

    try:
        yield show
    finally:
        for bar in bars.values():
            bar.close()
