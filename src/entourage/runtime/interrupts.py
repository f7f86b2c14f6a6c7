"""Ctrl-C held back until a short step is done, which must not be left half done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["without_interruption"]

_holding = False  # of the main thread, the only one that holds back


@contextmanager
def without_interruption() -> Iterator[None]:
    """Hold a Ctrl-C back until the end of the block; a second one, of somebody who will not wait, comes at once.

    Only the main thread is interrupted by Ctrl-C; elsewhere, within another such block, and where a program does not
    handle it in Python, the block runs as it is.
    """
    global _holding
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(handler) or _holding:
        yield
        return
    came: list[tuple[Any, ...]] = []

    def hold_back(*given: Any) -> None:
        came.append(given)
        if len(came) > 1:
            handler(*given)

    signal.signal(signal.SIGINT, hold_back)
    _holding = True
    try:
        yield
    finally:
        _holding = False
        signal.signal(signal.SIGINT, handler)
        if len(came) == 1:
            handler(*came[0])
