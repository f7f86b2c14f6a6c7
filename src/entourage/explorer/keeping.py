"""What is computed of a run for the page and takes long, kept with it as map.npz: places, and the graph of the pool."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import EntourageError, FileError
from entourage.refiner.graph import Graph
from entourage.runs.layout import MAP
from entourage.stores.atomic import whole_file
from entourage.stores.documents import read_arrays
from entourage.values import Embeddings, FloatArray, Neighbors

__all__ = ["keep_graph", "keep_places", "kept_graph", "kept_places"]

_NAMES = ("places", "stands_for", "rows", "similarities", "asked")


def kept_places(folder: Path, shape: tuple[int, int, int]) -> NDArray[np.float32] | None:
    """The places that were kept; None where nothing was, or something else."""
    try:
        return read_arrays(folder / MAP, {"places": shape})["places"].astype(np.float32, copy=False)
    except FileError:
        return None


def keep_places(folder: Path, places: FloatArray) -> None:
    """Keep the places of all points, (T + 1, P, 2)."""
    _keep(folder, {"places": places})


def kept_graph(folder: Path, pool: Embeddings, n_neighbors: int, copy_similarity: float) -> Graph | None:
    """The graph of a pool of M items with so many neighbours; None where none was kept, or another one."""
    path = folder / MAP
    try:
        found = read_arrays(path, {"stands_for": (len(pool),), "rows": (None, None), "asked": (1,)}, "iu")
        rows, stands_for = found["rows"].astype(np.int64), found["stands_for"].astype(np.int64)
        similarities = read_arrays(path, {"similarities": rows.shape})["similarities"]
        nodes, first = np.unique(stands_for, return_index=True)
        inside = not rows.size or 0 <= rows.min() <= rows.max() < len(rows)
        if not inside or not np.array_equal(nodes, np.arange(len(rows))) or found["asked"][0] != n_neighbors:
            return None
        return Graph(pool.take(first), stands_for, Neighbors(rows, similarities), copy_similarity)
    except EntourageError:
        return None


def keep_graph(folder: Path, graph: Graph, n_neighbors: int) -> None:
    """Keep a graph that was asked for with so many neighbours."""
    small = {"stands_for": graph.stands_for.astype(np.int32), "rows": graph.neighbors.rows.astype(np.int32)}
    _keep(folder, small | {"similarities": graph.neighbors.similarities, "asked": np.array([n_neighbors])})


def _keep(folder: Path, arrays: dict[str, Any]) -> None:
    """Keep arrays beside those that are there; a run that cannot be written to goes without."""
    path = folder / MAP
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            there = {name: held[name] for name in held.files if name in _NAMES}
    except Exception:  # nothing there, or damaged: readers raise anything then
        there = {}
    try:
        with whole_file(path, overwrite=True) as new:
            np.savez(new, **(there | arrays))
    except OSError:  # FileError is one
        return
