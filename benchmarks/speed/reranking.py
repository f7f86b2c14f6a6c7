"""One list of candidates re-ranked, on one core; memory of k-reciprocal re-ranking and of relation features.

A query and 100 candidates of 384 dimensions are to take 2 ms, the universal scorer and a fitted refiner's base map
alike; the time is the best of many, and what is compiled is compiled before.

The dense forms are counted, not run. The authors' re-ranking code holds matrices of all pairs: distances, ranks,
encodings, averaged encodings and Jaccard distances, 4 bytes each. Overlaps of all pairs of neighbourhoods, from which
relation features could be looked up, are one such matrix.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from children import cost_in_child
from entourage import ContextRefiner, Reranker
from entourage.baselines.reciprocal import KReciprocal
from entourage.neighbors import search
from entourage.refiner.relations import relation_features
from entourage.runtime.threads import one_thread_each
from entourage.values import Embeddings
from samples import clustered_items
from timing import Result, best_times

__all__ = ["run"]

CANDIDATES, CANDIDATE_DIMENSIONS, LIMIT, REPEATS = 100, 384, 2e-3, 200
NEIGHBORS = 32
DENSE_MATRICES = {"k-reciprocal": 5, "relation features": 1}


def run(n: int, quick: bool) -> Iterator[Result]:
    yield from one_list()
    for name, prepare in (("k-reciprocal", prepare_reciprocal), ("relation features", prepare_relations)):
        cost = cost_in_child(prepare, n)
        if cost.mb is None:
            continue
        dense_mb = DENSE_MATRICES[name] * 4 * n * n / 2**20
        detail = {"n": n, "mb": cost.mb, "dense_mb": dense_mb, "seconds": cost.seconds}
        # What is held grows with N k, and the dense form with N²: only at full size the ratio means much.
        needed = None if quick else 10.0
        yield Result(f"{name}: memory", "entourage", "dense form", dense_mb / max(cost.mb, 1), needed, detail)


def one_list() -> Iterator[Result]:
    """A list of candidates as an index returns it: the nearest of many items to the last one."""
    vectors, _ = clustered_items(5000, CANDIDATE_DIMENSIONS)
    query, candidates = vectors[-1], vectors[search(vectors[-1:], vectors[:-1], k=CANDIDATES).rows[0]]
    rerankers = {"universal": Reranker(), "with a base map": Reranker(_with_base_map(vectors[:500]))}
    contenders = {name: _reranking(reranker, query, candidates) for name, reranker in rerankers.items()}
    with one_thread_each:
        seconds = best_times(contenders, REPEATS)
    for name, taken in seconds.items():
        detail = {"candidates": CANDIDATES, "d": CANDIDATE_DIMENSIONS, "milliseconds": 1e3 * taken}
        yield Result(f"one list re-ranked, {name}", "Reranker", "2 ms", LIMIT / taken, 1.0, detail)


def _reranking(reranker: Reranker, query: np.ndarray, candidates: np.ndarray) -> Callable[[], object]:
    return lambda: reranker.rerank(query, candidates)


def _with_base_map(vectors: np.ndarray) -> ContextRefiner:
    refiner = ContextRefiner().fit(vectors)
    base_map = np.linalg.qr(np.random.default_rng(0).normal(size=(vectors.shape[1],) * 2))[0].astype(np.float32)
    refiner.network_ = replace(refiner.network_, base_map=base_map, blend=0.3)
    return refiner


def prepare_reciprocal(n: int) -> Callable:
    """All encodings and the first block of the ranking; the other blocks need no more memory."""
    items = Embeddings.from_vectors(clustered_items(n)[0])
    return lambda: next(iter(KReciprocal().rank(items, k=min(100, n - 1))))


def prepare_relations(n: int) -> Callable:
    found = search(Embeddings.from_vectors(clustered_items(n)[0]), k=min(NEIGHBORS, n - 1))
    return lambda: relation_features(found)
