"""Two names exchanged in one step, where the system can do it: Linux, by renameat2."""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

__all__ = ["exchange"]

_RELATIVE_TO_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # this file system, or this kernel


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files or folders of one disk, so that at no moment either name is missing.

    Parameters
    ----------
    one, other : Path
        Both exist.

    Returns
    -------
    bool
        Whether it was done; False where the system cannot.
    """
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_RELATIVE_TO_HERE, os.fsencode(one), _RELATIVE_TO_HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


@cache
def _renameat2() -> Callable[..., int] | None:
    """Python has no name for it; None where the C library has not either."""
    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return None
