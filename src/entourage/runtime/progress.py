"""Progress on the terminal for anything that reports it as progress(title, done, total)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Progress", "shown", "terminal_progress"]


class Progress(Protocol):
    """What long work reports to: any callable of a title and two counts."""

    def __call__(self, title: str, done: int, total: int, /) -> None:
        """Show that `done` of `total` parts of the work called `title` are done."""


_shown: list[Progress] = []


def shown(title: str, done: int, total: int) -> None:
    """Report to every open `terminal_progress`, from work that was not handed a progress of its own."""
    for show in _shown:
        show(title, done, total)


@contextmanager
def terminal_progress(*, log: bool = False) -> Iterator[Progress]:
    """Show bars on standard error, one per kind of work; the part of a title in brackets may change.

    Bars start with the first report, so that an error before it stands alone.

    Parameters
    ----------
    log : bool, default False
        Where standard error is not a terminal, print each new title as a line instead of showing nothing.

    Yields
    ------
    Progress
        What to hand to the work.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        with _open(_log_lines() if log else _silence) as quiet:
            yield quiet
        return
    time_left = TimeRemainingColumn(elapsed_when_finished=True)
    bars = Bars(
        TextColumn("{task.description}"), BarColumn(bar_width=14), MofNCompleteColumn(), time_left, console=console
    )
    tasks: dict[str, TaskID] = {}

    def show(title: str, done: int, total: int) -> None:
        kind = title.partition(" (")[0]
        if not tasks:
            bars.start()
        if kind not in tasks:
            tasks[kind] = bars.add_task(title)
        bars.update(tasks[kind], description=title, completed=done, total=total)

    try:
        with _open(show):
            yield show
    finally:
        if tasks:
            bars.stop()


@contextmanager
def _open(show: Progress) -> Iterator[Progress]:
    _shown.append(show)
    try:
        yield show
    finally:
        _shown.remove(show)


def _log_lines() -> Progress:
    seen: set[str] = set()

    def log(title: str, done: int, total: int) -> None:
        if title not in seen:
            seen.add(title)
            print(title, file=sys.stderr, flush=True)

    return log


def _silence(title: str, done: int, total: int) -> None:
    pass
