"""Functions compiled by numba, kept on disk from one process to the next."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba
from numba.core import event

from entourage.runtime.progress import shown

__all__ = ["compiled", "inlined"]

_log = logging.getLogger("entourage")

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def compiled(function: _Function) -> _Function: ...
@overload
def compiled(**options: Any) -> Callable[[_Function], _Function]: ...
def compiled(function: Any = None, **options: Any) -> Any:
    """Compile a function with numba on its first call, without the interpreter's lock, and keep the result on disk.

    Where no folder can be written to, as in some containers, it is compiled in every process instead.

    Parameters
    ----------
    function : callable, optional
        What to compile; without it, a decorator is returned.
    **options
        Options of `numba.njit`.

    Returns
    -------
    callable
        Called as the function is.
    """
    if function is None:
        return lambda function: compiled(function, **options)
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(nogil=True, **options)(function)


@overload
def inlined(function: _Function) -> _Function: ...
@overload
def inlined(**options: Any) -> Callable[[_Function], _Function]: ...
def inlined(function: Any = None, **options: Any) -> Any:
    """Compile a function that only compiled functions call: together with them, and kept on disk as a part of them.

    Parameters and result are those of `compiled`.
    """
    return numba.njit(function, **options) if function else numba.njit(**options)


class _Notice(event.Listener):
    """Reports that a function is being compiled, which takes seconds; loading one from disk is not reported."""

    def on_start(self, event: event.Event) -> None:
        self._report(event, 0)

    def on_end(self, event: event.Event) -> None:
        self._report(event, 1)

    def _report(self, event: event.Event, done: int) -> None:
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").startswith("entourage."):
            shown("compiling, once", done, 1)
            if not done:
                _log.info("compiling %s.%s, once", function.__module__, function.__name__)


event.register("numba:compile", _Notice())
