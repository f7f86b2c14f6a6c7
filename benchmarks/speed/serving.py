"""One query against a gallery that stands: its refinement, against the one search that it cannot do without.

The gallery is prepared once, by `serve`, which is not timed. A query then needs one exact search among the gallery's
items; what else refinement does must cost little beside it. Queries are new vectors, one at a time, in turns with the
search and, where it is installed, with faiss.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np

from entourage import ContextRefiner, Embeddings, search
from entourage.neighbors import SearchIndex
from samples import clustered_items
from timing import Result, best_times

__all__ = ["run"]

GALLERY, DIMENSIONS = 200_000, 256  # of the full run
LIMIT = 1.3  # times one exact search
REPEATS = 30


def run(n: int, quick: bool) -> Iterator[Result]:
    size = n if quick else GALLERY
    vectors, _ = clustered_items(size + 1, DIMENSIONS)
    seconds = best_times(_contenders(vectors[:-1], vectors[-1:]), REPEATS)
    detail = {"n": size, "d": DIMENSIONS, "milliseconds": {name: 1e3 * taken for name, taken in seconds.items()}}
    ratio, needed = seconds["search"] / seconds["served"], None if quick else 1 / LIMIT  # of a search of 30 ms
    yield Result("one query, served", "served.transform", "one exact search of it", ratio, needed, detail)
    if "faiss" in seconds:
        ratio = seconds["faiss"] / seconds["search"]
        yield Result("one query", "entourage, gallery indexed", "faiss IndexFlatIP", ratio, None, detail)


def _contenders(gallery: np.ndarray, query: np.ndarray) -> dict[str, Callable[[], object]]:
    refiner = ContextRefiner().fit(gallery[:2000])
    served, k = refiner.serve(gallery), refiner.n_neighbors_ + 1  # one more, in case the query is in the gallery
    items, ready = Embeddings.from_vectors(query), SearchIndex(Embeddings.from_vectors(gallery))
    contenders: dict[str, Callable[[], object]] = {
        "served": lambda: served.transform(query),
        "search": lambda: search(items, ready, k),
    }
    if find_spec("faiss"):
        import faiss

        flat = faiss.IndexFlatIP(gallery.shape[1])
        flat.add(ready.items.vectors)
        contenders["faiss"] = lambda: flat.search(items.vectors, k)
    return contenders
