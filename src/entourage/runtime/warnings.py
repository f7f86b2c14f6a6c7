"""Warnings as texts: what works, but hardly as intended, is said once and kept with the result."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from entourage.errors import EntourageWarning

__all__ = ["collected_warnings"]


@contextmanager
def collected_warnings(tell: Callable[[str], None] | None = None) -> Iterator[list[str]]:
    """The texts of the EntourageWarnings given inside, each once, instead of Python's way of showing them.

    tell: is handed each as it comes.

    >>> with collected_warnings() as heard:
    ...     for _ in range(2):
    ...         warnings.warn("nothing was learned", EntourageWarning)
    >>> heard
    ['nothing was learned']
    """
    heard: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", EntourageWarning)
        show = warnings.showwarning

        def hear(message, category, *where, **more):
            if not issubclass(category, EntourageWarning):
                show(message, category, *where, **more)
            elif str(message) not in heard:
                heard.append(str(message))
                if tell:
                    tell(str(message))

        warnings.showwarning = hear
        yield heard
