"""What every attack must end in: a result that can be used, or one sentence; never a traceback, never without end."""

import signal
import stat
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from entourage.cli import app
from entourage.stores import read_vectors

SECONDS = 60  # within which a command on a few dozen items must end
UNEXPECTED = "which Entourage did not expect"


class TooLong(BaseException):
    """Raised by the alarm; no handler of errors catches it."""


def fault(arguments: Iterable[object], *, codes: tuple[int, ...] = (0, 2)) -> str | None:
    """Run a command in this process; say what is wrong with how it ended, or None."""
    return tried(arguments, codes=codes)[1]


def tried(arguments: Iterable[object], *, codes: tuple[int, ...] = (0, 2)) -> tuple[int | None, str | None]:
    """Run a command in this process; its exit code, if it ended, and what is wrong with how it ended."""
    try:
        with _in_time():
            outcome = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    except TooLong:
        return None, f"did not end within {SECONDS} s"
    except BaseException:
        return None, traceback.format_exc(limit=-3)
    return outcome.exit_code, _misconduct(outcome, codes)


def _misconduct(outcome: Result, codes: tuple[int, ...]) -> str | None:
    errors = [line for line in outcome.stderr.splitlines() if line.startswith("error: ")]
    if "Traceback" in outcome.output or UNEXPECTED in outcome.stderr:
        return outcome.stderr
    if outcome.exit_code not in codes:
        return f"exit code {outcome.exit_code}: {outcome.output}"
    if outcome.exit_code == 0 and errors:
        return f"exit code 0 with {errors}"
    if any(error.startswith("error: [Errno") for error in errors):
        return f"says no more than the system does: {errors}"
    if outcome.exit_code and (len(errors) != 1 or outcome.stderr.splitlines()[-1] != errors[0]):
        return f"exit code {outcome.exit_code} without one sentence: {outcome.stderr!r}"
    return None


def unusable_vectors(file: Path) -> str | None:
    """Say what is wrong with a file of vectors that a command wrote, or None; a file not written is none."""
    if not file.exists():
        return None
    vectors = read_vectors(file).vectors  # refuses NaN, infinities and zeros
    lengths = np.linalg.norm(vectors, axis=1)
    return None if np.allclose(lengths, 1, atol=1e-3) else f"lengths are {lengths.min()} to {lengths.max()}"


def leftovers(folder: Path) -> list[str]:
    """Hidden files that a command left behind."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@contextmanager
def _in_time() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def is_pipe(path: Path) -> bool:
    return stat.S_ISFIFO(path.stat().st_mode)
