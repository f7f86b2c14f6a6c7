"""Logs of one JSON object per line, read without what writes them: a clean-up must not wait for torch to load."""

import json
from pathlib import Path

__all__ = ["read_log"]


def read_log(path: Path) -> list[dict]:
    """The entries of a log up to the first line that is none: a crash may have cut the last one short."""
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
            entries.append(entry | {"epoch": int(entry["epoch"])})
        except (ValueError, TypeError, KeyError):
            break
    return entries
