"""The figures of the papers, drawn from what a table's rows were made of (seed 0), or from what was measured."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.errors import InputError
from entourage.runs.figures import draw
from entourage.runs.reproduce.making import Making, Order
from entourage.runs.reproduce.markdown import metric_title
from entourage.runs.reproduce.measuring import lost_at, refined_sets, test_sets
from entourage.runs.reproduce.results import Results
from entourage.runs.reproduce.scale import data_name
from entourage.runs.reproduce.tables import Row, Table
from entourage.runtime.config import check_known
from entourage.values import Embeddings, labels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from entourage.figures.appearance import Appearance

__all__ = ["DRAWN", "draw_table"]

_POINTS = 500  # items of a drift, as in the paper
_QUERIES, _NEIGHBORS = 2, 8  # of the figures of queries
_CLASSES, _SUBSETS = 10, 3  # of the figures of classes


@dataclass(frozen=True)
class Job:
    """What a figure is drawn from."""

    table: Table
    dataset: str
    orders: dict[str, Order]
    """What each row asks for, of seed 0."""
    results: Results
    making: Making

    @property
    def order(self) -> Order:
        """Of the paper's own row, or of the last."""
        return self.orders.get("Ours") or list(self.orders.values())[-1]

    @property
    def title(self) -> str:
        return f"{data_name(self.dataset)}: {self.table.shows.partition(',')[0]}"  # there is room for one line

    def values(self, row: Row, metric: str) -> list[Any]:
        found = self.results.values(self.dataset, row.name).values()
        return [values[metric] for values in found if metric in values]


def draw_table(
    table: Table, dataset: str, orders: dict[str, Order], results: Results, making: Making, out: Path
) -> list[Path]:
    """Draw what a paper shows as a figure.

    Parameters
    ----------
    table : Table
        The figure; its `draw` says how.
    dataset : str
        The dataset it is drawn of.
    orders : dict of Order
        What each row asks for, of seed 0.
    results : Results
        What was measured.
    making : Making
        What made it.
    out : Path
        The folder of the pictures.

    Returns
    -------
    list of Path
        OUT/TABLE-DATASET.png, with numbers where there are several.
    """
    from entourage.figures import save

    check_known(table.draw, DRAWN, "what is drawn")
    figures = DRAWN[table.draw](Job(table, dataset, orders, results, making))
    stem = f"{table.id}-{data_name(dataset)}"
    names = [stem] if len(figures) == 1 else [f"{stem}-{number}" for number in range(1, len(figures) + 1)]
    paths = [out / f"{name}.png" for name in names]
    for figure, path in zip(figures, paths, strict=True):
        save(figure, path)
    return paths


# ---- from what was measured --------------------------------------------------------------------------------------


def _grid(job: Job) -> list["Figure"]:
    """Recall@1 over two settings, and by how much each cell is below the best."""
    from entourage.figures.grid import draw_grids

    rows, columns = (list(dict.fromkeys(row.cell[side] for row in job.table.rows)) for side in (0, 1))
    by_cell = {row.cell: job.values(row, "recall@1") for row in job.table.rows}
    means = np.array([[_mean(by_cell[one, other]) for other in columns] for one in rows])
    spreads = np.array([[_spread(by_cell[one, other]) for other in columns] for one in rows])
    values = {"recall@1, %": 100 * means, "relative to the best, %": 100 * (means / np.nanmax(means) - 1)}
    several = {"recall@1, %": 100 * spreads} if np.isfinite(spreads).any() else None
    first, second = job.table.axes
    return [draw_grids(values, rows, columns, first, second, job.title, spreads=several)]


def _curves(job: Job) -> list["Figure"]:
    """Recall@1 of training and test classes over the second setting, lines by the first."""
    from entourage.figures.curves import draw_curves

    names = {1.0: "with the network", 0.0: "cross-entropy alone"}
    lines: dict[str, dict[float, list[float]]] = {}
    for row in job.table.rows:
        first, second = row.cell
        for metric, of in (("train recall@1", "training classes"), ("recall@1", "test classes")):
            found = [100 * value for value in job.values(row, metric)]
            if found:
                lines.setdefault(f"{names.get(first, first)}: {of}", {})[float(second)] = found
    return [draw_curves(lines, job.table.axes[1], "recall@1, %", job.title)]


