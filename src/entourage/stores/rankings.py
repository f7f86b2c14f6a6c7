"""What an index returned for each query, to and from .npz, .parquet and .csv.

.npz: an array `ids` (N, C), best first, optional `scores` (N, C) and `queries` (N,); a shorter list ends in ids of -1,
or in empty texts. .parquet: a row for each query, with a list column `ids`, optional `scores` and `query`. .csv: a line
for each item, `query,id,score`, in order of rank. Without the names of queries, lists are taken in order.
"""

import csv
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.errors import FileError, InputError, few
from entourage.stores.atomic import whole_file
from entourage.stores.paths import StrPath
from entourage.stores.reading import existing, named, readable
from entourage.stores.tables import ID, Column, Table, read_table
from entourage.values import FloatArray, IntArray, LabelArray, check_unique, checked_column, shared_codes

__all__ = ["FORMATS", "RankedLists", "check_rankings_file", "read_rankings", "write_rankings"]

FORMATS = (".npz", ".parquet", ".csv")
_QUERY, _SCORE = Column("queries", ("query", "query_id")), Column("scores", ("score", "scores"))


@dataclass(frozen=True, eq=False)
class RankedLists:
    """A list of items for each of N queries, best first; lists may differ in length."""

    ids: tuple[LabelArray, ...]
    """N arrays of ids."""
    scores: tuple[FloatArray, ...] | None = None
    """N arrays of as many scores, if there are any."""
    queries: LabelArray | None = None
    """(N,) the id of each query; None: they are numbered from 0."""
    given_scores: tuple[FloatArray, ...] | None = None
    """N arrays of the scores that items had before they were re-ranked; written beside the others, and not read."""

    def __post_init__(self) -> None:
        for row, items in enumerate(self.ids):
            if self.scores is not None and len(self.scores[row]) != len(items):
                raise InputError(
                    f"list {row} has {len(items)} ids and {len(self.scores[row])} scores; wanted one score for each id"
                )
        if self.queries is not None:
            if len(self.queries) != len(self.ids):
                raise InputError(f"there are {len(self.queries)} queries and {len(self.ids)} lists; wanted as many")
            check_unique(self.queries)

    def __len__(self) -> int:
        return len(self.ids)

    def places_of(self, ids: LabelArray) -> IntArray:
        """Which list is that of each of some queries: by their names, or in order if the lists have none.

        Parameters
        ----------
        ids : array of shape (N,)
            The ids of the queries.

        Returns
        -------
        array of shape (N,)
            -1 where there is none.
        """
        if self.queries is None:
            if len(self) != len(ids):
                raise InputError(f"there are {len(self)} lists for {len(ids)} queries; wanted one for each query")
            return np.arange(len(ids))
        codes, listed = shared_codes(ids, self.queries)
        strange = ~np.isin(listed, codes)
        if strange.any():
            unknown = self.queries[strange][0].item()
            raise InputError(f"there is a list for query {unknown!r}, which is not among the queries; wanted their ids")
        place = np.full(codes.max() + 1, -1)
        place[listed] = np.arange(len(self))
        return np.asarray(place[codes])


