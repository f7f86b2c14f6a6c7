"""How much memory there is to be used."""

import os
from pathlib import Path

__all__ = ["free_memory"]

_TOLD = Path("/proc/meminfo")
_LITTLE = 2.0**31  # what is assumed where the system does not tell


def free_memory() -> float:
    """Bytes that can be used without anything being swapped: what is free, and files in memory that can be read again.

    Returns
    -------
    float
        As if there were little, where the system does not tell.
    """
    try:
        told = dict(line.split(":", 1) for line in _TOLD.read_text(encoding="ascii").splitlines())
        return 1024.0 * int(told["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):  # not Linux
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return _LITTLE
