"""Refinement given its neighbours: the paper's recipe against its naive form and the bare matrix products, the
relational recipe against the paper's, and galleries that are served against galleries prepared for every batch.

Products of an (n, d) matrix with a (d, d) one are counted per row. The naive form needs 2 + 4 k = 34 for each item and
block: both layers of Q, and of K and V for each neighbour. The fused form needs 6: the first layers of K and V once per
item, Q and the last layers of K and V once per query. The limit is the time of those 6 alone, in blocks of the same
size, into memory that is there, by numpy or by torch, whichever is faster.
"""

import threading
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from entourage.neighbors import search
from entourage.refiner.paper import attention_cpu
from entourage.refiner.paper.network import FEW, PaperNetwork
from entourage.refiner.universal import universal_network
from entourage.runtime.randomness import seeded_weights
from entourage.runtime.threads import blocks, in_threads
from entourage.values import Embeddings, Neighbors
from headline import PAPERS_GPU, STEPS, refined_given
from samples import clustered_items
from timing import Result, best_times

__all__ = ["run"]

DIM, BLOCKS, NEIGHBORS = 512, 8, 8
SAMPLE = 8  # the naive form, whose work is the same for every query, is timed on each eighth and counted eight times
BATCH = 1024
TORCH_AT_ONCE = 4096  # with which torch multiplies fastest


def run(n: int, quick: bool) -> Iterator[Result]:
    items = labelled(n)
    found = search(items, k=universal_network().n_neighbors)
    paper = seeded_weights(0, lambda: PaperNetwork(DIM, BLOCKS)).eval()
    yield from paper_and_relational(items, found, paper, repeats=3)
    yield from served(items, paper)


def labelled(n: int, seed: int = 0) -> Embeddings:
    vectors, labels = clustered_items(n, DIM, seed)
    return Embeddings.from_vectors(vectors, labels=labels)


def paper_and_relational(items: Embeddings, found: Neighbors, paper: PaperNetwork, repeats: int) -> Iterator[Result]:
    e, rows = torch.from_dlpack(items.vectors), torch.from_numpy(found.rows[:, :NEIGHBORS].copy())
    some, used = slice(None, None, SAMPLE), len(rows.unique())
    refined = {}
    contenders = {
        "paper": lambda: refined.update(fused=fused(paper, e, rows)[some]),
        "products": lambda: products(e, used),
        "products by torch": lambda: torch_products(e, used),
        "naive": lambda: refined.update(naive=naive(paper, e[some], e, rows[some])),
        "relational": lambda: refined_given(items, found),
    }
    seconds = best_times(contenders, repeats)
    difference = (refined["fused"] - refined["naive"]).abs().max().item()
    assert difference < 1e-5, difference
    n = len(items)
    seconds["naive"] *= n / len(e[some])
    sizes = {"n": n, "d": DIM, "k": NEIGHBORS, "blocks": BLOCKS, "threads": torch.get_num_threads()}
    detail = sizes | {"seconds": seconds, "neighbours_used": used, "largest_difference": difference}
    limit = min(seconds["products"], seconds["products by torch"])
    yield Result("refine, paper", "fused", "bare matrix products", limit / seconds["paper"], 0.8, detail)
    yield Result("refine, paper", "fused", "naive", seconds["naive"] / seconds["paper"], 5.0, detail)
    speed = {name: n / seconds[name] for name in ("paper", "relational")}
    detail = sizes | {"k_relational": found.k, "steps": STEPS, "per_second": speed, "seconds": seconds}
    yield Result("refine, relational", "relational", "paper, fused", speed["relational"] / speed["paper"], 5.0, detail)
    for recipe, needed in (("relational", 1.0), ("paper", None)):
        peer = "13,000 a second, the paper's GPU"
        yield Result("refine, given neighbours", recipe, peer, speed[recipe] / PAPERS_GPU, needed, detail)


