"""The type of a path to a file, and where it leads."""

import os
from pathlib import Path

__all__ = ["StrPath", "resolved"]

StrPath = str | os.PathLike[str]


def resolved(path: StrPath) -> Path:
    """Where a path leads, all links followed; unlike `Path.resolve`, a link to itself raises nothing, and stays."""
    return Path(os.path.realpath(path))
