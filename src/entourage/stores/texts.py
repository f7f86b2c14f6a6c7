"""Texts, one for each vector: .json (a list), .txt (a line each) or .csv (columns id and text)."""

import csv
import json
from pathlib import Path
from typing import Any

from entourage.errors import FileError, InputError, few
from entourage.stores.paths import StrPath
from entourage.stores.reading import existing, readable
from entourage.stores.tables import ID, TEXT, separator_of
from entourage.values import Embeddings

__all__ = ["read_texts"]

FORMATS = (".json", ".txt", ".csv")


def read_texts(path: StrPath, items: Embeddings) -> list[str]:
    """Read a text for each item.

    Parameters
    ----------
    path : str or path-like
        A .json, .txt or .csv file. The lines of a .csv with an id column are matched with the ids of the items, where
        those have ids of their own; otherwise the texts are taken in order.
    items : Embeddings
        N items.

    Returns
    -------
    list of N str
    """
    path = existing(path, FORMATS, "texts")
    with readable(path):
        content = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() == ".json":
            texts = _listed(path, json.loads(content))
        elif path.suffix.lower() == ".txt":
            texts = content.removesuffix("\n").split("\n")
        else:
            lines = csv.reader(content.splitlines(keepends=True), delimiter=separator_of(content, (TEXT, ID)))
            texts = _csv_texts(path, list(lines), items)
    if len(texts) != len(items):
        raise InputError(f"{path} has {len(texts)} texts for {len(items)} vectors; wanted one per vector, in order")
    return texts


def _listed(path: Path, content: Any) -> list[str]:
    if not isinstance(content, list) or not all(isinstance(text, str) for text in content):
        raise FileError(f'{path} holds a {type(content).__name__} that is not a list of texts; wanted ["...", ...]')
    return content


def _csv_texts(path: Path, rows: list[list[str]], items: Embeddings) -> list[str]:
    header = rows[0] if rows else []
    text_name, id_name = TEXT.found_in(header), ID.found_in(header)
    if text_name is None:
        raise FileError(f"{path} has the columns {few(header, 'columns')}; wanted one called `text`: rename it")
    rows = [row for row in rows[1:] if row]
    short = next((row for row in rows if len(row) != len(header)), None)
    if short is not None:
        seen = ",".join(short)[:60]
        raise FileError(f"a line of {path} has {len(short)} cells; wanted {len(header)}: correct {seen!r}")
    texts = [row[header.index(text_name)] for row in rows]
    ids = items.ids.astype(str).tolist()
    if id_name is None or not items.named:
        return texts
    by_id = dict(zip([row[header.index(id_name)].strip() for row in rows], texts, strict=True))
    missing = [item for item in ids if item not in by_id]
    if len(missing) == len(ids) and not ID.is_certain(id_name):
        return texts
    if missing:
        raise InputError(
            f"{len(missing)} of {len(items)} ids have no line in {path}, the first is {missing[0]!r}; "
            "wanted a text for every vector: add those lines"
        )
    return [by_id[item] for item in ids]