def _rows(job: Job) -> list["Figure"]:
    """Every metric over the rows, whose names are numbers: one line each."""
    from entourage.figures.curves import draw_curves

    lines: dict[str, dict[float, list[float]]] = {}
    for metric in job.making.scale.metrics(job.table, job.dataset):
        for row in job.table.made:
            found = [100 * value for value in job.values(row, metric)]
            if found:
                size = job.making.scale.training(job.orders[row.name].recipe, job.dataset, 0).dim
                lines.setdefault(metric_title(metric), {})[float(size)] = found
    return [draw_curves(lines, job.table.axes[0], "%", job.title)]


def _steps(job: Job) -> list["Figure"]:
    """Gains over the initial embeddings after each block, means over the seeds."""
    from entourage.figures.steps import draw_steps

    row = job.table.made[-1]
    curves = {
        title: np.mean(job.values(row, f"{name} by step"), axis=0).tolist()
        for title, name in (("recall@1", "recall@1"), ("MAP@R", "map@r"))
    }
    return [draw_steps(curves, job.title)]


def _learners(job: Job) -> list["Figure"]:
    """Recall of the first m learners, or slices, together, means over the seeds."""
    from entourage.figures.slices import draw_first_slices

    recalls = {
        row.name: {k: np.mean(job.values(row, f"recall@{k} of the first"), axis=0).tolist() for k in (1, 2, 4, 8)}
        for row in job.table.made
        if job.values(row, "recall@1 of the first")
    }
    return [draw_first_slices(recalls, job.title)]


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else np.nan


