"""Training logs, one JSON object per line; read here, where torch need not be loaded for it."""

import json
from pathlib import Path
from typing import Any

from entourage.errors import FileError
from entourage.stores.documents import check_document
from entourage.stores.reading import regular

__all__ = ["read_log"]


def read_log(path: Path, kind: type = dict) -> list[dict[str, Any]]:
    """Read the entries of a training log.

    Parameters
    ----------
    path : Path
        A file with one JSON object per line, each with an "epoch"; it need not exist.
    kind : type
        A TypedDict that declares the fields of an entry; a line that has others is a FileError.

    Returns
    -------
    list of dict
        The entries up to the first line that is not one: a crash may have cut the last line short.
    """
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            entry = json.loads(line)
            entries.append(entry | {"epoch": int(entry["epoch"])})
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            break
        check_document(path, entries[-1], kind, f"line {number}")
    return entries


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    try:
        return regular(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text ({error}); copy it again") from error
