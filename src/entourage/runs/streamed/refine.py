"""Refining a store, or a large file, in stages: read, search, weigh, refine, write. Each can be resumed.

M items, G distinct ones, k neighbours, T steps, d dimensions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from entourage.errors import InputError
from entourage.neighbors.choice import AUTO, check_by
from entourage.refiner.context import WeightedGraph
from entourage.refiner.gathering import normalise
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.universal import fit_universal
from entourage.runs.streamed.graph import Counted, Search, mean_vector, streamed_graph
from entourage.runs.streamed.recipe import Recipe
from entourage.runs.streamed.sources import FileSource, Source, StoreSource
from entourage.runs.streamed.steps import Refining
from entourage.runs.streamed.work import Work
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.randomness import generator
from entourage.runtime.threads import blocks
from entourage.runtime.warnings import collected_warnings
from entourage.stores import is_store
from entourage.stores import open as open_store
from entourage.stores.databases import open_parquet
from entourage.stores.mapped import MappedVectors
from entourage.values import IntArray

__all__ = ["StreamedRequest", "StreamedResult", "is_streamed", "refine_streamed"]

_SPARE = 8  # neighbours that `distinct_neighbors` looks up beyond k
_SAMPLE = 4096  # items whose movement is measured
_ROWS = 2**13
_LARGE = 2**28  # numbers: 1 GB in float32, of which refining in memory holds several copies


@dataclass(frozen=True)
class StreamedRequest:
    """One call of `refine_streamed`; the fields are options of `entourage refine`, which messages name them by."""

    vectors: str
    """The address of a store, a .npy file or a folder of .parquet files."""
    out: Path | None = None
    """Of a file or a folder: the one for the refined vectors."""
    model: Path | None = None
    """A folder of `entourage fit`. None: the universal refiner."""
    neighbors: int | None = None
    """Without a model: number of neighbours an item attends to. None: 12."""
    steps: int | None = None
    """Stop after this many steps. None: all."""
    column: str | None = None
    """Of a store or a folder: the column of vectors, where there are several."""
    work: Path | None = None
    """The folder in which stages are kept until all are done. None: one beside the output, or the store."""
    search: str | None = None
    """How neighbours are found, as `entourage.search` takes it. None: chosen by how many there are."""
    resume: bool = False
    """Whether to go on with what an interrupted call has kept."""
    overwrite: bool = False
    """Whether refined vectors that are there are replaced."""


@dataclass(frozen=True)
class StreamedResult:
    """What was refined, and where it is."""

    protocol: dict[str, Any]
    """Items, model, context, steps: how it was done."""
    metrics: dict[str, float]
    """How far a sample of the vectors moved and, of the universal refiner, what it expects."""
    warnings: tuple[str, ...]
    """Warnings; none of them is issued as a Python warning."""
    written: str
    """The file, or the address of the refined vectors."""

    def document(self) -> dict[str, Any]:
        """Return what `entourage refine --json` prints."""
        return {
            "protocol": self.protocol,
            "metrics": self.metrics,
            "warnings": list(self.warnings),
            "out": self.written,
        }


@shows_progress
def refine_streamed(request: StreamedRequest, *, progress: ShowProgress = None) -> StreamedResult:
    """Refine a store or a large file with little memory, and write the refined vectors beside the original ones.

    Parameters
    ----------
    request : StreamedRequest
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    StreamedResult
        Nothing is written, but for the folder of work, before everything is refined.
    """
    recipe = Recipe.of(request)
    with collected_warnings() as warnings, _source(request) as source:
        asked = source.identity | recipe.asked | {"search": _by(request)}
        with Work(source.work, asked, resume=request.resume, overwrite=request.overwrite) as work:
            result = _refined(request, recipe, source, work, progress)
            work.finish()
    told = dict.fromkeys([*warnings, *result.warnings])
    return StreamedResult(result.protocol, result.metrics, tuple(told), result.written)


def is_streamed(request: StreamedRequest, in_memory_only: dict[str, Any]) -> bool:
    """Whether a refinement is done in stages: of a store, of a large file, or where that is asked for.

    Parameters
    ----------
    request : StreamedRequest
    in_memory_only : dict
        Options, by name, of which none that is given can be followed in stages.

    Returns
    -------
    bool
        What cannot be done either way is refused.
    """
    given = [(option, value) for option, value in in_memory_only.items() if value is not None]
    of_stages = {"--search": request.search, "--work": request.work, "--resume": request.resume or None}
    if is_store(request.vectors):
        if request.out is not None:
            given.insert(0, ("--out", request.out))
        if given:
            option, value = given[0]
            raise InputError(
                f"{option} is {value} with the store {request.vectors}, which is refined by itself, in "
                "its own place; leave it out"
            )
        return True
    if "://" in request.vectors:
        open_store(request.vectors)  # says which addresses there are
    if Path(request.vectors).is_dir():
        if given:
            option, value = given[0]
            raise InputError(
                f"{option} is {value} with the folder {request.vectors}, which is refined by itself, in stages; leave "
                "it out"
            )
        return True
    if request.column is not None:
        raise InputError(f"--column is {request.column} but {request.vectors} is a file, not a store; leave it out")
    asked = next(((option, value) for option, value in of_stages.items() if value is not None), None)
    if asked and (given or not request.vectors.lower().endswith(".npy")):
        what = f"with {given[0][0]}" if given else "of another format than .npy"
        raise InputError(f"{asked[0]} is {asked[1]}, but vectors {what} are refined in memory; leave one of them out")
    return asked is not None or (not given and _is_large(Path(request.vectors)))


def _is_large(path: Path) -> bool:
    """Whether a file is better refined in stages; what is wrong with it says whoever reads it."""
    try:
        return path.suffix.lower() == ".npy" and np.load(path, mmap_mode="r").size > _LARGE
    except (OSError, ValueError, EOFError):
        return False


def _by(request: StreamedRequest) -> str:
    return AUTO if request.search is None else check_by(request.search)


@contextmanager
def _source(request: StreamedRequest) -> Iterator[Source]:
    if is_store(request.vectors):
        with open_store(request.vectors, request.column) as store:
            yield StoreSource(store, request.work, resume=request.resume, overwrite=request.overwrite)
    elif request.out is None:
        raise InputError(f"there is no --out for the refined vectors of {request.vectors}; add it")
    elif Path(request.vectors).is_dir():
        with open_parquet(request.vectors, request.column, request.out) as store:
            yield StoreSource(store, request.work, resume=request.resume, overwrite=request.overwrite)
    else:
        source, options = Path(request.vectors), {"resume": request.resume, "overwrite": request.overwrite}
        yield FileSource(source, request.out, request.work, **options)


def _refined(
    request: StreamedRequest, recipe: Recipe, source: Source, work: Work, progress: Progress | None
) -> StreamedResult:
    vectors, rank = source.read(work, progress)
    recipe.check_dim(source.name, vectors.shape[1])
    mapped = _through_base_map(vectors, recipe.network, work)
    if not work.is_done("weighed"):
        _weigh(request, recipe, mapped, rank, work, progress)
    report = work.noted("weighed")
    names = ("nodes", "stands_for", "rows_of_nodes", "weights", "pulls")
    nodes, stands_for, rows, weights, pulls = map(work.kept, names)
    refining = Refining(mapped, nodes, stands_for, rows, weights, pulls, report["blend"])
    refining.advance(recipe.steps, work, progress)
    source.write(work, vectors, refining.refined, progress)
    return StreamedResult(
        recipe.protocol(report, len(vectors)),
        report["metrics"] | _movement(vectors, refining),
        tuple(report["warnings"]),
        source.target,
    )


def _through_base_map(vectors: MappedVectors, network: RelationalNetwork, work: Work) -> MappedVectors:
    if network.base_map is None:
        return vectors
    mapped = work.array("mapped", vectors.shape, vectors.dtype)
    if not work.is_done("mapped"):
        for rows in blocks(len(vectors), _ROWS):
            mapped[rows] = normalise(vectors[rows] @ network.base_map)
        work.mark("mapped", len(vectors), mapped)
    return MappedVectors(mapped)


def _weigh(
    request: StreamedRequest,
    recipe: Recipe,
    mapped: MappedVectors,
    rank: IntArray,
    work: Work,
    progress: Progress | None,
) -> None:
    """Build the graph, weigh its edges, and keep both with what is to be told of them."""
    find = Search(mapped, rank, work, recipe.longest + _SPARE, _by(request), progress)
    graph, nodes = streamed_graph(mapped, recipe.longest, find)
    report: dict[str, Any] = {"metrics": {}, "warnings": []}
    if recipe.settings is None:
        share = recipe.network.share_in(graph.with_neighbors(recipe.n_neighbors))
        manner = recipe.network.manner(share, recipe.n_neighbors)
        wanted = manner.n_neighbors
    else:
        items: Any = Counted(len(mapped))
        network, fitted, _ = fit_universal(recipe.settings, items, graph=graph)
        report |= {"metrics": fitted["metrics"], "warnings": fitted["warnings"]}
        manner, wanted = network.manner(), network.n_neighbors
    if wanted < recipe.longest:
        graph, nodes = streamed_graph(mapped, wanted, find)
    weighted = WeightedGraph(graph, manner.scorer, manner.sharpness, manner.blend, manner.pull)
    work.keep("nodes", nodes)
    work.keep("stands_for", graph.stands_for)
    work.keep("rows_of_nodes", graph.neighbors.rows.astype(np.int32))
    work.keep("weights", weighted.weights)
    work.keep("pulls", np.float32(manner.pull) * weighted.pulls)
    report |= {"blend": manner.blend, "method": graph.neighbors.method, "neighbors": graph.neighbors.k}
    work.note("weighed", report | {"distinct": len(nodes)})


def _movement(vectors: MappedVectors, refining: Refining) -> dict[str, float]:
    """As `cosines` measures it, of a sample."""
    count = len(vectors)
    rows = np.sort(generator(0).choice(count, min(count, _SAMPLE), replace=False))
    moved = {"mean_cosine_to_input": float((vectors[rows] * refining.refined(rows)).sum(axis=1).mean())}
    if count == 1:
        return moved
    mean = mean_vector(vectors)
    return moved | {"mean_cosine_of_two_inputs": float((count * (mean @ mean) - 1) / (count - 1))}
