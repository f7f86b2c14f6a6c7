"""What is shown: the items of a refinement run as points, before and after.

P points: the N items and, where they are searched in a gallery of their own, its M items after them. Whatever is
searched for, it is found among the pool: the gallery, or the items themselves.
"""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from entourage.errors import CorruptImage
from entourage.explorer.keeping import keep_graph, kept_graph
from entourage.explorer.places import places_of
from entourage.figures.appearance import Appearance, same_label
from entourage.neighbors import SearchIndex, own_gallery_rows
from entourage.neighbors.copies import copy_similarity
from entourage.refiner.base_map import apply_base_map
from entourage.refiner.context import Context, WeightedGraph
from entourage.refiner.graph import Graph, build_graph
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.universal import universal_network
from entourage.runs.refinement_run import RefinementRun
from entourage.runtime.progress import Progress
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray

__all__ = ["Scene", "Weighing"]

THUMBNAIL = 160  # pixels, the longer side


@dataclass(frozen=True, eq=False)
class Scene:
    """A refinement run as points; what is computed of it is computed once."""

    run: RefinementRun
    progress: Progress | None = None
    """Called as progress(title, done, total) while something is computed."""
    name: str | None = None
    """What the page is called; as the run's folder is, if None."""
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """One thread at a time, so that nothing is computed twice."""
        with self._lock:
            yield

    def __len__(self) -> int:
        return self.n_items + (0 if self.run.context is None else len(self.run.context))

    @property
    def n_items(self) -> int:
        """N, how many points are items; those after them are the gallery."""
        return len(self.run.items)

    @property
    def pool_start(self) -> int:
        """The first point of the pool."""
        return 0 if self.run.context is None else self.n_items

    # ---- vectors -----------------------------------------------------------------------------------------------

    @functools.cached_property
    def items(self) -> dict[str, Embeddings]:
        """{"before", "after"} -> the N items, with ids by which an item is told from itself in the pool."""
        both = (("before", self.run.items), ("after", self.run.refined))
        context = self.run.context
        same = context is None or (self.run.items.named and context.named)
        return {when: Embeddings(each.vectors, each.ids, named=same) for when, each in both}

    @functools.cached_property
    def pool(self) -> dict[str, SearchIndex]:
        """{"before", "after"} -> what is searched, ready to be searched again and again."""
        if self.run.context is None or self.run.context_refined is None:
            return {when: SearchIndex(items) for when, items in self.items.items()}
        gallery = {"before": self.run.context, "after": self.run.context_refined}
        return {when: SearchIndex(Embeddings(each.vectors, each.ids)) for when, each in gallery.items()}

    def points(self, rows: IntArray, when: str) -> Embeddings:
        """The points in these rows (n,), all of them items or all of them of the gallery."""
        if len(rows) and rows[0] >= self.n_items:
            return self.pool[when].items.take(rows - self.n_items)
        return self.items[when].take(rows)

    # ---- what is known of the points ------------------------------------------------------------------------------

    @functools.cached_property
    def ids(self) -> list[str]:
        """P texts."""
        sets = [self.run.items, *([self.run.context] if self.run.context is not None else [])]
        return [str(each) for items in sets for each in items.ids.tolist()]

    @functools.cached_property
    def labels(self) -> tuple[list[str], IntArray] | None:
        """The names of the labels, and the number of each point's label among them, (P,); None where they are unknown.

        A gallery without labels has -1.
        """
        if self.run.items.labels is None:
            return None
        known = [self.run.items.labels.astype(str)]
        if self.run.context is not None and self.run.context.labels is not None:
            known.append(self.run.context.labels.astype(str))
        names, codes = np.unique(np.concatenate(known), return_inverse=True)
        order = np.argsort([_natural(name) for name in names.tolist()], kind="stable") if _numbers(names) else None
        if order is not None:
            names, codes = names[order], np.argsort(order)[codes]
        missing = len(self) - len(codes)
        return names.tolist(), np.concatenate([codes, np.full(missing, -1)])

    def appearance(self, row: int) -> tuple[Appearance, int]:
        """How a point is shown, and its row there."""
        if row < self.n_items:
            return self.run.appearance, row
        return self.run.gallery_appearance, row - self.n_items

    def text(self, row: int) -> str | None:
        """The text of a point, where it has one."""
        shown, place = self.appearance(row)
        return None if shown.texts is None else str(shown.texts[place])

    def has_pictures(self) -> bool:
        """Whether points are pictures."""
        return self.run.appearance.picture is not None

    def picture(self, row: int, side: int = THUMBNAIL) -> Any:
        """The picture of a point as a PIL image, no side longer than `side`; None where it cannot be had."""
        shown, place = self.appearance(row)
        try:
            return shown.thumbnail(place, side)
        except (CorruptImage, OSError, ValueError):
            return None

    def right(self, row: int, others: IntArray) -> list[int]:
        """For each of the points `others`: 1 if it is right for the point, 0 if wrong, -1 where that is unknown."""
        shown, place = self.appearance(row)
        found = [same_label(shown, place, *self.appearance(int(other))) for other in others]
        return [-1 if each is None else int(each) for each in found]

    # ---- what is computed ----------------------------------------------------------------------------------------

    @functools.cached_property
    def places(self) -> FloatArray:
        """(T + 1, P, 2) where the points lie in the plane, step by step."""
        return places_of(self.run, self.progress)

    @functools.cached_property
    def network(self) -> RelationalNetwork:
        """What weighs neighbours: the run's own network, or the universal one where that is of another kind."""
        if self.run.has_refiner and isinstance(self.run.refiner.network_, RelationalNetwork):
            return self.run.refiner.network_
        return universal_network()

    @property
    def explains(self) -> bool:
        """Whether the network that weighs neighbours is the one that refined."""
        return self.run.has_refiner and isinstance(self.run.refiner.network_, RelationalNetwork)

    @functools.cached_property
    def weighted(self) -> WeightedGraph:
        """The graph of the pool, weighed."""
        mapped = apply_base_map(self.pool["before"].items, self.network.base_map)
        k = int(self.run.refiner.n_neighbors_ if self.explains else self.network.n_neighbors)
        return self.network.weighted_graph(mapped, k, self.progress, self._graph(mapped, k))

    def _graph(self, mapped: Embeddings, k: int) -> Graph:
        """The graph of the pool: searched for once, then kept with the run."""
        kept = kept_graph(self.run.folder, mapped, k, copy_similarity(mapped))
        if kept is not None:
            return kept
        found = build_graph(mapped, k, self.progress)
        keep_graph(self.run.folder, found, k)
        return found

    @property
    def weighing(self) -> "Weighing":
        """How the run, as it was kept, weighs neighbours."""
        return Weighing(self.weighted, self.network.base_map)

    def context_of(self, rows: IntArray, by: "Weighing | None" = None) -> Context:
        """What the points in these rows attend to, by the nodes of the graph; as the run was kept, if `by` is None."""
        by = by or self.weighing
        if self.pool_start == 0 or (len(rows) and rows[0] >= self.n_items):
            return by.weighted.context_of_items(rows - self.pool_start)
        return by.context_of_queries(self.points(rows, "before"), self.pool["before"])


class Weighing(NamedTuple):
    """A way to weigh neighbours in the pool."""

    weighted: WeightedGraph
    base_map: FloatArray | None
    """What vectors go through first."""

    def context_of_queries(self, queries: Embeddings, pool: SearchIndex) -> Context:
        """What queries (n, d) attend to; one that is an item of the pool, by its id, never to itself."""
        mapped = apply_base_map(queries, self.base_map)
        return self.weighted.context_of_queries(mapped, own_gallery_rows(queries, pool))


def _numbers(names: LabelArray) -> bool:
    return all(name.lstrip("-").isdigit() for name in names.tolist())


def _natural(name: str) -> int:
    return int(name)
