"""Functions compiled by numba, kept on disk from one process to the next."""

import logging

import numba
from numba.core import event

from entourage.runtime.progress import shown

__all__ = ["compiled", "inlined"]

_log = logging.getLogger("entourage")


def compiled(function=None, **options):
    """A decorator: compiled on first use, the interpreter's lock released, and kept on disk.

    Where no folder can be written to, as in some containers, it is compiled in every process instead.
    """
    if function is None:
        return lambda function: compiled(function, **options)
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(nogil=True, **options)(function)


def inlined(function=None, **options):
    """A decorator for what only compiled functions call: compiled with them, and kept on disk as a part of them."""
    return numba.njit(function, **options) if function else numba.njit(**options)


class _Notice(event.Listener):
    """Says that a function is being compiled, which takes seconds; what comes from disk is no compilation."""

    def on_start(self, event):
        self._say(event, 0)

    def on_end(self, event):
        self._say(event, 1)

    def _say(self, event, done: int) -> None:
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").startswith("entourage."):
            shown("compiling, once", done, 1)
            if not done:
                _log.info("compiling %s.%s, once", function.__module__, function.__name__)


event.register("numba:compile", _Notice())
