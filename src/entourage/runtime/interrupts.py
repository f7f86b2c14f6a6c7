"""Ctrl-C that waits for what is short and must not be left half done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_interruption"]


@contextmanager
def without_interruption() -> Iterator[None]:
    """Let a Ctrl-C come at the end of the block instead of in the middle of it.

    Only the main thread is interrupted by Ctrl-C; elsewhere, and where a program does not handle it in Python, the
    block runs as it is.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *given: came.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
