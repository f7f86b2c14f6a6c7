"""Training logs, one JSON object per line; read here, where torch need not be loaded for it."""

import json
from pathlib import Path
from typing import Any

__all__ = ["read_log"]


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the entries of a training log.

    Parameters
    ----------
    path : Path
        A file with one JSON object per line, each with an "epoch"; it need not exist.

    Returns
    -------
    list of dict
        The entries up to the first line that is not one: a crash may have cut the last line short.
    """
    entries: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
            entries.append(entry | {"epoch": int(entry["epoch"])})
        except (ValueError, TypeError, KeyError):
            break
    return entries
