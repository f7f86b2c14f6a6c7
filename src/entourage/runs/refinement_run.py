"""A kept refinement, opened again: its vectors at once, all else when it is asked for."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from entourage.errors import FileError
from entourage.runs.media import PictureSource, appearance_of, load_pictures
from entourage.runtime.once import Once
from entourage.stores import read_vectors
from entourage.values import Attention, Embeddings, Neighbors, Trajectory

__all__ = ["RefinementRun", "open_refinement", "refined_steps"]

KIND = "refinement"
RUN, METRICS, MODEL, TEXTS = "run.json", "metrics.json", "model", "texts.json"
ITEMS, REFINED, CONTEXT, CONTEXT_REFINED = "items.npz", "refined.npz", "context.npz", "context_refined.npz"
NEIGHBORS, QUERIES = "neighbors.npz", "queries.npz"
NEAREST = 10  # items kept of every ranking
PER_QUERY = ("recall@1", "map@r")


@dataclass(frozen=True, eq=False)
class RefinementRun:
    """What was refined, what came of it, and how it was measured.

    items, refined: N items before and after; context, context_refined: the gallery they are searched in, or None where
    it is the items themselves. run and document: what run.json and metrics.json hold.
    """

    folder: Path
    run: dict
    document: dict
    items: Embeddings
    refined: Embeddings
    context: Embeddings | None = None
    context_refined: Embeddings | None = None
    pictures: list | None = None
    """Image sets to take pictures from, where they are at hand; None: loaded again when they are asked for."""
    _once: Once = field(default_factory=Once, repr=False)

    @property
    def labelled(self) -> bool:
        """Whether labels are known, and tell right from wrong: whether there are scores."""
        return self.per_query() is not None

    @property
    def n_steps(self) -> int:
        return self.document["protocol"]["steps"]

    @property
    def has_refiner(self) -> bool:
        """Whether a refiner did it, which knows its steps, its attention and what other settings would do."""
        return (self.folder / MODEL).is_dir()

    def refiner(self):
        """The refiner."""
        from entourage.refiner import load_refiner

        return self._once("refiner", lambda: load_refiner(self.folder / MODEL))

    def trajectory(self, rows=None, *, progress=None) -> Trajectory:
        """Every step of the items, (T + 1, N, d): the raw vectors, then e1..eT; or of the given rows alone.

        Only where refining changes the number of dimensions does it begin with e0 as the model sees it. What is asked
        of all items is held; steps of a few are not worth holding those of all. Without a refiner: before and after.
        """
        if not self.has_refiner:
            steps = np.stack([self.items.vectors, self.refined.vectors])
            return Trajectory(*((steps, self.items.ids) if rows is None else (steps[:, rows], self.items.ids[rows])))
        if rows is None:
            return self._once("trajectory", lambda: self._steps(self.items, self.context, progress))
        if self.context is not None:  # every item is refined by the gallery, whatever other items there are
            return self._steps(self.items.take(rows), self.context, progress)
        whole = self._once.get("trajectory") or self._steps(self.items, None, progress)
        return Trajectory(whole.steps[:, rows], whole.ids[rows])

    def context_trajectory(self, *, progress=None) -> Trajectory | None:
        """The same of the gallery, where there is one."""
        if self.context is None:
            return None
        return self._once("context trajectory", lambda: self._steps(self.context, None, progress))

    def attention(self, rows=None, *, progress=None) -> Attention:
        """How much items looked at their neighbours, step by step: (T, n, k) of the given rows, by default of all.

        Only where there is a refiner.
        """
        if rows is None:
            make = lambda: self._attention(self.items, self.context, progress)  # noqa: E731
            return self._once("attention", make)
        gallery = self.items if self.context is None else self.context
        chosen = self.items.take(np.atleast_1d(rows))
        if self.context is None and not self.items.named:  # row numbers are names within one set
            chosen, gallery = (Embeddings(each.vectors, each.ids) for each in (chosen, gallery))
        return self._attention(chosen, gallery, progress)

    def neighbors(self, when: str) -> Neighbors:
        """The nearest items of each, "before" or "after"."""

        def read() -> Neighbors:
            with np.load(self.folder / NEIGHBORS, allow_pickle=False) as arrays:
                return Neighbors(arrays[f"rows_{when}"], arrays[f"similarities_{when}"])

        return self._once(f"neighbors {when}", read)

    def per_query(self) -> dict[str, dict[str, np.ndarray]] | None:
        """{"before", "after"} -> {"recall@1", "map@r"} of each query, (N,); None where labels are not known."""
        if not (self.folder / QUERIES).is_file():
            return None

        def read() -> dict:
            with np.load(self.folder / QUERIES, allow_pickle=False) as arrays:
                return {when: {name: arrays[f"{name}_{when}"] for name in PER_QUERY} for when in ("before", "after")}

        return self._once("per query", read)

    def gains(self) -> np.ndarray | None:
        """By how much the average precision of each query rose, (N,); None where labels are not known."""
        scores = self.per_query()
        return None if scores is None else scores["after"]["map@r"] - scores["before"]["map@r"]

    def appearance(self):
        """How the items look, as figures take it (figures.appearance.Appearance)."""
        return self._once("appearance", lambda: self._appearance(self.items, 0))

    def gallery_appearance(self):
        """How the items look that are searched in: those of the gallery, or the items themselves."""
        if self.context is None:
            return self.appearance()
        return self._once("gallery appearance", lambda: self._appearance(self.context, 1))

    def _appearance(self, items: Embeddings, place: int):
        looks = self.run.get("looks") or {}
        sets, texts = self.pictures, None
        if sets is None and "pictures" in looks:
            source = PictureSource(**looks["pictures"])
            sets = self._once("pictures", lambda: load_pictures(source))
        if "texts" in looks:
            texts = _json(self.folder / TEXTS)[("items", "context")[place]]
        return appearance_of(items, place, sets, texts)

    def _steps(self, items: Embeddings, context: Embeddings | None, progress) -> Trajectory:
        return refined_steps(self.refiner(), items, context, self.n_steps, progress=progress)

    def _attention(self, items: Embeddings, context: Embeddings | None, progress) -> Attention:
        found = self.refiner().attention(items, context, progress=progress)
        return Attention(found.weights[: self.n_steps], found.ids, found.neighbor_ids)


def open_refinement(folder, *, pictures: list | None = None) -> RefinementRun:
    """A refinement as keep_refinement wrote it. pictures: image sets at hand, to save loading them again."""
    folder = Path(folder)
    run = _json(folder / RUN) if (folder / RUN).is_file() else {}
    if run.get("kind") != KIND:
        raise FileError(
            f"{folder} is no refinement that was kept; wanted a folder of `entourage refine ... --run` or "
            "`entourage demo`"
        )
    known = {name: folder / name for name in (ITEMS, REFINED, CONTEXT, CONTEXT_REFINED)}
    sets = [read_vectors(path, shots=True) if path.is_file() else None for path in known.values()]
    missing = next((name for name, found in zip(known, sets[:2], strict=False) if found is None), None)
    if missing:
        raise FileError(f"{folder} has no {missing}; refine again, or copy the whole folder")
    return RefinementRun(folder, run, _json(folder / METRICS), *sets, pictures=pictures)


def refined_steps(refiner, items: Embeddings, context: Embeddings | None, n_steps: int, *, progress=None) -> Trajectory:
    """The raw vectors, then e1..eT; e0 as the refiner sees it only where refining changes the number of dimensions."""
    steps = refiner.trajectory(items, context, progress=progress).steps[: n_steps + 1]
    if items.dim == steps.shape[2]:
        steps.flags.writeable = True  # it was made here and is nobody else's; a copy would take as much memory again
        steps[0] = items.vectors
    return Trajectory(steps, items.ids)


def _json(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read ({error}); make the run again, or copy it anew") from error
