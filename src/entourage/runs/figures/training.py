"""Pictures of a run of `entourage train`."""

from typing import TYPE_CHECKING

import numpy as np

from entourage.data.image_set import Items
from entourage.errors import InputError
from entourage.runs.figures.choosing import first, sheet_size
from entourage.runs.figures.options import FigureOptions
from entourage.runs.training_run import TrainingRun
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, labels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from entourage.systems.divide_and_conquer.analysis import SliceScores

__all__ = ["learners", "sheet", "specialities", "training"]

_RECALL_AT = (1, 2, 4, 8)
LOST_AT = 30  # the paper's, for sets in which a query of several items can be lost so far
_LOST_AT_OF_FEW = 5


def training(run: TrainingRun, options: FigureOptions) -> "Figure":
    """Loss and held-out score by epoch."""
    from entourage.figures.training import draw_training

    return draw_training(run.log, f"{run.system} on {source_of(run)}", score_title="held-out MAP@R, %")


def sheet(run: TrainingRun, options: FigureOptions) -> "Figure":
    """Queries of the unseen classes and what they find, from the best found to the worst."""
    from entourage.figures.retrieval import draw_retrieval

    precision, shown = run.per_query["map@r"], run.appearance
    queries, neighbors = sheet_size(shown)
    found = first(run.neighbors, neighbors)
    chosen = spread_queries(precision, labels_of(run.embedded[0]), queries)
    title = "Queries from best to worst found (✓ same label, ✗ another)"
    return draw_retrieval(shown, None, found, chosen, None, title, gallery=run.gallery_appearance)


def spread_queries(precision: FloatArray, labels: LabelArray, count: int) -> IntArray:
    """Rows of queries from the best to the worst average precision, evenly apart, of different classes if possible.

    >>> spread_queries(np.array([0.1, 0.9, 0.5, 0.4]), np.array(["a", "a", "b", "c"]), 3).tolist()
    [1, 2, 3]
    """
    order = np.argsort(-precision, kind="stable")
    places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)
    chosen, seen = [], set()
    for place in places:
        nearby = order[np.argsort(np.abs(np.arange(len(order)) - place), kind="stable")][:50]
        fresh = [row for row in nearby if labels[row] not in seen and row not in chosen]
        chosen.append(next(iter(fresh or [row for row in nearby if row not in chosen])))
        seen.add(labels[chosen[-1]])
    return np.array(sorted(chosen, key=lambda row: -precision[row]), int)


def learners(run: TrainingRun, options: FigureOptions) -> "Figure":
    """Recall of the first m learners, or slices, together."""
    from entourage.figures.slices import draw_first_slices

    scores = _slices(run, options)
    name = f"{run.system}, {len(scores.only)} slices"
    return draw_first_slices({name: {**scores.first}}, f"{source_of(run)}: recall of the first m slices, {_among(run)}")


def specialities(run: TrainingRun, options: FigureOptions) -> "Figure":
    """Queries that one learner alone finds."""
    from entourage.figures.slices import draw_specialities

    scores, items = _slices(run, options), _searched(run)
    if isinstance(items, Embeddings):
        raise InputError(f"{source_of(run)} holds vectors; wanted pictures to show: train on pictures")
    pictures = [[items.picture(int(row)) for row in rows[:10]] for rows in scores.only]
    title = f"{source_of(run)}: queries that one learner alone finds (R@1 = 1, R@{_lost_at(items)} = 0 of all others)"
    if run.embedded[1] is not None:  # in few words: there is room for one line
        title = f"{source_of(run)}, {_among(run)}: found by one alone (others' R@{_lost_at(items)} = 0)"
    return draw_specialities(pictures, [len(rows) for rows in scores.only], title)


def _slices(run: TrainingRun, options: FigureOptions) -> "SliceScores":
    from entourage.systems.divide_and_conquer.analysis import score_slices

    queries, gallery = run.embedded
    items = queries if gallery is None else gallery
    count = options.slices or run.config["settings"]["learners"]
    return score_slices(items, count, recall_at=_RECALL_AT, lost_at=_lost_at(items), progress=run.progress)


def _among(run: TrainingRun) -> str:
    """Slices are compared among the items of one set, without the rules of cameras: not as the run was scored."""
    return "unseen classes" if run.embedded[1] is None else "gallery searched among itself"


def _searched(run: TrainingRun) -> Items:
    queries, gallery = run.tests
    return queries if gallery is None else gallery


def _lost_at(items: Items) -> int:
    """How deep others must find nothing: less deep in small sets, where hardly a query is lost at thirty."""
    return LOST_AT if len(items) >= 20_000 else _LOST_AT_OF_FEW


def source_of(run: TrainingRun) -> str:
    """Name the data that the run was tested on, in short."""
    return run.config["data"]["source"].rstrip("/").rpartition("/")[2]