@torch.no_grad()
def fused(network: PaperNetwork, e: Tensor, rows: Tensor) -> Tensor:
    for state, _ in network.steps(e, e, rows, BLOCKS, kept=False):
        last = state
    return last


@torch.no_grad()
def naive(network: PaperNetwork, e: Tensor, gallery: Tensor, rows: Tensor) -> Tensor:
    """Eq. 2 and 3 as they are printed: K and V of each neighbour of each query."""
    refined = []
    for part, context in zip(e.split(BATCH), rows.split(BATCH), strict=True):
        neighbors = gallery[context]
        for block in network.blocks:
            query = part + block.query(part)
            weights = (torch.einsum("bd,bkd->bk", query, block.key(neighbors)) * block.scale).softmax(dim=1)
            part = F.normalize(part + torch.einsum("bk,bkd->bd", weights, block.value(neighbors)), dim=1)
        refined.append(part)
    return torch.cat(refined)


def products(e: Tensor, used: int) -> None:
    """What `fused` multiplies, and nothing else: `used` context items prepared once, then every query.

    Where many are nobody's neighbour, the last layers of K and V are cheaper on the context's side.
    """
    per_item, per_query = (2, 2) if used < FEW * len(e) else (0, 4)
    random = np.random.default_rng(0)
    weight, wide = (random.standard_normal((DIM, width), np.float32) / DIM**0.5 for width in (DIM, 2 * DIM))
    rooms, items = threading.local(), e.numpy()

    def multiply(task: tuple[slice, bool, int]) -> None:
        rows, both, times = task
        part = items[rows]
        if not hasattr(rooms, "wide"):
            rooms.wide, rooms.room = (np.empty((attention_cpu.ITEMS_AT_ONCE, m), np.float32) for m in (2 * DIM, DIM))
        if both:  # the first layers of K and V
            np.matmul(part, wide, out=rooms.wide[: len(part)])
        for _ in range(times):
            np.matmul(part, weight, out=rooms.room[: len(part)])

    for _ in range(BLOCKS):
        for n, both, times in ((used, True, per_item), (len(e), False, per_query)):
            tasks = ((rows, both, times) for rows in blocks(n, attention_cpu.ITEMS_AT_ONCE))
            for _ in in_threads(multiply, tasks):
                pass


@torch.no_grad()
def torch_products(e: Tensor, used: int) -> None:
    """The same by torch, whose library may be the faster one elsewhere."""
    per_item, per_query = (4, 2) if used < FEW * len(e) else (2, 4)
    weight = torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(0)) / DIM**0.5
    place = torch.empty(TORCH_AT_ONCE, DIM)
    for _ in range(BLOCKS):
        for items, times in ((e[:used], per_item), (e, per_query)):
            for part in items.split(TORCH_AT_ONCE):
                for _ in range(times):
                    torch.mm(part, weight, out=place[: len(part)])


def served(items: Embeddings, paper: PaperNetwork) -> Iterator[Result]:
    """Batches of queries from outside, given their neighbours in a gallery."""
    queries = Embeddings(labelled(BATCH, seed=2).vectors)
    prepared = paper.prepare(items, NEIGHBORS, BLOCKS)
    rows = search(queries, items, NEIGHBORS).rows
    e, gallery, context = map(torch.from_dlpack, (queries.vectors, items.vectors, rows))

    def anew() -> np.ndarray:
        *_, (last, _) = paper.steps(e, gallery, context, BLOCKS, kept=False)
        return last.numpy()

    np.testing.assert_allclose(prepared.refine_given(queries, rows), anew(), atol=1e-5)
    seconds = best_times({"served": lambda: prepared.refine_given(queries, rows), "anew": anew}, repeats=5)
    detail = {"gallery": len(items), "batch": BATCH, "threads": torch.get_num_threads(), "seconds": seconds}
    detail["per_second"] = {name: BATCH / value for name, value in seconds.items()}
    peer = "keys and values of the batch's neighbours"
    yield Result("refine, served", "keys and values kept", peer, seconds["anew"] / seconds["served"], 1.8, detail)
