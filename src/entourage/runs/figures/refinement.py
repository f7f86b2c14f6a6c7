"""Pictures of a refinement: each takes from the run what its figure wants."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from entourage.evaluation import evaluate_embeddings
from entourage.figures.appearance import Appearance
from entourage.figures.projection import follow, lay_out
from entourage.runs.figures.choosing import (
    SHOWN,
    choose_changed,
    choose_drifting,
    choose_row,
    choose_rows,
    first,
    sheet_size,
)
from entourage.runs.figures.matches import moved_matches, ranks_of
from entourage.runs.figures.options import FigureOptions
from entourage.runs.refinement_run import RefinementRun, refined_steps
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray, Neighbors

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

    from entourage.figures.motion import DriftFrames

__all__ = ["changed_queries", "drift", "drift_motion", "grid", "query", "sheet", "steps"]

MOST_SCORED = 10_000  # items that are scored again and again, unless more are asked for
MOST_REFINED = 2000  # items that are refined again and again
_NEIGHBORS = (4, 8, 16, 32, 64)
_SCORES = {"recall@1": "recall@1", "MAP@R": "map@r"}  # title -> metric
_DRIFT = "Where refinement moves the items"


def drift(run: RefinementRun, options: FigureOptions) -> "Figure":
    """Items before and after in one plane."""
    from entourage.figures.drift import draw_drift

    rows, positions = _drifting(run, options, motion=False)
    # The ends alone are drawn, but it is said which step the last is.
    straight = np.linspace(positions[0], positions[-1], max(1, run.n_steps) + 1)
    return draw_drift(straight, part_of(run.appearance, rows), _DRIFT, **_drift_words(run, rows, options, motion=False))


def drift_motion(run: RefinementRun, options: FigureOptions) -> "DriftFrames":
    """Items in one plane at every step, as motion."""
    from entourage.figures.motion import drift_frames

    rows, positions = _drifting(run, options, motion=True)
    words = _drift_words(run, rows, options, motion=True)
    return drift_frames(positions, part_of(run.appearance, rows), _DRIFT, **words)


def _drifting(run: RefinementRun, options: FigureOptions, motion: bool) -> tuple[IntArray, FloatArray]:
    """The rows (n,) that are shown, and where they lie: at every step, (T + 1, n, 2), or first and last, (2, n, 2)."""
    rows = choose_drifting(run.items, options.points, options.seed)
    path = _path(run, rows, motion)
    start = run.items.take(rows) if path.shape[2] == run.items.dim else Embeddings.from_vectors(path[0])
    begun = lay_out(start, seed=options.seed, progress=run.progress)
    return rows, follow(begun, path, seed=options.seed, progress=run.progress)


def _path(run: RefinementRun, rows: IntArray, motion: bool) -> FloatArray:
    """(T + 1, n, d) of the rows; the first and the last step alone, which are at hand, where nothing moves."""
    if motion or run.items.dim != run.refined.dim:
        steps = run.trajectory_of(rows).steps
        return steps if motion else steps[[0, -1]]
    return np.stack([run.items.vectors[rows], run.refined.vectors[rows]])


def _drift_words(run: RefinementRun, rows: IntArray, options: FigureOptions, motion: bool) -> dict[str, Any]:
    """What a drift says of its choice of items: options of `draw_drift`."""
    when = "each step" if motion else f"{run.n_steps} step{'s' * (run.n_steps > 1)}"
    way = f"t-SNE of their raw vectors; each item is then fitted to its similarities after {when}"
    labels, sizes = run.items.labels, None
    if labels is not None and len(rows) < len(labels):
        names, counts = np.unique(labels, return_counts=True)
        sizes = dict(zip(names.astype(str).tolist(), counts.tolist(), strict=True))
    which = _drawn(labels, rows, len(run.items))
    if len(rows) < len(run.items) and not options.in_report:
        which += f"; --points {len(run.items)} draws all"
    return {"note": f"{which}\n{way}", "sizes": sizes, "seed": options.seed}


def _drawn(labels: LabelArray | None, rows: IntArray, whole: int) -> str:
    """How many items of how many are drawn, and which they are."""
    if len(rows) == whole:
        return f"{whole:,} items"
    which = "drawn at random"
    if labels is not None:
        counts = np.unique(labels, return_counts=True)[1]
        shown = len(np.unique(labels[rows]))
        choice = f"{shown:,}" if counts.min() == counts.max() else f"the {shown:,} most frequent"
        which = "of all classes" if shown == len(counts) else f"from {choice} of {len(counts):,} classes"
    return f"{_count(len(rows), whole)}, {which}, laid out by themselves"


def query(run: RefinementRun, options: FigureOptions) -> "Figure":
    """Draw one query: its neighbours before and after and, where the refiner tells, what it attended to in between."""
    from entourage.figures.query import draw_query

    row = int(changed_queries(run, 2)[0]) if options.query is None else choose_row(run.items, options.query)
    before, after = (_one(run.neighbors[when], row) for when in ("before", "after"))
    gallery = run.items if run.context is None else run.context
    looked_at, weights = _attention(run, row, gallery) if run.has_refiner else (None, None)
    return draw_query(
        run.appearance,
        row,
        before,
        after,
        looked_at,
        weights,
        _query_title(run, row),
        gallery=run.gallery_appearance,
        positions=ranks_of(run.items, row, gallery, after.rows[0]),
        note=moved_matches(run, row),
    )


def _attention(run: RefinementRun, row: int, gallery: Embeddings) -> tuple[IntArray, FloatArray]:
    """Rows (k,) of the gallery that an item looked at, and how much at each step, (T, k)."""
    attention = run.attention_of([row])
    row_of = {item: place for place, item in enumerate(gallery.ids.tolist())}
    return np.array([row_of[item] for item in attention.neighbor_ids[0].tolist()]), attention.weights[:, 0]


def _query_title(run: RefinementRun, row: int) -> str:
    item, scores = run.items.ids[row], run.per_query  # the id is what --query takes
    if scores is None or run.items.labels is None:
        return f"Item {item}"
    before, after = (100 * scores[when]["map@r"][row] for when in ("before", "after"))
    return f"Query of “{run.items.labels[row]}”: average precision {before:.0f} → {after:.0f} %, item {item}"


def sheet(run: RefinementRun, options: FigureOptions) -> "Figure":
    """Queries with what they find before and after, the biggest gains first, then the biggest losses."""
    from entourage.figures.retrieval import draw_retrieval

    shown, gains = run.appearance, run.gains
    queries, neighbors = sheet_size(shown)
    before, after = rankings(run, neighbors)
    chosen = changed_queries(run, queries)
    title = "Biggest gains, then biggest losses (✓ same label, ✗ another)"
    if gains is None:
        title = "Queries whose neighbours changed most"
    notes = [moved_matches(run, int(row)) for row in chosen]
    return draw_retrieval(shown, before, after, chosen, gains, title, gallery=run.gallery_appearance, notes=notes)


def steps(run: RefinementRun, options: FigureOptions) -> "Figure":
    """Scores after each step, relative to the raw vectors."""
    from entourage.figures.steps import draw_steps

    rows = _scored_rows(run, options, MOST_SCORED)
    items, gallery = _trajectories(run, rows)
    scores = [
        evaluate_embeddings(*sets, nmi=False, progress=run.progress).metrics
        for sets in zip(items, gallery, strict=True)
    ]
    curves = {title: [values[name] for values in scores] for title, name in _SCORES.items()}
    return draw_steps(curves, "Scores after each step", _scored_note(run, items[0]), ends=not options.in_report)


def _trajectories(run: RefinementRun, rows: IntArray | None) -> tuple[list[Embeddings], Sequence[Embeddings | None]]:
    """Items and gallery (or None) after 0..T steps; items are searched among the rows that are scored."""
    queries = run.items if rows is None else run.items.take(rows)
    path = run.trajectory if rows is None else run.trajectory_of(rows)
    items = [queries.replace_vectors(step) for step in path.steps]
    if run.context is None or run.context_trajectory is None:
        return items, [None] * len(items)
    return items, [run.context.replace_vectors(step) for step in run.context_trajectory.steps]


def grid(run: RefinementRun, options: FigureOptions) -> "Figure":
    """Draw recall@1 and MAP@R by number of neighbours and number of steps, refining again for each."""
    from entourage.figures.grid import draw_grids

    rows = _scored_rows(run, options, MOST_REFINED)
    items = run.items if rows is None else run.items.take(rows)
    counts = _neighbor_counts(run, len(items if run.context is None else run.context) - 1)
    raw = _scores(items, run.context)  # what no number of neighbours changes
    scores = []
    for done, k in enumerate(counts):
        scores.append(_scores_by_step(run, items, k) or [raw])
        if run.progress:
            run.progress("refining with other settings", done + 1, len(counts))
    return draw_grids(
        {title: [[each[title] for each in row] for row in scores] for title in raw},
        counts,
        range(min(1, run.n_steps), run.n_steps + 1),
        "neighbours k",
        "steps T",
        f"Scores by neighbours and steps, {_count(len(items), len(run.items))}",
        references=raw if run.n_steps else None,
        used=(int(run.refiner.n_neighbors_), run.n_steps),
    )


def _neighbor_counts(run: RefinementRun, available: int) -> list[int]:
    used = int(run.refiner.n_neighbors_)
    return [k for k in sorted({*_NEIGHBORS, used}) if k <= available]


def _scores_by_step(run: RefinementRun, items: Embeddings, k: int) -> list[dict[str, float]]:
    """Scores after 1..T steps with k neighbours."""
    refiner = run.refiner.with_neighbors(k)
    queries = refined_steps(refiner, items, run.context, run.n_steps).steps
    gallery: Sequence[Embeddings | None] = [None] * len(queries)
    if run.context is not None:
        among = refined_steps(refiner, run.context, None, run.n_steps)
        gallery = [run.context.replace_vectors(step) for step in among.steps]
    return [_scores(items.replace_vectors(queries[t]), gallery[t]) for t in range(1, len(queries))]


def _scores(items: Embeddings, gallery: Embeddings | None) -> dict[str, float]:
    """Scores in percent, by the title they have in a figure."""
    metrics = evaluate_embeddings(items, gallery, nmi=False).metrics
    return {f"{title}, %": 100 * metrics[name] for title, name in _SCORES.items()}


# ---- shared ------------------------------------------------------------------------------------------------------


def changed_queries(run: RefinementRun, count: int) -> IntArray:
    """Choose the queries that a figure or a report shows, whatever the number of neighbours it shows of each."""
    return choose_changed(run.gains, *rankings(run, SHOWN), count, run.items.labels)


def rankings(run: RefinementRun, shown: int) -> tuple[Neighbors, Neighbors]:
    """Return the nearest items of each query before and after, as many as are shown."""
    return first(run.neighbors["before"], shown), first(run.neighbors["after"], shown)


def part_of(shown: Appearance, rows: IntArray) -> Appearance:
    """Return how the items in these rows are shown."""
    picture = None if shown.picture is None else _picture_of(shown.picture, rows)
    texts = None if shown.texts is None else [shown.texts[row] for row in rows]
    columns = [None if each is None else each[rows] for each in (shown.labels, shown.cameras, shown.sequences)]
    return Appearance(shown.ids[rows], columns[0], picture, texts, *columns[1:])


def _picture_of(picture: "Callable[[int], Image]", rows: IntArray) -> "Callable[[int], Image]":
    return lambda row: picture(int(rows[row]))


def _one(found: Neighbors, row: int) -> Neighbors:
    return Neighbors(found.rows[[row]], found.similarities[[row]])


def _scored_rows(run: RefinementRun, options: FigureOptions, most: int) -> IntArray | None:
    return choose_rows(run.items, options.points or most, options.seed)


def _scored_note(run: RefinementRun, items: Embeddings) -> str:
    among = "themselves" if run.context is None else f"{len(run.context):,} of a gallery"
    return f"{_count(len(items), len(run.items))}, searched among {among}"


def _count(shown: int, whole: int) -> str:
    return f"{whole:,} items" if shown == whole else f"{shown:,} of {whole:,} items"
