"""Functions compiled by numba, kept on disk from one process to the next where that is possible."""

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from entourage.errors import InputError
from entourage.runtime.warnings import warn_caller

_IGNORED = re.compile(r"Environment variable '(\w+)' is defined but its associated value '(.*)' could")


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Let numba say in a sentence that it ignores a variable; its own warning holds a traceback."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        yield
    for each in given:
        ignored = _IGNORED.match(str(each.message))
        if ignored:
            warn_caller(f"{ignored[1]} is {ignored[2]!r}, which numba does not understand and ignores; correct it")
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


try:
    with _short_warnings():
        import numba
except ValueError as error:  # NUMBA_NUM_THREADS=0, for instance
    set_to = ", ".join(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    reason = str(error).rstrip(".")
    raise InputError(f"numba cannot be loaded with {set_to} ({reason}); correct or unset these") from error

__all__ = ["compiled", "inlined"]

_NOT_KEPT = (ImportError, AttributeError, TypeError, RuntimeError, OSError)  # a numba of other insides; no folder

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def compiled(function: _Function) -> _Function: ...
@overload
def compiled(**options: Any) -> Callable[[_Function], _Function]: ...
def compiled(function: Any = None, **options: Any) -> Any:
    """Compile a function with numba on its first call, without the interpreter's lock, and keep the result on disk.

    Where no folder can be written to, as in some containers, or where numba keeps functions otherwise than the
    versions known here do, it is compiled in every process instead.

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
    dispatcher = numba.njit(nogil=True, **options)(function)
    with contextlib.suppress(*_NOT_KEPT):
        from entourage.runtime.jit_files import keep

        keep(dispatcher, function)
    return dispatcher


@overload
def inlined(function: _Function) -> _Function: ...
@overload
def inlined(**options: Any) -> Callable[[_Function], _Function]: ...
def inlined(function: Any = None, **options: Any) -> Any:
    """Compile a function that only compiled functions call: together with them, and kept on disk as a part of them.

    Parameters and result are those of `compiled`.
    """
    return numba.njit(function, **options) if function else numba.njit(**options)


with contextlib.suppress(*_NOT_KEPT):
    from entourage.runtime.jit_files import tell

    tell()
