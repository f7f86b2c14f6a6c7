"""Progress on the terminal for anything that reports it as progress(title, done, total)."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "shown", "terminal_progress"]

Progress = Callable[[str, int, int], None]

_shown: list[Progress] = []


def shown(title: str, done: int, total: int) -> None:
    """Report to whatever terminal_progress is open, for work that nobody handed a progress to."""
    for show in _shown:
        show(title, done, total)


@contextmanager
def terminal_progress(*, log: bool = False) -> Iterator[Progress]:
    """Bars on standard error, one per kind of work; a title's part in brackets may change while it goes on.

    They start with the first report, so that an error before it stands alone. Where standard error is no terminal
    nothing is shown or, with `log`, each new title as a line.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        with _open(_log_lines() if log else _silence) as show:
            yield show
        return
    time_left = TimeRemainingColumn(elapsed_when_finished=True)
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(bar_width=14), MofNCompleteColumn(), time_left, console=console
    )
    tasks = {}

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
    seen = set()

    def log(title: str, done: int, total: int) -> None:
        if title not in seen:
            seen.add(title)
            print(title, file=sys.stderr, flush=True)

    return log


def _silence(title: str, done: int, total: int) -> None:
    pass
