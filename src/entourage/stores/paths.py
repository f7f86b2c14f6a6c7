"""The type of a path to a file."""

import os

__all__ = ["StrPath"]

StrPath = str | os.PathLike[str]
