"""Progress of long work: reported as progress(title, done, total), shown on standard error, and logged.

Public calls take `progress=True` (bars in a terminal and in a notebook, plain lines elsewhere) or a callable of one's
own. Whatever they show, the logger "entourage" gets the same lines at level INFO. Calls that are made within another
one, as the hundred searches of a fit, are logged at level DEBUG.
"""

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from entourage.errors import InputError
from entourage.runtime.display import Lines, bars, patient_lines, standard_error_is_a_terminal, written_line
from entourage.runtime.notebook import notebook_bars, notebook_shows_bars

__all__ = ["Progress", "ShowProgress", "reported", "shown", "shows_progress", "terminal_progress"]

SILENT_SECONDS = 5.0
"""How long a command that usually takes seconds prints no lines."""

_log = logging.getLogger("entourage")
_log.addHandler(logging.NullHandler())  # silent unless the program that uses this library sets up logging

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Progress(Protocol):
    """What long work reports to: any callable of a title and two counts."""

    def __call__(self, title: str, done: int, total: int, /) -> None:
        """Show that `done` of `total` parts of the work called `title` are done."""


ShowProgress: TypeAlias = Any
"""What a public call takes as `progress`: True, a Progress, or None for nothing. A call that is decorated with
`shows_progress` receives a Progress or None."""


def shows_progress(call: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let the keyword `progress` of a call be True, as everywhere in the public interface, and log what it reports.

    Parameters
    ----------
    call : callable
        A function, method or generator with a keyword `progress`, which it takes for a Progress or None.

    Returns
    -------
    callable
        The same, whose `progress` may be all that `reported` takes.

    Examples
    --------
    >>> @shows_progress
    ... def work(*, progress=None):
    ...     progress("working", 1, 1)
    >>> work(progress=lambda title, done, total: print(title, done, total))
    working 1 1
    """

    @functools.wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        with reported(options.get("progress")) as progress, _outer_call():
            return call(*args, **options | {"progress": progress})

    @functools.wraps(call)
    def iterate(*args: Any, **options: Any) -> Any:
        with reported(options.get("progress")) as progress:
            steps: Any = call(*args, **options | {"progress": progress})
            while True:
                with _outer_call():  # not while the caller has its turn
                    step = next(steps, _END)
                if step is _END:
                    return
                yield step

    return iterate if inspect.isgeneratorfunction(call) else run


@contextmanager
def reported(progress: ShowProgress) -> Iterator[Progress | None]:
    """Give what work reports to, from what its caller asked for.

    Parameters
    ----------
    progress : bool, callable or None
        True shows bars or lines on standard error; a callable is called as progress(title, done, total).

    Yields
    ------
    Progress or None
        None where nobody wants to know.
    """
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise InputError(f"progress is {progress!r}; wanted True, False or a callable of (title, done, total)")
    if progress is True:
        with terminal_progress() as show:
            yield _logged(show)
    else:
        yield _logged(progress or None)


def shown(title: str, done: int, total: int) -> None:
    """Report to every open `terminal_progress`, from work that was not handed a progress of its own."""
    for show in _shown:
        show(title, done, total)


@contextmanager
def terminal_progress(*, log: bool = True, patient: bool = False) -> Iterator[Progress]:
    """Show progress: bars in a terminal or a notebook, one per kind of work; elsewhere lines, now and then.

    The part of a title in brackets may change. Bars start with the first report, so that an error before it stands
    alone.

    Parameters
    ----------
    log : bool, default True
        Whether to print lines where standard error is not a terminal.
    patient : bool, default False
        Whether to print no line in the first seconds, so that what is soon done, or refused, stays silent.

    Yields
    ------
    Progress
        What to hand to the work.
    """
    with _display(log, patient) as show, _open(show):
        yield show


_shown: list[Progress] = []


@contextmanager
def _open(show: Progress) -> Iterator[Progress]:
    _shown.append(show)
    try:
        yield show
    finally:
        _shown.remove(show)


@contextmanager
def _display(log: bool, patient: bool) -> Iterator[Progress]:
    """Bars, lines or nothing, as the standard error of this moment allows."""
    if standard_error_is_a_terminal():
        with bars() as show:
            yield show
    elif notebook_shows_bars():
        with notebook_bars() as show:
            yield show
    elif log and patient:
        with patient_lines(written_line, SILENT_SECONDS) as lines:
            yield lines
    else:
        yield Lines(written_line) if log else _silence


_END = object()
_within_a_call: ContextVar[bool] = ContextVar("_within_a_call", default=False)


@contextmanager
def _outer_call() -> Iterator[None]:
    """Whatever is called inside the block is known to be part of a public call."""
    token = _within_a_call.set(True)
    try:
        yield
    finally:
        _within_a_call.reset(token)


class _Logged:
    """Reports to a progress, if there is one, and to the log."""

    def __init__(self, progress: Progress | None, level: int) -> None:
        self._progress, self._lines = progress, Lines(functools.partial(_log.log, level))

    def __call__(self, title: str, done: int, total: int) -> None:
        if self._progress:
            self._progress(title, done, total)
        self._lines(title, done, total)


def _logged(progress: Progress | None) -> Progress | None:
    """The same and, if anyone reads it, the log: once, however many calls hand it on to each other."""
    level = logging.DEBUG if _within_a_call.get() else logging.INFO
    if isinstance(progress, _Logged) or not _log.isEnabledFor(level):
        return progress
    return _Logged(progress, level)


def _silence(title: str, done: int, total: int) -> None:
    pass
