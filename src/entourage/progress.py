"""Progress on the terminal for anything that reports it as progress(title, done, total)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "terminal_progress"]

Progress = Callable[[str, int, int], None]


@contextmanager
def terminal_progress() -> Iterator[Progress]:
    """Bars on standard error, one per kind of work; a title's part in brackets may change while it goes on."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        tasks = {}

        def show(title: str, done: int, total: int) -> None:
            kind = title.partition(" (")[0]
            if kind not in tasks:
                tasks[kind] = bars.add_task(title)
            bars.update(tasks[kind], description=title, completed=done, total=total)

        yield show