def _spread(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


# ---- from what it was made of ------------------------------------------------------------------------------------


def _appearances(job: Job) -> tuple["Appearance", "Appearance"]:
    """How the queries look, and what they are searched in; without pictures that could not be decoded."""
    from entourage.figures.appearance import Appearance

    splits = job.making.test_splits(job.dataset)
    shown = []
    for split in (splits[0], splits[-1]):
        images, items = job.making.items(job.dataset, split), job.making.embedded(job.order, split)
        kept = np.isin(images.ids.astype(str), items.ids.astype(str))
        shown.append(Appearance.of(images if kept.all() else images.take(np.flatnonzero(kept))))
    return shown[0], shown[1]


def _drift(job: Job) -> list["Figure"]:
    """Where 500 items lie before and after."""
    from entourage.figures.drift import draw_drift
    from entourage.figures.projection import follow, lay_out
    from entourage.runs.figures.choosing import choose_drifting
    from entourage.runs.figures.refinement import part_of

    before, after = test_sets(job.making, job.order), refined_sets(job.making, job.order)
    rows = choose_drifting(before.queries, _POINTS, 0)
    shown = before.queries.take(rows)
    path = np.stack([shown.vectors, after.queries.vectors[rows]])
    begun = lay_out(shown, progress=job.making.progress)
    places = follow(begun, path, progress=job.making.progress)
    steps = job.making.refiner(job.order).n_steps_
    straight = np.linspace(places[0], places[-1], steps + 1)
    return [draw_drift(straight, part_of(_appearances(job)[0], rows), job.title)]


def _query_plane(job: Job) -> list["Figure"]:
    """The queries that refinement gains most for, each among its nearest."""
    from entourage.evaluation import evaluate_embeddings
    from entourage.figures.projection import follow, lay_out
    from entourage.figures.query_plane import draw_query_plane
    from entourage.figures.retrieval import choose_queries
    from entourage.neighbors import search

    before, after = test_sets(job.making, job.order), refined_sets(job.making, job.order)
    gains = [evaluate_embeddings(*sets, nmi=False).per_query["map@r"] for sets in (before, after)]
    chosen = choose_queries(gains[1] - gains[0], _QUERIES, 0, labels_of(before.queries))
    searched = before.queries if before.gallery is None else before.gallery
    found = search(before.queries, before.gallery, min(_NEIGHBORS, len(searched) - 1))
    refiner, (shown, gallery) = job.making.refiner(job.order), _appearances(job)
    figures = []
    for row in (chosen if len(chosen) else np.arange(1)).tolist():
        query = before.queries.take(np.array([row]))
        steps = refiner.trajectory(query, searched).steps  # (T + 1, 1, d)
        others = searched.vectors[_others(before.queries, searched, row)]
        stacked = np.concatenate([steps, np.broadcast_to(others, (len(steps), *others.shape))], axis=1)
        begun = lay_out(Embeddings.from_vectors(stacked[0]), progress=job.making.progress)
        places = follow(begun, stacked, rows=[0])
        where = {int(item): 1 + place for place, item in enumerate(_others(before.queries, searched, row))}
        near = places[0, [where[int(item)] for item in found.rows[row]]]
        title = f"{data_name(job.dataset)}: a query of “{shown.name(row)}” among its {found.k} nearest"
        figures.append(draw_query_plane(places[:, 0], near, shown, row, found.rows[row], title, gallery=gallery))
    return figures


def _others(queries: Embeddings, searched: Embeddings, row: int) -> np.ndarray:
    """The items that a query lies among: at most 2,000, so that t-SNE lays all of them out."""
    rows = np.flatnonzero(searched.ids != queries.ids[row]) if searched is queries else np.arange(len(searched))
    similar = searched.vectors[rows] @ queries.vectors[row]
    return rows[np.sort(np.argsort(-similar, kind="stable")[:1999])]


def _classes(job: Job) -> list["Figure"]:
    """Subsets of ten test classes, a row of panels for each way of training."""
    from entourage.figures.planes import Plane, draw_planes
    from entourage.figures.projection import lay_out
    from entourage.runtime.randomness import generator

    planes, names = [], list(job.orders)
    drawn: list[np.ndarray] = []
    for name in names:
        items = test_sets(job.making, job.orders[name]).queries
        labels = labels_of(items)
        if not drawn:
            classes = generator(0).permutation(np.unique(labels))
            drawn = [classes[n * _CLASSES : (n + 1) * _CLASSES] for n in range(_SUBSETS) if n * _CLASSES < len(classes)]
        places = lay_out(items, progress=job.making.progress)
        planes.append([Plane(places[np.isin(labels, some)], labels[np.isin(labels, some)]) for some in drawn])
    note = f"t-SNE of all test items; a column shows {len(drawn[0])} of their classes"
    return [draw_planes(planes, names, job.title, note)]


def _map(job: Job) -> list["Figure"]:
    from entourage.figures.planes import draw_map
    from entourage.figures.projection import lay_out

    items = test_sets(job.making, job.order).queries
    places = lay_out(items, progress=job.making.progress)
    return [draw_map(places, _appearances(job)[0], job.title)]


def _specialities(job: Job) -> list["Figure"]:
    """Ten queries of each learner that no other finds."""
    from entourage.figures.slices import draw_specialities
    from entourage.systems.divide_and_conquer.analysis import score_slices

    sets = test_sets(job.making, job.order)
    items = sets.queries if sets.gallery is None else sets.gallery
    shown = _appearances(job)[1]
    if shown.picture is None:
        raise InputError(f"{job.dataset} holds vectors; wanted pictures to show")
    found = score_slices(items, job.making.scale.settings.get("learners", 8), lost_at=lost_at(len(items))).only
    pictures = [[shown.picture(int(row)) for row in rows[:10]] for rows in found]
    title = f"{job.title} (R@1 = 1, R@{lost_at(len(items))} = 0 of all others)"
    return [draw_specialities(pictures, [len(rows) for rows in found], title)]


def _gradients(job: Job) -> list["Figure"]:
    """Gradients of the baseline and of ours, and of ours at the same weights without the blocks."""
    from entourage.figures.gradients import draw_gradients
    from entourage.runs.figures.cross_image import counts_by_epoch
    from entourage.systems.cross_image.probe import EDGES, read_gradients

    counts = {}
    for name, order in job.orders.items():
        if not order.recipe.refine.get("by"):
            counts[name] = read_gradients(job.making.trained(order).run.folder)
    by_epoch = {name: counts_by_epoch(entries, "with_blocks") for name, entries in counts.items()}
    by_epoch["Ours, at the same weights without the blocks"] = counts_by_epoch(counts["Ours"], "without_blocks")
    return [draw_gradients(by_epoch, EDGES, job.title)]


def _of_run(kind: str) -> Callable[[Job], list["Figure"]]:
    """A figure that every training run of the system has, see `entourage plot`."""

    def of_run(job: Job) -> list["Figure"]:
        return [draw(kind, job.making.trained(job.order).run)]

    return of_run


DRAWN: dict[str, Callable[[Job], list["Figure"]]] = {
    "attention": _of_run("attention"),
    "classes": _classes,
    "curves": _curves,
    "drift": _drift,
    "gradients": _gradients,
    "grid": _grid,
    "learners": _learners,
    "map": _map,
    "parts": _of_run("parts"),
    "query-plane": _query_plane,
    "rows": _rows,
    "sheet": _of_run("sheet"),
    "specialities": _specialities,
    "steps": _steps,
}
