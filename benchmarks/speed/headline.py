"""What a user calls to refine vectors without labels, against the work that cannot be left out.

That work is one search of the set in itself and the refinement given its neighbours; checks, conversions and the
forecast whether refinement will help come on top, and for the command a new process, reading and writing. All take
turns in one run. The first call of each, in which kernels compile, is not counted; numba keeps what it has compiled on
disk, so that only the very first process after an installation waits for it.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from entourage import ContextRefiner
from entourage.neighbors import search
from entourage.refiner.graph import Graph
from entourage.refiner.universal import universal_network
from entourage.values import Embeddings, Neighbors
from samples import clustered_items
from timing import Result, best_times

__all__ = ["refined_given", "run"]

LIMIT = 1.15  # times the work that cannot be left out
STEPS = 5
PAPERS_GPU = 13_000  # embeddings a second, given neighbours
PEER = "one self-search and the refinement given its neighbours"
FEW = 300  # items whose refinement takes no time: what is left is the start of a process


def run(n: int, quick: bool) -> Iterator[Result]:
    vectors, _ = clustered_items(n)
    with tempfile.TemporaryDirectory() as folder:
        seconds = best_times(_contenders(vectors, Path(folder)), repeats=3 if quick else 2)
    parts = seconds["search"] + seconds["given neighbours"]
    beyond_start = seconds["entourage refine"] - seconds["entourage refine, few items"]
    for name, taken, peer in (
        ("ContextRefiner().fit_transform", seconds["fit_transform"], PEER),
        ("entourage refine", beyond_start, f"the start of a process, {PEER}"),
    ):
        detail = {"n": n, "seconds": seconds, "times_the_work": taken / parts, "limit": LIMIT}
        yield Result("refine without labels", name, peer, parts / taken, 1 / LIMIT, detail)
    speed = n / seconds["fit_transform"]
    detail = {"n": n, "per_second": speed}
    yield Result(
        "refine without labels", "ContextRefiner().fit_transform", "13,000 a second", speed / PAPERS_GPU, None, detail
    )


def _contenders(vectors: np.ndarray, folder: Path) -> dict[str, Callable[[], object]]:
    items, k = Embeddings.from_vectors(vectors), universal_network().n_neighbors
    found = search(items, k=k)
    np.testing.assert_allclose(ContextRefiner().fit_transform(vectors), refined_given(items, found), atol=1e-5)
    np.save(folder / "all.npy", vectors)
    np.save(folder / "few.npy", vectors[:FEW])
    return {
        "search": lambda: search(items, k=k),
        "given neighbours": lambda: refined_given(items, found),
        "fit_transform": lambda: ContextRefiner().fit_transform(vectors),
        "entourage refine": lambda: _command(folder / "all.npy"),
        "entourage refine, few items": lambda: _command(folder / "few.npy"),
    }


def _command(file: Path) -> None:
    line = ["entourage", "refine", str(file), "--out", str(file.with_stem("refined")), "--overwrite"]
    subprocess.run([sys.executable, "-m", *line], capture_output=True, check=True)


def refined_given(items: Embeddings, found: Neighbors) -> np.ndarray:
    """Relations, scores, five steps and the blend; the items are distinct, so the neighbours are the graph."""
    graph = Graph(items, np.arange(len(items)), found, copy_similarity=np.inf)
    ((last, _, _),) = universal_network().refine(items, items, found.k, STEPS, last_only=True, graph=graph)
    return last
