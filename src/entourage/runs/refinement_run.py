"""A refinement run, opened again: its vectors at once, all else when it is first asked for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from entourage.data.image_set import ImageSet
from entourage.errors import FileError
from entourage.runs.layout import (
    CONTEXT,
    CONTEXT_REFINED,
    ITEMS,
    METRICS,
    MODEL,
    NEIGHBORS,
    QUERIES,
    REFINED,
    RUN,
    TEXTS,
)
from entourage.runs.media import PictureSource, appearance_of, files_of, load_pictures
from entourage.runtime.progress import Progress
from entourage.stores import StrPath, read_vectors
from entourage.values import Attention, Embeddings, FloatArray, IntArray, Neighbors, Trajectory, brief

if TYPE_CHECKING:
    from entourage.figures.appearance import Appearance
    from entourage.refiner import ContextRefiner, PaperRefiner

__all__ = ["KIND", "NEAREST", "RefinementRun", "open_refinement", "refined_steps"]

KIND = "refinement"
NEAREST = 10  # items kept of every ranking
PER_QUERY = ("recall@1", "map@r")


@dataclass(frozen=True, eq=False)
class RefinementRun:
    """A refinement run: the items before and after, and how they were measured.

    N items, M items of a gallery, T steps, k neighbours.
    """

    folder: Path
    run: dict
    """What run.json holds."""
    document: dict
    """What metrics.json holds."""
    items: Embeddings
    """The N items before."""
    refined: Embeddings
    """The N items after."""
    context: Embeddings | None = None
    """The gallery they are searched in, before; None where it is the items themselves."""
    context_refined: Embeddings | None = None
    """The gallery after."""
    pictures: list[ImageSet] | None = None
    """Image sets to take pictures from, where they are at hand; None: loaded again when they are asked for."""
    progress: Progress | None = field(default=None, repr=False)
    """Called as progress(title, done, total) while something of the run is computed."""

    __repr__ = brief

    @property
    def labelled(self) -> bool:
        """Whether labels are known by which the queries are scored."""
        return self.per_query is not None

    @property
    def n_steps(self) -> int:
        """T, how many steps were taken."""
        return self.document["protocol"]["steps"]

    @property
    def has_refiner(self) -> bool:
        """Whether a refiner did it, which knows its steps, its attention and what other settings would do."""
        return (self.folder / MODEL).is_dir()

    @cached_property
    def refiner(self) -> "ContextRefiner | PaperRefiner":
        """The fitted refiner, where there is one."""
        from entourage.refiner import load_refiner

        return load_refiner(self.folder / MODEL)

    @cached_property
    def trajectory(self) -> Trajectory:
        """Every step of the items, (T + 1, N, d): the raw vectors, then e1..eT. Without a refiner: before and after.

        Only where refining changes the number of dimensions does it begin with e0 as the model sees it.
        """
        if not self.has_refiner:
            return Trajectory(np.stack([self.items.vectors, self.refined.vectors]), self.items.ids)
        return self._steps(self.items, self.context)

    def trajectory_of(self, rows: IntArray) -> Trajectory:
        """Every step of the items in these rows (n,), (T + 1, n, d); the steps of all items are not held for it."""
        if self.has_refiner and self.context is not None:  # the gallery refines each item, whatever others there are
            return self._steps(self.items.take(rows), self.context)
        known = "trajectory" in vars(self) or not self.has_refiner
        whole = self.trajectory if known else self._steps(self.items, None)
        return Trajectory(whole.steps[:, rows], whole.ids[rows])

    @cached_property
    def context_trajectory(self) -> Trajectory | None:
        """Every step of the gallery, (T + 1, M, d), where there is one."""
        return None if self.context is None else self._steps(self.context, None)

    @cached_property
    def attention(self) -> Attention:
        """How much each item looked at its neighbours, step by step, (T, N, k); only where there is a refiner."""
        return self._attention(self.items, self.context)

    def attention_of(self, rows: Sequence[int] | IntArray) -> Attention:
        """How much the items in these rows (n,) looked at their neighbours, step by step, (T, n, k)."""
        gallery = self.items if self.context is None else self.context
        chosen = self.items.take(np.atleast_1d(rows))
        if self.context is None and not self.items.named:  # row numbers are names within one set
            chosen, gallery = (Embeddings(each.vectors, each.ids) for each in (chosen, gallery))
        return self._attention(chosen, gallery)

    @cached_property
    def neighbors(self) -> dict[str, Neighbors]:
        """{"before", "after"} -> the nearest items of each item."""
        with np.load(self.folder / NEIGHBORS, allow_pickle=False) as arrays:
            return {
                when: Neighbors(arrays[f"rows_{when}"], arrays[f"similarities_{when}"]) for when in ("before", "after")
            }

    @cached_property
    def per_query(self) -> dict[str, dict[str, FloatArray]] | None:
        """{"before", "after"} -> {"recall@1", "map@r"} of each query, (N,); None where labels are not known."""
        if not (self.folder / QUERIES).is_file():
            return None
        with np.load(self.folder / QUERIES, allow_pickle=False) as arrays:
            return {when: {name: arrays[f"{name}_{when}"] for name in PER_QUERY} for when in ("before", "after")}

    @cached_property
    def gains(self) -> FloatArray | None:
        """By how much the average precision of each query rose, (N,); None where labels are not known."""
        scores = self.per_query
        return None if scores is None else scores["after"]["map@r"] - scores["before"]["map@r"]

    @cached_property
    def appearance(self) -> "Appearance":
        """How figures show the items: by pictures, texts or ids."""
        return self._appearance(self.items, 0)

    @cached_property
    def gallery_appearance(self) -> "Appearance":
        """How figures show the items that are searched in: those of the gallery, or the items themselves."""
        return self.appearance if self.context is None else self._appearance(self.context, 1)

    @cached_property
    def _picture_sets(self) -> list[ImageSet] | None:
        source = (self.run.get("media") or {}).get("pictures")
        if self.pictures is not None or source is None:
            return self.pictures
        return load_pictures(PictureSource(**source))

    def picture_files(self) -> list[Path]:
        """Return the files of the pictures that stand for the items, as far as they are still there."""
        source = (self.run.get("media") or {}).get("pictures")
        return [] if source is None else files_of(PictureSource(**source).load())

    def _appearance(self, items: Embeddings, place: int) -> "Appearance":
        texts = None
        if "texts" in (self.run.get("media") or {}):
            texts = _json(self.folder / TEXTS)[("items", "context")[place]]
        return appearance_of(items, place, self._picture_sets, texts)

    def _steps(self, items: Embeddings, context: Embeddings | None) -> Trajectory:
        return refined_steps(self.refiner, items, context, self.n_steps, progress=self.progress)

    def _attention(self, items: Embeddings, context: Embeddings | None) -> Attention:
        found = self.refiner.attention(items, items if context is None else context, progress=self.progress)
        return Attention(found.weights[: self.n_steps], found.ids, found.neighbor_ids)


def open_refinement(
    folder: StrPath, *, pictures: list[ImageSet] | None = None, progress: Progress | None = None
) -> RefinementRun:
    """Open a refinement run.

    Parameters
    ----------
    folder : path
        Written by `entourage refine --run`, `write_refinement` or the demo.
    pictures : list of ImageSet, optional
        Image sets that are already loaded.
    progress : callable, optional
        Called as progress(title, done, total) while something of the run is computed.

    Returns
    -------
    RefinementRun
        The opened run.
    """
    folder = Path(folder)
    run = _json(folder / RUN) if (folder / RUN).is_file() else {}
    if run.get("kind") != KIND:
        raise FileError(
            f"{folder} is no refinement run; wanted a folder of `entourage refine ... --run` or `entourage demo`"
        )
    items, refined, context, context_refined = (
        _vectors(folder / name) for name in (ITEMS, REFINED, CONTEXT, CONTEXT_REFINED)
    )
    if items is None or refined is None:
        missing = ITEMS if items is None else REFINED
        raise FileError(f"{folder} has no {missing}; refine again, or copy the whole folder")
    document = _json(folder / METRICS)
    return RefinementRun(folder, run, document, items, refined, context, context_refined, pictures, progress)


def _vectors(path: Path) -> Embeddings | None:
    return read_vectors(path, exclusions=True) if path.is_file() else None


def refined_steps(
    refiner: "ContextRefiner | PaperRefiner",
    items: Embeddings,
    context: Embeddings | None,
    n_steps: int,
    *,
    progress: Progress | None = None,
) -> Trajectory:
    """Every step of the items, (T + 1, N, d): the raw vectors, then e1..eT.

    Only where refining changes the number of dimensions does it begin with e0 as the refiner sees it.
    """
    made = refiner.iter_steps(items, items if context is None else context, steps=n_steps, progress=progress)
    first = next(made)
    steps = np.empty((n_steps + 1, *first.shape), np.float32)  # filled step by step: a stack would be a second copy
    steps[0] = items.vectors if items.dim == first.shape[1] else first
    for step, vectors in enumerate(made, start=1):
        steps[step] = vectors
    return Trajectory(steps, items.ids)


def _json(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read ({error}); make the run again, or copy it anew") from error
