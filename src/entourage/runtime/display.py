"""How progress looks: a bar for each kind of work in a terminal, a line now and then anywhere else."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, TaskID

__all__ = [
    "Lines",
    "Stage",
    "bars",
    "duration",
    "kind_of",
    "patient_lines",
    "standard_error_is_a_terminal",
    "written_line",
]

SECONDS_BETWEEN_LINES = 5.0
NARROW = 72
"""Columns of a terminal below which a share takes the place of the bar, so that a line stays one line."""
# Work whose parts are unlike, so that those done say nothing of those to come: one method takes a moment, one minutes.
UNEVEN = ("comparing",)


class Stage:
    """One piece of work from its first report to its last, with a clock of its own.

    Parameters
    ----------
    title : str
    done, total : int
        As they were reported first; work that is resumed begins with some parts done.
    now : float
        When, in seconds.
    """

    def __init__(self, title: str, done: int, total: int, now: float) -> None:
        self.begun_with, self.started = done, now
        self.finished: float | None = None
        self.update(title, done, total, now)

    def update(self, title: str, done: int, total: int, now: float) -> None:
        """Take another report of the same work."""
        self.title, self.done, self.total, self.reported = title, done, total, now
        if done >= total and self.finished is None:
            self.finished = now

    def goes_on_with(self, done: int, total: int) -> bool:
        """Whether a report continues this work; otherwise more work of its kind begins."""
        return done >= self.done and (self.finished is None or done >= total)

    def elapsed(self, now: float) -> float:
        """Seconds since the first report, until the last."""
        return (now if self.finished is None else self.finished) - self.started

    def left(self, now: float) -> float | None:
        """Seconds to go if it goes on as it did; None where that cannot be told, or has proved wrong.

        Examples
        --------
        >>> stage = Stage("searching", 0, 10, now=0.0)
        >>> stage.update("searching", 4, 10, now=20.0)
        >>> stage.left(now=21.0), stage.left(now=60.0)
        (29.0, None)
        """
        gained = self.done - self.begun_with
        if not gained or self.finished is not None or kind_of(self.title) in UNEVEN:
            return None
        left = (self.reported - self.started) * (self.total - self.done) / gained - (now - self.reported)
        return left if left > 0 else None


class Lines:
    """Progress as lines of text: one when a kind of work begins, then at most one in five seconds.

    Parameters
    ----------
    write : callable
        Is given each line.
    clock : callable
        Seconds since any moment.

    Examples
    --------
    >>> clock = iter([0.0, 6.0, 7.0, 18.0])
    >>> show = Lines(print, lambda: next(clock))
    >>> for done in (0, 1, 2, 3):
    ...     show("searching", done, 3)
    searching
    searching: 33 %, 12 s left
    searching: done in 18 s
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._stages: dict[str, Stage] = {}
        self._latest: Stage | None = None
        self._last_line: dict[str, float] = {}

    def __call__(self, title: str, done: int, total: int) -> None:
        """Write a line if it is time for one."""
        now, kind = self._clock(), kind_of(title)
        stage = self._stages.get(kind)
        waited = now - self._last_line.get(kind, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES
        if stage is None or not stage.goes_on_with(done, total):
            self._stages[kind] = self._latest = Stage(title, done, total, now)
            if waited:
                self._line(kind, title, now)
            return
        self._latest = stage
        was_finished, before = stage.finished is not None, stage.title
        stage.update(title, done, total, now)
        if stage.finished is None:
            if waited:
                self._line(kind, f"{title}: {_how_far(stage, now)}", now)
        elif title != before or (not was_finished and stage.elapsed(now) >= SECONDS_BETWEEN_LINES):
            self._line(kind, f"{title}: done in {duration(stage.elapsed(now))}", now)

    @property
    def current(self) -> str | None:
        """What is going on now, and how far it is; None before the first report, and between two stages."""
        stage = self._latest
        if stage is None or stage.finished is not None:
            return None
        return f"{stage.title}: {_how_far(stage, self._clock())}" if stage.done else stage.title

    def _line(self, kind: str, text: str, now: float) -> None:
        self._last_line[kind] = now
        self._write(text)


@contextmanager
def patient_lines(write: Callable[[str], None], seconds: float) -> Iterator[Lines]:
    """Lines of work that takes long: none in the first seconds, so that what is soon done, or refused, stays silent.

    Parameters
    ----------
    write : callable
        Is given each line.
    seconds : float
        How long to be silent, counted from here; then a line says what is going on, even if no report comes.

    Yields
    ------
    Lines
    """
    lock, begun = Lock(), False

    def written(text: str) -> None:
        if begun:
            write(text)

    def begin() -> None:
        nonlocal begun
        with lock:
            begun = True
            if lines.current:
                write(lines.current)

    lines = Lines(written)
    timer = Timer(seconds, begin)
    timer.daemon = True
    timer.start()
    try:
        yield lines
    finally:
        timer.cancel()
        with lock:  # whatever is being written is written before anything else is
            begun = False


@contextmanager
def bars(clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[str, int, int], None]]:
    """Show bars on standard error until the context ends; the first appears with the first report.

    Parameters
    ----------
    clock : callable
        Seconds since any moment.

    Yields
    ------
    callable
        To be called as show(title, done, total).
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

    console = Console(stderr=True)
    narrow = console.width < NARROW
    how_far = [TaskProgressColumn()] if narrow else [BarColumn(bar_width=14), MofNCompleteColumn()]
    display = Progress(TextColumn("{task.description}"), *how_far, _time_column(clock), console=console)
    tasks: dict[str, TaskID] = {}
    stages: dict[str, Stage] = {}

    def show(title: str, done: int, total: int) -> None:
        now, kind = clock(), kind_of(title)
        if kind in stages and stages[kind].goes_on_with(done, total):
            stages[kind].update(title, done, total, now)
        else:
            stages[kind] = Stage(title, done, total, now)
            if kind in tasks:
                display.reset(tasks[kind])
        if not tasks:
            display.start()
        if kind not in tasks:
            tasks[kind] = display.add_task(title, total=total, stage=stages[kind])
        display.update(tasks[kind], description=title, completed=done, total=total, stage=stages[kind])

    try:
        yield show
    finally:
        if tasks:
            display.stop()


def _time_column(clock: Callable[[], float]) -> "ProgressColumn":
    """How long the work of a bar has taken and, while it goes on, how long it will.

    Rich's own columns keep the time of work that ended when more of its kind begins, and an estimate once made until
    the next report.
    """
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Time(ProgressColumn):
        def render(self, task: Task) -> Text:
            stage, now = task.fields["stage"], clock()
            left = stage.left(now)
            shown = _clock_face(stage.elapsed(now)) + ("" if left is None else f", {_clock_face(left)} left")
            return Text(shown, style="progress.elapsed")

    return Time()


def standard_error_is_a_terminal() -> bool:
    """Whether bars can be shown; not in a notebook, a file or a pipe."""
    from rich.console import Console

    return Console(stderr=True).is_terminal


def written_line(text: str) -> None:
    """Write a line to standard error at once."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Say how long in the largest unit that gives two or more.

    >>> [duration(seconds) for seconds in (45, 150, 10000)]
    ['45 s', '2 min', '2.8 h']
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _how_far(stage: Stage, now: float) -> str:
    left = stage.left(now)
    return f"{100 * stage.done / stage.total:.0f} %" + ("" if left is None else f", {duration(left)} left")


def _clock_face(seconds: float) -> str:
    """Hours, minutes and seconds: 0:01:39."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def kind_of(title: str) -> str:
    """The title without what changes: "comparing" of "comparing (raw, seed 0)"."""
    return title.partition(" (")[0]
