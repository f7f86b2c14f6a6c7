"""Progress on the terminal for anything that reports it as progress(title, done, total)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "terminal_progress"]

Progress = Callable[[str, int, int], None]


@contextmanager
def terminal_progress() -> Iterator[Progress]:
    """Bars on standard error, one per kind of work; a title's part in brackets may change while it goes on.

    They start with the first report, so that an error before it stands alone; a log instead of a terminal gets none.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda title, done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
    tasks = {}

    def show(title: str, done: int, total: int) -> None:
        kind = title.partition(" (")[0]
        if not tasks:
            bars.start()
        if kind not in tasks:
            tasks[kind] = bars.add_task(title)
        bars.update(tasks[kind], description=title, completed=done, total=total)

    try:
        yield show
    finally:
        if tasks:
            bars.stop()
