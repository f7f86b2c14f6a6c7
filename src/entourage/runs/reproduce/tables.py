"""What the papers print and how each row of it is made: papers.toml as values.

A row of a table has what is printed of it, by dataset, and a recipe: the system that trains its encoder, the preset
with the printed settings and what this row changes, and what is done with the embeddings then. Rows without a recipe
are other authors' and are printed alone; rows of our own have nothing printed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from entourage.errors import InputError
from entourage.runtime.config import check_name, merged, read_toml

__all__ = ["Paper", "Recipe", "Row", "Table", "papers", "printed_value", "read_papers", "table_named", "tables"]

FILE = Path(__file__).with_name("papers.toml")


@dataclass(frozen=True)
class Paper:
    """A paper, and what its text leaves open."""

    title: str
    authors: str
    source: str
    """Which document the figures were taken from."""
    note: str = ""


@dataclass(frozen=True)
class Recipe:
    """How a row is made."""

    system: str = "baseline"
    """By what the encoder is trained."""
    preset: str = ""
    """The printed settings; {dataset} stands for the name of the dataset."""
    set: dict[str, Any] = field(default_factory=dict)
    """Settings that this row changes, at every scale."""
    small: dict[str, Any] = field(default_factory=dict)
    """What it changes of all this at small scale; "auto" leaves an option out."""
    refine: dict[str, Any] = field(default_factory=dict)
    """What is done with the embeddings: "by" names it, the rest are its options. Empty: nothing."""
    networks: int = 1
    """Encoders, trained from as many seeds, whose embeddings stand one behind the other."""
    teacher: dict[str, Any] = field(default_factory=dict)
    """The recipe of the run that a student learns from."""


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    name: str
    printed: dict[str, dict[str, float]]
    """What the paper prints: dataset -> metric -> value, in percent but for correlations."""
    recipe: Recipe | None = None
    """None: other authors' row, which is printed alone."""
    cell: tuple[Any, ...] = ()
    """Of a grid: the values of its two settings."""

    @property
    def own(self) -> bool:
        """Whether it is a row of ours, of which nothing is printed."""
        return self.recipe is not None and not self.printed


@dataclass(frozen=True)
class Table:
    """A table or a figure of a paper."""

    id: str
    paper: str
    place: str
    """As the paper calls it: Table 3, Fig. 4."""
    page: int
    shows: str
    """What it shows, in a few words."""
    metrics: dict[str, tuple[str, ...]]
    """What is measured, by dataset, in the order of the columns."""
    rows: tuple[Row, ...]
    measure: str = "scores"
    """How a row is measured, one of measuring.MEASURES."""
    draw: str = ""
    """What is drawn of it, one of drawing.DRAWN; nothing if empty."""
    axes: tuple[str, ...] = ()
    """Of a grid: what its two settings are called."""
    aliases: tuple[str, ...] = ()
    """Other names it is asked for by: figures that are the same on another dataset."""
    says: str = ""
    """What the paper says of it in words, where figures carry no numbers."""
    differs: str = ""
    """What differs here, and why."""
    found: str = ""
    """What the measurements that are kept say, with their protocol; for the page of the papers."""
    small: dict[str, Any] = field(default_factory=dict)
    """At small scale: metrics, and the recipe of the encoder that all trainings begin with (begin)."""

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets it is printed for."""
        return tuple(self.metrics)

    @property
    def made(self) -> tuple[Row, ...]:
        """The rows that can be made here."""
        return tuple(row for row in self.rows if row.recipe is not None)


def tables(scale: str = "full") -> dict[str, Table]:
    """Every table and figure by its id, in the order of the papers.

    Parameters
    ----------
    scale : {"full", "small", "quick"}
        Grids have fewer cells at a smaller scale.

    Returns
    -------
    dict of Table
    """
    return _tables(scale)


def table_named(name: str, scale: str = "full") -> Table:
    """The table of an id or of another name it has."""
    known = tables(scale)
    by_alias = {alias: table for table in known.values() for alias in table.aliases}
    if name in by_alias:
        return by_alias[name]
    check_name(name, known, "table", "of the papers")
    return known[name]


def printed_value(value: float) -> float | None:
    """A printed figure, or None where the paper has a dash."""
    return None if math.isnan(value) else value


# ---- reading -----------------------------------------------------------------------------------------------------


@cache
def read_papers() -> dict[str, Any]:
    """papers.toml as it is written."""
    return read_toml(FILE)


@cache
def papers() -> dict[str, Paper]:
    """The papers by the names that tables give them."""
    return {name: Paper(**values) for name, values in read_papers()["papers"].items()}


@cache
def _tables(scale: str) -> dict[str, Table]:
    found = [_table(dict(entry), scale) for entry in read_papers()["tables"]]
    return {table.id: table for table in found}


def _table(entry: dict[str, Any], scale: str) -> Table:
    shared, written = entry.pop("make", {}), entry.pop("rows", [])
    small, quick, grid = entry.pop("small", {}), entry.pop("quick", {}), entry.pop("grid", None)
    if scale != "full":
        grid = small.get("grid", grid) if scale == "small" else quick.get("grid", small.get("grid", grid))
        small = small if scale == "small" else merged(small, quick)
    metrics = {name: tuple(columns) for name, columns in entry.pop("metrics").items()}
    rows = [_row(row, metrics, shared) for row in written]
    rows += _cells(grid, shared) if grid else []
    tuples: dict[str, Any] = {name: tuple(entry.pop(name, ())) for name in ("axes", "aliases")}
    small = {name: value for name, value in small.items() if name != "grid"}
    return Table(**entry, **tuples, metrics=metrics, rows=tuple(rows), small=small)


def _row(row: Mapping[str, Any], metrics: Mapping[str, tuple[str, ...]], shared: dict[str, Any]) -> Row:
    printed = {}
    for dataset, values in row.get("printed", {}).items():
        if len(values) != len(metrics[dataset]):
            raise InputError(
                f"{row['name']} has {len(values)} printed figures of {dataset}; wanted {len(metrics[dataset])}"
            )
        printed[dataset] = dict(zip(metrics[dataset], map(float, values), strict=True))
    recipe = Recipe(**merged(shared, row["make"])) if "make" in row else None
    return Row(row["name"], printed, recipe)


def _cells(grid: dict[str, Any], shared: dict[str, Any]) -> list[Row]:
    """A row for each pair of values of two settings; a setting is named by its path in the recipe, as "set.heads"."""
    names, rows = list(grid), []
    for values in product(*grid.values()):
        recipe = shared
        for name, value in zip(names, values, strict=True):
            recipe = merged(recipe, _nested(name.split("."), value))
        rows.append(Row(" x ".join(map(str, values)), {}, Recipe(**recipe), values))
    return rows


def _nested(path: list[str], value: Any) -> dict[str, Any]:
    return {path[0]: value if len(path) == 1 else _nested(path[1:], value)}
