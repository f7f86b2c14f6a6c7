"""A refinement run, opened again: its vectors at once, all else when it is first asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from entourage.data.image_set import ImageSet
from entourage.errors import FileError
from entourage.runs.documents import RefinementMetrics, RefinementRecord, Texts
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
from entourage.stores.documents import read_arrays, read_document
from entourage.stores.reading import named
from entourage.values import Attention, Embeddings, FloatArray, IntArray, Neighbors, Trajectory, brief

if TYPE_CHECKING:
    from entourage.figures.appearance import Appearance
    from entourage.refiner import ContextRefiner, PaperRefiner

__all__ = ["KIND", "NEAREST", "RefinementRun", "open_refinement", "refined_steps"]

KIND = "refinement"
NEAREST = 10  # items kept of every ranking
PER_QUERY = ("recall@1", "map@r")
_WHEN = ("before", "after")


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
        path, count = self.folder / NEIGHBORS, len(self.items)
        gallery = len(self.items if self.context is None else self.context)
        rows = read_arrays(path, {f"rows_{when}": (count, None) for when in _WHEN}, "iu")
        shapes = {f"similarities_{when}": rows[f"rows_{when}"].shape for when in _WHEN}
        similarities = read_arrays(path, shapes)
        for name, found in rows.items():
            if found.size and not 0 <= found.min() <= found.max() < gallery:
                raise FileError(f"{path}: {name} goes from {found.min()} to {found.max()}; wanted 0 to {gallery - 1}")
        with named(path):
            return {when: Neighbors(rows[f"rows_{when}"], similarities[f"similarities_{when}"]) for when in _WHEN}

    @cached_property
    def per_query(self) -> dict[str, dict[str, FloatArray]] | None:
        """{"before", "after"} -> {"recall@1", "map@r"} of each query, (N,); None where labels are not known."""
        sets = (self.items, self.refined, self.context, self.context_refined)
        if any(each is not None and each.labels is None for each in sets) or not (self.folder / QUERIES).exists():
            return None
        shapes = {f"{name}_{when}": (len(self.items),) for name in PER_QUERY for when in _WHEN}
        arrays = read_arrays(self.folder / QUERIES, shapes)
        return {when: {name: arrays[f"{name}_{when}"] for name in PER_QUERY} for when in _WHEN}

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
        return load_pictures(PictureSource(*(source[name] for name in ("source", "root", "split", "options"))))

    def picture_files(self) -> list[Path]:
        """Return the files of the pictures that stand for the items, as far as they are still there."""
        source = (self.run.get("media") or {}).get("pictures")
        return [] if source is None else files_of(PictureSource(**source).load())

    def _appearance(self, items: Embeddings, place: int) -> "Appearance":
        texts = None
        if "texts" in (self.run.get("media") or {}):
            texts = read_document(self.folder / TEXTS, Texts)[("items", "context")[place]]
            if texts is not None and len(texts) != len(items):
                raise FileError(f"{self.folder / TEXTS} has {len(texts)} texts for {len(items)} items; wanted one each")
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
    run = read_document(folder / RUN, RefinementRecord) if (folder / RUN).exists() else {}
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
    _check_alike(folder, items, refined, context, context_refined)
    document = read_document(folder / METRICS, RefinementMetrics)
    if document["metrics"].keys() != document["metrics_before"].keys():
        raise FileError(f"{folder / METRICS}: metrics and metrics_before name different ones; refine again")
    return RefinementRun(folder, run, document, items, refined, context, context_refined, pictures, progress)


def _vectors(path: Path) -> Embeddings | None:
    return read_vectors(path, exclusions=True) if path.exists() else None


def _check_alike(
    folder: Path, items: Embeddings, refined: Embeddings, context: Embeddings | None, context_refined: Embeddings | None
) -> None:
    """Refuse files that are not of one run: as many items after as before, a gallery before and after, or none."""
    if (context is None) != (context_refined is None):
        missing = CONTEXT if context is None else CONTEXT_REFINED
        raise FileError(f"{folder} has no {missing}; refine again, or copy the whole folder")
    pairs = [(items, refined, REFINED), (context, context_refined, CONTEXT_REFINED)]
    for before, after, name in pairs:
        if before is not None and after is not None and len(before) != len(after):
            raise FileError(f"{folder / name} has {len(after)} vectors; wanted {len(before)}, as before: refine again")
    for one, other, name in [(items, context, CONTEXT), (refined, context_refined, CONTEXT_REFINED)]:
        if one is not None and other is not None and one.dim != other.dim:
            raise FileError(f"{folder / name} has {other.dim} dimensions; wanted {one.dim}, as the items: refine again")


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
