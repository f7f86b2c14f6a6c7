"""Retrieval metrics against pytorch-metric-learning: the same numbers, sooner and with less memory; NMI's clusters.

Both get the same arrays and give R@1, R-precision, MAP@R and mAP@1000; ours gives recall at six depths besides.
AccuracyCalculator searches with faiss, its default, to a depth of 1000.
"""

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

from children import cost_in_child
from entourage import evaluate
from entourage.evaluation.clustering import kmeans
from entourage.evaluation.metrics import normalized_mutual_information
from entourage.runtime.threads import blocks, in_threads
from samples import clustered_items
from timing import Result, best_times

__all__ = ["run"]

PAIRS = {
    "precision_at_1": "recall@1",
    "r_precision": "r-precision",
    "mean_average_precision_at_r": "map@r",
    "mean_average_precision": "map@1000",
}
DEPTH, TILE = 1000, 1024
PEER = "pytorch-metric-learning (faiss)"


def run(n: int, quick: bool) -> Iterator[Result]:
    yield from _times(*clustered_items(n), repeats=3 if quick else 2)
    yield from _memory(n)
    yield _clusters(n)


def _times(vectors, labels, repeats: int) -> Iterator[Result]:
    said = {}  # what each found, to be compared
    work = {"entourage": _ours(vectors, labels), PEER: _theirs(vectors, labels), "product": _product(vectors)}
    contenders = {name: lambda name=name, do=do: said.update({name: do()}) for name, do in work.items()}
    seconds = best_times(contenders, repeats)
    differences = [abs(said["entourage"][ours] - said[PEER][theirs]) for theirs, ours in PAIRS.items()]
    assert max(differences) < 1e-6, f"the metrics differ: {said}"
    detail = {"n": len(vectors), "seconds": seconds, "largest_difference": max(differences)}
    yield Result("metrics: time", "entourage", PEER, seconds[PEER] / seconds["entourage"], 1.0, detail)
    limit = seconds["product"] / seconds["entourage"]
    yield Result("metrics: share of the limit", "entourage", "bare matrix product", limit, None, detail)


def _memory(n: int) -> Iterator[Result]:
    ours, theirs = cost_in_child(prepare_ours, n).mb, cost_in_child(prepare_theirs, n).mb
    if ours is not None:
        detail = {"n": n, "entourage_mb": ours, "peer_mb": theirs}
        yield Result("metrics: extra memory", "entourage", PEER, theirs / max(ours, 1), 5.0, detail)


def prepare_ours(n: int) -> Callable:
    return _ours(*clustered_items(n))


def prepare_theirs(n: int) -> Callable:
    return _theirs(*clustered_items(n))


def _ours(vectors, labels) -> Callable:
    return lambda: evaluate(vectors, labels, no_match="drop", nmi=False).metrics


def _theirs(vectors, labels) -> Callable:
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    depth = min(DEPTH, len(vectors) - 1)
    calculator = AccuracyCalculator(include=tuple(PAIRS), k=depth, device=torch.device("cpu"))
    return lambda: calculator.get_accuracy(vectors, labels)


def _product(vectors) -> Callable:
    """All similarities, multiplied and forgotten: one thread a tile, as fast as it gets here."""
    tiles = list(blocks(len(vectors), TILE))
    rooms = threading.local()

    def multiply(rows: slice) -> None:
        if not hasattr(rooms, "room"):
            rooms.room = np.empty((TILE, TILE), np.float32)
        for columns in tiles:
            part, others = vectors[rows], vectors[columns]
            out = rooms.room if len(part) == len(others) == TILE else None
            np.matmul(part, others.T, out=out)

    return lambda: list(in_threads(multiply, tiles))


def _clusters(n: int) -> Result:
    """As many clusters as classes, once each; faiss starts from random items and goes through 20 iterations."""
    import faiss

    vectors, labels = clustered_items(n)
    n_clusters = int(labels.max()) + 1
    start = time.perf_counter()
    ours = kmeans(vectors, n_clusters)
    middle = time.perf_counter()
    theirs = faiss.Kmeans(vectors.shape[1], n_clusters, niter=20, min_points_per_centroid=1)
    theirs.train(vectors)
    assigned = theirs.index.search(vectors, 1)[1][:, 0]
    end = time.perf_counter()
    detail = {
        "n": n,
        "clusters": n_clusters,
        "seconds": {"entourage": middle - start, "faiss": end - middle},
        "nmi": {
            "entourage": normalized_mutual_information(labels, ours),
            "faiss": normalized_mutual_information(labels, assigned),
        },
    }
    ratio = (end - middle) / (middle - start)
    return Result("NMI's k-means: time", "entourage, k-means++", "faiss, random start", ratio, None, detail)
