"""Peak memory of a piece of work, beyond what was held before it.

Linux's high-water mark of resident memory is reset and read again. tracemalloc would see numpy's arrays alone and not
those of torch and compiled code, psutil and resource.getrusage give a peak that cannot be reset.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Peak", "peak_memory"]

_FORGET_THE_PEAK = "5"  # proc(5), clear_refs: resets the high-water mark of resident memory


@dataclass
class Peak:
    """The peak memory of a piece of work."""

    mb: float | None = None
    """Filled in when the work is done; None where the system does not measure it."""


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the body of a with statement; the result is filled in when it ends."""
    peak, held = Peak(), _held_from_now()
    yield peak
    if held is not None:
        peak.mb = max(0.0, _status("VmHWM") - held)


def _held_from_now() -> float | None:
    """Resident memory in MB, with the peak reset to it; None on another system, or where that is not allowed."""
    try:
        Path("/proc/self/clear_refs").write_text(_FORGET_THE_PEAK)
        return _status("VmRSS")
    except (OSError, StopIteration):
        return None


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024
