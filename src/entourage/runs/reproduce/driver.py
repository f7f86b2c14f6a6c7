"""One table or figure, row by row: what is there is kept, what is missing is made."""

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from entourage.errors import EntourageError, FileError
from entourage.runs.reproduce.drawing import draw_table
from entourage.runs.reproduce.making import Making, Order, decisive
from entourage.runs.reproduce.markdown import table_text
from entourage.runs.reproduce.measuring import measure
from entourage.runs.reproduce.results import Results
from entourage.runs.reproduce.scale import Scale
from entourage.runs.reproduce.tables import Recipe, Table, papers, table_named
from entourage.runtime.devices import on_device
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.versions import library_versions
from entourage.stores import whole_file
from entourage.values import labels_of

__all__ = ["Reproduced", "Request", "reproduce"]


@dataclass(frozen=True)
class Request:
    """What is asked for: a table, at what scale, and where it goes."""

    table: str
    """Its id, or another name it has."""
    out: Path
    """The folder of all tables of this scale, and of what they are made of."""
    scale: Scale = field(default_factory=Scale)
    overwrite: bool = False
    """Whether rows are measured anew."""


@dataclass(frozen=True, eq=False)
class Reproduced:
    """What came out."""

    table: Table
    results: Results
    text: str
    """The table as Markdown."""
    figures: list[Path]
    missing: dict[str, str]
    """Datasets that are not there, and what of them is missing."""

    def report(self, out: Path) -> str:
        """What a command prints: the table, what the paper says, what differs, and the files."""
        table = self.table
        head = f"{table.place} of {papers()[table.paper].title}: {table.shows} (page {table.page})"
        words = [f"The paper: {table.says}" if table.says else "", f"Here: {table.differs}" if table.differs else ""]
        written = [out / f"{table.id}.md", out / f"{table.id}.json", *self.figures]
        files = f"Written to {', '.join(map(str, written))}"
        return "\n\n".join(part.rstrip("\n") for part in (head, self.text, *words, files) if part)

    def document(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        printed = {
            row.name: {dataset: _without_dashes(values) for dataset, values in row.printed.items()}
            for row in self.table.rows
        }
        place = {"paper": self.table.paper, "place": self.table.place, "page": self.table.page}
        rest = {"printed": printed, "missing": self.missing, "files": [str(path) for path in self.figures]}
        return place | self.results.content | rest


@shows_progress
def reproduce(request: Request, *, progress: ShowProgress = None) -> Reproduced:
    """Make a table or a figure of a paper.

    A row that was measured before with the same settings is kept; an interrupted training is resumed. After every row
    the table is written anew, as OUT/TABLE.json and OUT/TABLE.md; figures are OUT/TABLE-DATASET.png.

    Parameters
    ----------
    request : Request
        The table, its scale, and where it goes.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    Reproduced
        The table as text, what was measured, and the files of its figures.

    Raises
    ------
    FileError
        If none of its datasets is there; the message says which files are missing.
    """
    with on_device(request.scale.settings.get("device", "auto")):
        return _reproduced(request, progress)


def _reproduced(request: Request, progress: Progress | None) -> Reproduced:
    table = table_named(request.table, request.scale.name)
    making = Making(request.out, request.scale, progress)
    datasets, missing = _present(table, making)
    results = Results(request.out / f"{table.id}.json", table.id, request.scale.name)
    figures = []
    for dataset in datasets:
        if request.overwrite:
            results.forget(dataset)
        measured = _measure_rows(table, results, making, dataset)
        known = [request.out / name for name in results.content["figures"].get(dataset, [])]
        if table.draw and (measured or not known or not all(path.exists() for path in known)):
            known = draw_table(table, dataset, orders(table, making.scale, dataset, 0), results, making, request.out)
            results.content["figures"][dataset] = [path.name for path in known]
            results.write()
        figures += known
    text = _write_text(table, results, request.scale, datasets)
    return Reproduced(table, results, text, figures, missing)


def _write_text(table: Table, results: Results, scale: Scale, datasets: Iterable[str]) -> str:
    text = table_text(table, results, scale, datasets)
    with whole_file(results.file.with_suffix(".md")) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return text


def orders(table: Table, scale: Scale, dataset: str, seed: int) -> dict[str, Order]:
    """What each row asks for, by its name."""
    begin = table.small.get("begin") if scale.is_small else None
    first = None if begin is None else Recipe(**begin)
    return {
        row.name: Order(scale.recipe(row.recipe), dataset, seed, first) for row in table.made if row.recipe is not None
    }


def _present(table: Table, making: Making) -> tuple[list[str], dict[str, str]]:
    """The datasets that can be loaded, and what the others lack."""
    present, missing = [], {}
    for dataset in making.scale.datasets(table):
        try:
            for split in ("train", *making.test_splits(dataset)):
                making.items(dataset, split)
            present.append(dataset)
        except EntourageError as error:
            if making.scale.is_small:
                raise
            missing[dataset] = str(error)
    if not present:
        raise FileError(f"{table.id} needs data that are not there: {'; '.join(missing.values())}")
    return present, missing


def _measure_rows(table: Table, results: Results, making: Making, dataset: str) -> int:
    """Measure what is missing, seed by seed, so that a whole table is there early; how many rows that were."""
    scale, count = making.scale, 0
    metrics = scale.metrics(table, dataset)
    results.content["protocol"][dataset] = _protocol(making, dataset)
    for seed in scale.seed_range():
        for name, order in orders(table, scale, dataset, seed).items():
            of = _fingerprint(table, order, scale)
            if results.has(dataset, name, seed, of):
                continue
            if making.progress:
                making.progress(f"{table.id}: {name}, {dataset}, seed {seed}", 0, 1)
            started = time.perf_counter()
            values = measure(table.measure, making, order, metrics)
            seconds = round(time.perf_counter() - started, 1)
            results.add(dataset, name, seed, {"of": of, "seconds": seconds, "values": values})
            _write_text(table, results, scale, [dataset])
            count += 1
    return count


def _protocol(making: Making, dataset: str) -> dict[str, Any]:
    """What was measured on, and what the scale decides."""
    scale = making.scale
    sets = {split: making.items(dataset, split) for split in ("train", *making.test_splits(dataset))}
    said: dict[str, Any] = {
        name: f"{len(items):,} items of {len(np.unique(labels_of(items))):,} classes" for name, items in sets.items()
    }
    of_scale = {name: value for name, value in scale.values.items() if name not in ("data", "seeds")}
    return said | {"scale": of_scale, "set": scale.settings, "versions": library_versions()}


def _fingerprint(table: Table, order: Order, scale: Scale) -> str:
    """A name of everything that decides what a row measures."""
    recipe, dataset, seed = order.recipe, order.dataset, order.seed
    first = [order.begin] if order.begin else []
    first += [Recipe(**recipe.teacher)] if recipe.teacher else []
    given = {"teacher": "its teacher"} if recipe.teacher else {}
    settings = [decisive(scale.training(each, dataset, seed)) for each in first]
    settings.append(decisive(scale.training(recipe, dataset, seed, **given)))
    refining = scale.refiner(recipe) if recipe.refine.get("by") else {}
    described = [table.measure, settings, asdict(replace(recipe, small={})), refining, scale.options()]
    return hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _without_dashes(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else value for name, value in values.items()}
