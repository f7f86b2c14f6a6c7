"""The type of what names a file."""

import os

__all__ = ["StrPath"]

StrPath = str | os.PathLike[str]
