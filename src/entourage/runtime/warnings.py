"""EntourageWarnings: issued where the user called, and collected as texts to print and to keep with a result."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from entourage.errors import EntourageWarning

__all__ = ["collected_warnings", "warn_caller", "warn_caller_once"]

_said: set[str] = set()
_NOT_THE_CALLER = ("contextlib", "entourage", "importlib", "sklearn")


def warn_caller(text: str) -> None:
    """Issue an EntourageWarning that points at the line outside of this package, and of scikit-learn, which led here.

    Parameters
    ----------
    text : str
        What to say.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).split(".")[0] in _NOT_THE_CALLER:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, EntourageWarning, stacklevel=level)


def warn_caller_once(text: str) -> None:
    """`warn_caller` in the first of many calls: for what one has to know, but whoever calls again knows already.

    Python's own filter would repeat it for every line that calls, and for every call where warnings are always shown.

    Parameters
    ----------
    text : str
        What to say, once in the life of this process.
    """
    if text not in _said:
        _said.add(text)
        warn_caller(text)


@contextmanager
def collected_warnings(show: Callable[[str], None] | None = None) -> Iterator[list[str]]:
    """Collect the EntourageWarnings issued inside the block instead of showing them as Python does.

    Other warnings are shown as usual. Where the block ends in an error, what was collected but not shown is issued
    again, as there will be no result to carry it.

    Parameters
    ----------
    show : callable, optional
        Is called with each new message as soon as it is issued.

    Yields
    ------
    list of str
        The messages so far, each once; it grows while the block runs.

    Examples
    --------
    >>> with collected_warnings() as messages:
    ...     for _ in range(2):
    ...         warnings.warn("nothing was learned", EntourageWarning)
    >>> messages
    ['nothing was learned']
    """
    messages: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", EntourageWarning)
        show_others = warnings.showwarning

        def collect(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, EntourageWarning):
                show_others(message, category, *where, **more)
            elif str(message) not in messages:
                messages.append(str(message))
                if show:
                    show(str(message))

        warnings.showwarning = collect
        try:
            yield messages
            return
        except Exception as raised:
            error = raised
    for text in () if show else messages:
        warnings.warn(text, EntourageWarning, stacklevel=3)
    raise error
