"""Memory of k-reciprocal re-ranking and of relation features against their dense forms.

The dense forms are counted, not run. The authors' re-ranking code holds matrices of all pairs: distances, ranks,
encodings, averaged encodings and Jaccard distances, 4 bytes each. Overlaps of all pairs of neighbourhoods, from which
relation features could be looked up, are one such matrix.
"""

from collections.abc import Callable, Iterator

from children import cost_in_child
from entourage.baselines.reciprocal import KReciprocal
from entourage.neighbors import search
from entourage.refiner.relations import relation_features
from entourage.values import Embeddings
from samples import clustered_items
from timing import Result

__all__ = ["run"]

NEIGHBORS = 32
DENSE_MATRICES = {"k-reciprocal": 5, "relation features": 1}


def run(n: int, quick: bool) -> Iterator[Result]:
    for name, prepare in (("k-reciprocal", prepare_reciprocal), ("relation features", prepare_relations)):
        cost = cost_in_child(prepare, n)
        if cost.mb is None:
            continue
        dense_mb = DENSE_MATRICES[name] * 4 * n * n / 2**20
        detail = {"n": n, "mb": cost.mb, "dense_mb": dense_mb, "seconds": cost.seconds}
        # What is held grows with N k, and the dense form with N²: only at full size the ratio means much.
        needed = None if quick else 10.0
        yield Result(f"{name}: memory", "entourage", "dense form", dense_mb / max(cost.mb, 1), needed, detail)


def prepare_reciprocal(n: int) -> Callable:
    """All encodings and the first block of the ranking; the other blocks need no more memory."""
    items = Embeddings.from_vectors(clustered_items(n)[0])
    return lambda: next(iter(KReciprocal().rank(items, k=min(100, n - 1))))


def prepare_relations(n: int) -> Callable:
    found = search(Embeddings.from_vectors(clustered_items(n)[0]), k=min(NEIGHBORS, n - 1))
    return lambda: relation_features(found)
