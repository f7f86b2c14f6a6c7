"""Refining a folder of Parquet files on a cluster: all stages in order.

This process only hands out tasks, and adds up what they tell: it holds a few numbers for each shard and each partition,
and the centres of partitions, however many vectors there are.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from entourage.engine.cluster import Cluster, ray_cluster
from entourage.engine.copies import graph_of
from entourage.engine.edges import Edges, judged, weigh
from entourage.engine.graph import Asked, Reach, reach_of, search_all
from entourage.engine.partitions import Shards, partitioned, partitions_wanted
from entourage.engine.parts import Partitions, Parts
from entourage.engine.steps import OUT, take_steps, write_shards
from entourage.errors import InputError
from entourage.neighbors.choice import EXACT
from entourage.neighbors.copies import SPARE, copies_from
from entourage.refiner.network import Manner
from entourage.refiner.settings import RefinerSettings
from entourage.refiner.universal import JUDGED, Forecast, as_forecast, universal_network
from entourage.runs.streamed.graph import Counted
from entourage.runs.streamed.recipe import Recipe
from entourage.runs.streamed.refine import StreamedRequest, StreamedResult
from entourage.runs.streamed.sources import StoreSource
from entourage.runs.streamed.work import Work
from entourage.runtime.checks import check_whole
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.warnings import collected_warnings
from entourage.stores.atomic import new_folder
from entourage.stores.databases.parquet_folder import ParquetStore
from entourage.stores.databases.store import Address
from entourage.stores.filenames import PARTS

__all__ = ["Job", "check_folder_to_refine", "refine_by_tasks", "refine_on_ray"]

EXACT_UNTIL = 2**17
"""Items up to which all partitions are searched, where nobody says how many."""


@shows_progress
def refine_on_ray(
    request: StreamedRequest,
    address: str | None = None,
    *,
    partitions: int | None = None,
    progress: ShowProgress = None,
) -> StreamedResult:
    """Refine a folder of Parquet files on a Ray cluster.

    Parameters
    ----------
    request : StreamedRequest
        `vectors` and `out` are folders that all machines of the cluster see, and so is `work`. `search` is "exact", or
        how many of the partitions nearest to each are searched.
    address : str, optional
        That of the cluster; None: one on this machine.
    partitions : int, optional
        How many partitions the vectors are sorted into; by default one for 65,536 vectors, and four at least.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    StreamedResult
        Where all partitions are searched, the vectors are what one process gives.
    """
    job = Job.of(request, partitions)  # whatever can be refused is refused before a cluster is started
    with ray_cluster(address) as cluster:
        return refine_by_tasks(cluster, job, progress)


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be refined, and how; all that can be checked before the work is."""

    request: StreamedRequest
    recipe: Recipe
    store: ParquetStore
    source: StoreSource
    searched: int | str | None
    """How many of the nearest partitions are searched, or "exact": all; None: as many as it takes."""
    partitions: int

    @classmethod
    def of(cls, request: StreamedRequest, partitions: int | None = None) -> "Job":
        check_folder_to_refine(request)
        check_whole("--partitions", partitions, 1, none=True)
        searched, recipe = _searched(request.search), Recipe.of(request)
        # Workers stand in other folders than this process.
        folder, out = Path(request.vectors).absolute(), Path(str(request.out)).absolute()
        store = ParquetStore(Address(str(folder), str(folder), ""), request.column, out)
        recipe.check_dim(str(request.vectors), store.dim)
        source = StoreSource(store, request.work, resume=request.resume, overwrite=request.overwrite)
        wanted = partitions_wanted(len(store)) if partitions is None else min(partitions, len(store))
        return cls(request, recipe, store, source, searched, wanted)

    @property
    def asked(self) -> dict[str, Any]:
        """What tells it from others."""
        how = {"search": self.searched, "partitions": self.partitions, "engine": "ray"}
        return self.source.identity | self.recipe.asked | how


def refine_by_tasks(cluster: Cluster, job: Job, progress: Progress | None = None) -> StreamedResult:
    """As `refine_on_ray`, by whoever does the tasks."""
    request, recipe, store = job.request, job.recipe, job.store
    with (
        collected_warnings() as warnings,
        Work(job.source.work, job.asked, resume=request.resume, overwrite=request.overwrite) as work,
    ):
        folder = work.file(PARTS).absolute()
        folder.mkdir(exist_ok=True)
        work.mark("begun", 1)
        shards = Shards(store, recipe.network.base_map)
        partitions, means = partitioned(cluster, Parts(folder), shards, job.partitions, progress)
        graph = _Graph(cluster, partitions, recipe, np.array(means["mapped"]), job.searched, progress)
        report = graph.weighed()
        take_steps(cluster, partitions, graph.edges, recipe.steps, report["blend"], progress)
        cosine = write_shards(cluster, partitions, shards, progress)
        _publish(store, folder, shards, Path(str(request.out)))
        work.finish()
    metrics = report["metrics"] | _movement(cosine, np.array(means["input"]), len(store))
    told = tuple(dict.fromkeys([*warnings, *report["warnings"]]))
    return StreamedResult(_protocol(recipe, report, cluster, shards, partitions), metrics, told, job.source.target)


