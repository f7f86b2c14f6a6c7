"""Exact neighbours against faiss, what users have today, and the bare matrix products the work needs."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from entourage.neighbors import search
from entourage.values import Embeddings
from samples import clustered_items
from timing import Result, best_times

K = 9
DIM = 512
TILE = 1024


def run(n: int, quick: bool) -> Iterator[Result]:
    """A set in itself, and an eighth as many queries against it; on all threads and, where it is quick, on one."""
    items, queries = (Embeddings(clustered_items(size, DIM, seed)[0]) for size, seed in ((n, 0), (n // 8, 1)))
    for threads in sorted({1, torch.get_num_threads()} if quick else {torch.get_num_threads()}):
        with _threads(threads):
            yield from _in_itself(items, threads, quick)
            yield from _in_another(queries, items, threads, quick)


def _in_itself(items: Embeddings, threads: int, quick: bool) -> Iterator[Result]:
    bench = f"neighbours in one set, {_threads_text(threads)}"
    x = items.vectors
    contenders = {
        "entourage": lambda: search(items, k=K).rows,
        "faiss IndexFlatIP": lambda: _faiss(x, x, K + 1, threads),
        "half of all products": lambda: _half_of_all_products(x, threads),
    }
    needed = {"faiss IndexFlatIP": 1.7}
    yield from _compare(bench, contenders, needed, quick, {"n": len(x), "threads": threads})


def _in_another(queries: Embeddings, gallery: Embeddings, threads: int, quick: bool) -> Iterator[Result]:
    bench = f"neighbours in another set, {_threads_text(threads)}"
    q, x = queries.vectors, gallery.vectors
    contenders = {
        "entourage": lambda: search(queries, gallery, k=K).rows,
        "faiss IndexFlatIP": lambda: _faiss(q, x, K, threads),
    }
    if quick:
        contenders |= {
            "torch.topk": lambda: _torch(q, x, K),
            "numpy argpartition": lambda: _numpy(q, x, K),
            "scikit-learn brute force": lambda: _scikit_learn(q, x, K),
        }
    needed = {"faiss IndexFlatIP": 1 / 1.1}
    sizes = {"n": len(x), "queries": len(q), "threads": threads}
    yield from _compare(bench, contenders, needed, quick, sizes)


def _compare(bench, contenders, needed, quick, sizes) -> Iterator[Result]:
    """Entourage against each of the others; the neighbours found are compared as well."""
    if not _has_faiss():
        print(f"{bench}: faiss is not installed, so it is left out: pip install faiss-cpu", file=sys.stderr)
        contenders = {name: work for name, work in contenders.items() if "faiss" not in name}
    seconds = best_times(contenders, repeats=3 if quick else 2)
    ours = contenders["entourage"]()
    for name in list(contenders)[1:]:
        detail = sizes | {"dim": DIM, "k": K, "seconds": round(seconds["entourage"], 3)}
        detail["peer seconds"] = round(seconds[name], 3)
        if "faiss" in name:
            detail["same neighbours"] = same = float((ours == contenders[name]()[:, -K:]).mean())
            assert same > 0.999, f"{name} finds other neighbours: {same:.4f} are the same"  # the rest are near ties
        yield Result(bench, "entourage", name, seconds[name] / seconds["entourage"], needed.get(name), detail)


@contextmanager
def _threads(count: int):
    """Torch, and every library of numpy, scipy and scikit-learn, on so many threads; those of faiss are set apart."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)


def _threads_text(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def _has_faiss() -> bool:
    try:
        import faiss  # noqa: F401
    except ImportError:
        return False
    return True


def _faiss(queries, gallery, k, threads) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatIP(gallery.shape[1])
    index.add(gallery)
    return index.search(queries, k)[1]


def _half_of_all_products(x, threads) -> None:
    """Every tile on and above the diagonal, multiplied and forgotten: one thread a tile."""
    starts = range(0, len(x), TILE)
    pairs = [(a, b) for a in starts for b in starts if a <= b]

    def multiply(some):
        memory = np.empty(TILE * TILE, np.float32)
        for a, b in some:
            rows, columns = x[a : a + TILE], x[b : b + TILE]
            out = memory[: len(rows) * len(columns)].reshape(len(rows), len(columns))
            np.matmul(rows, columns.T, out=out)

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        list(pool.map(multiply, [pairs[worker::threads] for worker in range(threads)]))


def _torch(queries, gallery, k) -> np.ndarray:
    q, x = torch.from_dlpack(queries), torch.from_dlpack(gallery)
    return torch.cat([(block @ x.T).topk(k, dim=1).indices for block in q.split(TILE)]).numpy()


def _numpy(queries, gallery, k) -> np.ndarray:
    found = []
    for start in range(0, len(queries), TILE):
        scores = queries[start : start + TILE] @ gallery.T
        best = np.argpartition(scores, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        found.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(found)


def _scikit_learn(queries, gallery, k) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(gallery)  # of unit vectors the same order as cosine
    return index.kneighbors(queries, return_distance=False)
