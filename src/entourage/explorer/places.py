"""Where the points of a run lie in the plane, step by step; computed once and kept with the run.

P points: the N items of the run and, where there is one, the M items of its gallery. T steps.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from entourage.explorer.keeping import keep_places, kept_places
from entourage.explorer.spreading import spread
from entourage.figures.projection import follow_steps, lay_out
from entourage.runs.refinement_run import RefinementRun
from entourage.runtime.progress import Progress
from entourage.values import Embeddings, FloatArray

__all__ = ["places_of"]

Places = NDArray[np.float32]

# What the projection reports, as the page says it.
_SAID = {
    "laying out items": "laying out the map",
    "placing items": "placing all points on the map",
    "following items": "moving the points along the steps",
}


def places_of(run: RefinementRun, progress: Progress | None = None) -> Places:
    """The place of every point at every step: read from the run, or computed and kept there.

    Parameters
    ----------
    run : RefinementRun
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    array of shape (T + 1, P, 2)
        Within -1 and 1.
    """
    count = len(run.items) + (0 if run.context is None else len(run.context))
    shape = (run.n_steps + 1 if run.has_refiner else 2, count, 2)
    kept = kept_places(run.folder, shape)
    if kept is not None:
        return kept
    places = _computed(run, shape, progress)
    keep_places(run.folder, places)
    return places


def _computed(run: RefinementRun, shape: tuple[int, int, int], progress: Progress | None) -> Places:
    def report(title: str, done: int, total: int) -> None:
        if progress:
            progress(_SAID[title], done, total)

    places = np.empty(shape, np.float32)
    together = _joined(run.items.vectors, None if run.context is None else run.context.vectors)
    places[0] = lay_out(Embeddings(together), progress=report)
    steps = follow_steps(places[0], _later_steps(run, progress), count=shape[0] - 1, progress=report)
    for step, found in enumerate(steps, start=1):
        places[step] = found
    return np.clip(spread(_scaled(places)), -1, 1)


def _scaled(places: Places) -> Places:
    """The same within -1 and 1, all steps alike."""
    low, high = places.min(axis=(0, 1)), places.max(axis=(0, 1))
    places -= (low + high) / 2
    places /= max(float((high - low).max()) / 2, 1e-9)
    return places


def _later_steps(run: RefinementRun, progress: Progress | None) -> Iterator[FloatArray]:
    """e_1 to e_T of all points, each (P, d); of a run without a refiner the refined vectors alone."""
    if not run.has_refiner:
        yield _joined(run.refined.vectors, None if run.context_refined is None else run.context_refined.vectors)
        return
    gallery = run.items if run.context is None else run.context

    def searching(title: str, done: int, total: int) -> None:
        if progress and title != "refining":  # of which each step is told when its points have moved
            progress(title, done, total)

    items = run.refiner.iter_steps(run.items, gallery, steps=run.n_steps, progress=searching)
    next(items)
    if run.context is None:
        yield from items
        return
    others = run.refiner.iter_steps(gallery, gallery, steps=run.n_steps, progress=searching)
    next(others)
    for one, other in zip(items, others, strict=True):
        yield _joined(one, other)


def _joined(items: FloatArray, gallery: FloatArray | None) -> FloatArray:
    return items if gallery is None else np.concatenate([items, gallery])