def check_rankings_file(path: StrPath) -> Path:
    """Refuse a name for which there is no format."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise FileError(
            f"lists cannot be written to {path}; wanted a .npz, .parquet or .csv file: choose another ending"
        )
    return path


# ---- reading -----------------------------------------------------------------------------------------------------


def read_rankings(path: StrPath) -> RankedLists:
    """Read what an index returned for each query.

    Parameters
    ----------
    path : str or path-like
        A .npz, .parquet or .csv file.

    Returns
    -------
    RankedLists
    """
    path = existing(path, FORMATS, "results")
    read = {".npz": _read_npz, ".parquet": _read_parquet, ".csv": _read_csv}[path.suffix.lower()]
    with readable(path), named(path):
        return read(path)


def _read_npz(path: Path) -> RankedLists:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        held = {name: arrays[name] for name in arrays.files}
    _check_has_ids(path, held)
    ids, scores = held["ids"], held.get("scores")
    if ids.ndim != 2 or (scores is not None and scores.shape != ids.shape):
        shapes = f"ids of shape {ids.shape}" + ("" if scores is None else f" and scores of shape {scores.shape}")
        raise InputError(f"there are {shapes}; wanted (N, C), a row for each query")
    there = ids != "" if ids.dtype.kind == "U" else ids >= 0
    columns = [checked_column(row[kept], "ids", int(kept.sum()), "item") for row, kept in zip(ids, there, strict=True)]
    kept_scores = None if scores is None else tuple(row[kept] for row, kept in zip(scores, there, strict=True))
    return RankedLists(tuple(columns), kept_scores, _queries(held.get("queries"), len(ids)))


def _read_parquet(path: Path) -> RankedLists:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    _check_has_ids(path, table.column_names)
    lists = [[] if row is None else row for row in table.column("ids").to_pylist()]
    ids = tuple(checked_column(np.asarray(row) if row else np.empty(0, int), "ids", len(row), "item") for row in lists)
    scores = queries = None
    if "scores" in table.column_names:
        scores = tuple(np.asarray(row or [], float) for row in table.column("scores").to_pylist())
    if "query" in table.column_names:
        queries = _queries(table.column("query").to_pylist(), len(ids))
    return RankedLists(ids, scores, queries)


def _read_csv(path: Path) -> RankedLists:
    table = read_table(path, (_QUERY, ID, _SCORE))
    queries, ids = (_numbers_or_texts(table.filled(_column(table, each))) for each in (_QUERY, ID))
    score = table.find(_SCORE)
    scores = None if score is None else _floats(table.filled(score))
    known, first, codes = np.unique(queries, return_index=True, return_inverse=True)
    in_order = np.argsort(first)  # of appearance
    lines = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])  # of each query
    lists = [lines[code] for code in in_order]
    listed = None if scores is None else tuple(scores[rows] for rows in lists)
    return RankedLists(tuple(ids[rows] for rows in lists), listed, known[in_order])


def _column(table: Table, column: Column) -> str:
    name = table.find(column)
    if name is None:
        raise FileError(
            f"{table.path} has the columns {few(table.header, 'columns')}; wanted {column.wanted} for the "
            f"{column.holds}: rename it so"
        )
    return name


def _check_has_ids(path: Path, names: Collection[str]) -> None:
    if "ids" not in names:
        raise FileError(f"{path} holds {few(list(names), 'names')}; wanted `ids`, a list for each query: rename it so")


def _queries(queries: ArrayLike | None, count: int) -> LabelArray | None:
    return None if queries is None else checked_column(queries, "queries", count, "list")


def _numbers_or_texts(cells: list[str]) -> LabelArray:
    numbers = all(cell.lstrip("-").isdecimal() and len(cell) < 19 for cell in cells)
    return np.array(cells, int) if cells and numbers else checked_column(cells, "ids", len(cells), "line")


def _floats(cells: list[str]) -> FloatArray:
    try:
        return np.array(cells, float)
    except ValueError as error:
        raise InputError(f"the scores are not all numbers ({error}); wanted one for each line") from error


# ---- writing -----------------------------------------------------------------------------------------------------


def write_rankings(path: StrPath, lists: RankedLists, *, overwrite: bool = False) -> None:
    """Write a list for each query; `read_rankings` gives it back.

    Parameters
    ----------
    path : str or path-like
        A .npz, .parquet or .csv file; it appears whole or not at all.
    lists : RankedLists
    overwrite : bool
        Whether a file that is there is replaced.
    """
    path = check_rankings_file(path)
    write = {".npz": _write_npz, ".parquet": _write_parquet, ".csv": _write_csv}[path.suffix.lower()]
    with whole_file(path, overwrite=overwrite) as new:
        write(new, lists)


def _write_npz(path: Path, lists: RankedLists) -> None:
    longest, kind = max(map(len, lists.ids), default=0), np.result_type(*lists.ids)
    ids = np.full((len(lists), longest), "" if kind.kind == "U" else -1, kind)
    scores: dict[str, Any] = {name: np.full(ids.shape, np.nan, np.float32) for name in _scores(lists)}
    for row, items in enumerate(lists.ids):
        ids[row, : len(items)] = items
        for name, table in scores.items():
            table[row, : len(items)] = _scores(lists)[name][row]
    with path.open("wb") as file:
        np.savez(file, ids=ids, queries=_names(lists), **scores)


def _write_parquet(path: Path, lists: RankedLists) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "query": pa.array(_names(lists).tolist()),
        "ids": pa.array([items.tolist() for items in lists.ids]),
    }
    for name, scores in _scores(lists).items():
        columns[name] = pa.array([values.tolist() for values in scores], pa.list_(pa.float32()))
    pq.write_table(pa.table(columns), path)


def _write_csv(path: Path, lists: RankedLists) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer, scores = csv.writer(file), _scores(lists)
        writer.writerow(["query", "id", *(name.removesuffix("s") for name in scores)])
        for row, (query, items) in enumerate(zip(_names(lists).tolist(), lists.ids, strict=True)):
            values = [map(str, each[row]) for each in scores.values()]
            writer.writerows(zip([query] * len(items), items.tolist(), *values, strict=True))


def _names(lists: RankedLists) -> LabelArray:
    return np.arange(len(lists)) if lists.queries is None else lists.queries


def _scores(lists: RankedLists) -> dict[str, tuple[FloatArray, ...]]:
    """The scores by the names they have in files, as far as there are any."""
    named = {"scores": lists.scores, "given_scores": lists.given_scores}
    return {name: scores for name, scores in named.items() if scores is not None}