def check_folder_to_refine(request: StreamedRequest) -> None:
    """Refuse what is no folder, or has none to be refined into."""
    if not Path(request.vectors).is_dir():
        raise InputError(f"--engine is ray, but {request.vectors} is no folder; wanted a folder of .parquet files")
    if request.out is None:
        raise InputError(f"there is no --out for the refined vectors of {request.vectors}; add it")


def _searched(search: str | None) -> int | str | None:
    if search is None or search == EXACT:
        return search
    if not (search.isdecimal() and int(search)):
        raise InputError(f"--search is {search} with --engine ray; wanted exact, or how many partitions are searched")
    return int(search)


class _Graph:
    """The graph of all items, as it is made and weighed."""

    def __init__(
        self,
        cluster: Cluster,
        partitions: Partitions,
        recipe: Recipe,
        mean: np.ndarray,
        searched: int | str | None,
        progress: Progress | None,
    ) -> None:
        self._cluster, self._partitions, self._recipe = cluster, partitions, recipe
        self._similarity, self._asked, self._progress = copies_from(mean), searched, progress
        self.edges = Edges("none", "none", 0, partitions.count)
        self._reach = Reach(len(partitions.numbers), EXACT)

    def weighed(self) -> dict[str, Any]:
        """Build the graph and weigh its edges; what is to be told of it, and the share of the input in the result."""
        if self._partitions.count == 1:
            manner, report = self._manner()
        else:
            self._search()
            self.edges = self._edges("long", self._recipe.longest)
            manner, report = self._manner()
            if manner.n_neighbors < self._recipe.longest:
                self.edges = self._edges("cut", manner.n_neighbors)
        if self.edges.k:
            judged(self._cluster, self._partitions, self.edges, manner.scorer, "final")
            weigh(self._cluster, self._partitions, self.edges, manner, "final")
        report["blend"] = manner.blend if self.edges.k else 1.0
        return report | {"method": self._reach.method, "neighbors": self.edges.k, "distinct": self.edges.count}

    def _search(self) -> None:
        partitions, k = self._partitions, min(self._recipe.longest + SPARE, self._partitions.count - 1)
        wanted = self._asked if isinstance(self._asked, int) else None
        if self._asked == EXACT or (self._asked is None and partitions.count <= EXACT_UNTIL):
            wanted = len(partitions.numbers)
        self._reach = reach_of(self._cluster, partitions, k, wanted)
        search_all(self._cluster, partitions, Asked("all", k, self._reach.searched), self._progress)

    def _edges(self, name: str, n_neighbors: int) -> Edges:
        return graph_of(self._cluster, self._partitions, name, n_neighbors, self._similarity, self._reach.searched)

    def _manner(self) -> tuple[Manner, dict[str, Any]]:
        """How this graph is weighed, and what is to be told of it."""
        recipe = self._recipe
        if recipe.settings is not None:
            return self._universal(recipe.settings)
        share = 1.0
        report: dict[str, Any] = {"metrics": {}, "warnings": []}
        fallback = recipe.network.fallback
        if fallback is not None:
            found = self._purity(min(recipe.n_neighbors, fallback.n_neighbors), fallback.scorer, "fallback")
            share = recipe.network.share_of(found.purity)
        return recipe.network.manner(share, recipe.n_neighbors), report

    def _universal(self, settings: RefinerSettings) -> tuple[Manner, dict[str, Any]]:
        found = self._purity(JUDGED, universal_network().scorer, "forecast")
        items: Any = Counted(self._partitions.count)
        network, report = as_forecast(settings, items, found, self._reach.method)
        return network.manner(), {"metrics": report["metrics"], "warnings": report["warnings"]}

    def _purity(self, n_neighbors: int, scorer: Any, name: str) -> Forecast:
        k = min(n_neighbors, self.edges.k)
        if not k:
            return Forecast(0.0, self.edges.count)
        edges = Edges(self.edges.lists, self.edges.stands, k, self.edges.count)
        found = judged(self._cluster, self._partitions, edges, scorer, name)
        return Forecast(found.purity, self.edges.count, found.same_class)


def _publish(store: ParquetStore, folder: Path, shards: Shards, out: Path) -> None:
    """Show all files of refined vectors at once; those of the folder of work stay until it goes."""
    with new_folder(out, overwrite=True) as new:
        store.mark(new)
        for number, file in enumerate(shards.files):
            made, target = folder / OUT.format(number), new / file.file_name
            try:
                os.link(made, target)
            except OSError:  # on another disk
                shutil.copyfile(made, target)


def _movement(cosine: float, mean: np.ndarray, count: int) -> dict[str, float]:
    """As `cosines` measures it."""
    moved = {"mean_cosine_to_input": cosine}
    return moved | (
        {"mean_cosine_of_two_inputs": float((count * (mean @ mean) - 1) / (count - 1))} if count > 1 else {}
    )


def _protocol(
    recipe: Recipe, report: dict[str, Any], cluster: Cluster, shards: Shards, partitions: Partitions
) -> dict[str, Any]:
    return recipe.protocol(report, partitions.count) | {
        "context": "transductive: the vectors themselves, by partition",
        "engine": f"ray: {len(shards)} shards, {len(partitions.numbers)} partitions, {cluster.workers} workers",
    }
