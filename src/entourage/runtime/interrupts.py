"""Ctrl-C held back until a short step is done, which must not be left half done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["without_interruption"]


@contextmanager
def without_interruption() -> Iterator[None]:
    """Hold a Ctrl-C back until the end of the block; a second one, of somebody who will not wait, comes at once.

    Only the main thread is interrupted by Ctrl-C; elsewhere, and where a program does not handle it in Python, the
    block runs as it is.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[Any, ...]] = []

    def hold_back(*given: Any) -> None:
        came.append(given)
        if len(came) > 1:
            handler(*given)

    signal.signal(signal.SIGINT, hold_back)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if len(came) == 1:
            handler(*came[0])
