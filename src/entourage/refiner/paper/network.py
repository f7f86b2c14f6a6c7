"""The paper's recipe: cross-attention blocks over the initial embeddings of the neighbours.

"Attend to Context for Refining Embeddings in Deep Metric Learning", main paper and supplement. For an item q
with initial embedding e_q^0 and the context C_q of its k nearest neighbours by e^0 (never q itself):

    e_q^t = normalise(e_q^{t-1} + CA^t(e_q^{t-1}, C_q, C_q)),   t = 1..T        (Eq. 2 and 3)

C_q keeps the initial embeddings in every block. learning.py trains the blocks.

N items, M context items, k neighbours, T blocks, d dimensions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.errors import InputError
from entourage.neighbors import SearchIndex, search
from entourage.refiner.paper.attention import CrossAttention
from entourage.refiner.paper.projections import Offer, glorot_linear
from entourage.runtime.progress import Progress
from entourage.runtime.weights import filled
from entourage.values import Embeddings, FloatArray, IntArray

__all__ = ["PaperNetwork", "PreparedGallery"]

FEW = 0.9  # context items for each query: with fewer, more of the work is done on their side


class PaperNetwork(nn.Module):
    """T cross-attention blocks and, for another size of embedding, a linear head (d -> out_dim)."""

    def __init__(self, dim: int, n_blocks: int, out_dim: int | None = None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(CrossAttention(dim) for _ in range(n_blocks))
        self.head = glorot_linear(dim, out_dim) if out_dim else nn.Identity()

    def attention_blocks(self) -> list[CrossAttention]:
        """The T blocks in order, by the type they have."""
        return [cast(CrossAttention, block) for block in self.blocks]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Its weights by name."""
        return {name: value.numpy(force=True) for name, value in self.state_dict().items()}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], dim: int, n_blocks: int, out_dim: int | None = None
    ) -> "PaperNetwork":
        """The network of this size whose weights `to_arrays` gave, ready to refine; others are a ValueError."""
        tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
        return filled(lambda: cls(dim, n_blocks, out_dim), tensors)

    @property
    def n_parameters(self) -> int:
        """How many numbers are learned."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, e: Tensor, context: Tensor, rows: Tensor) -> Tensor:
        """e^T (b, out) of e^0 (b, d), whose context are rows (b, k) of context (m, d): the form used in training.

        Items of one class share neighbours: each is prepared once, then gathered.
        """
        for block in self.attention_blocks():
            # Unlike indexing, an embedding's gradient is summed in a fixed order, whatever the number of threads.
            keys, values = (F.embedding(rows, offered) for offered in block.prepare(context))
            e = F.normalize(e + block(e, keys, values)[0], dim=1)
        return self.finish(e)

    def finish(self, e: Tensor) -> Tensor:
        """What leaves the network: the head's output, of length 1, or e as it is without a head."""
        return e if isinstance(self.head, nn.Identity) else F.normalize(self.head(e), dim=1)

    @torch.no_grad()
    def steps(
        self, e: Tensor, gallery: Tensor, rows: Tensor, n_steps: int, *, kept: bool = True
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield (e^t, weights^t) for t = 1..n_steps; e (N, d), gallery (M, d), rows (N, k) of the gallery.

        The same as `forward`, arranged for whole sets: what an item offers depends on the item alone, so each block
        prepares every item that is somebody's neighbour once, instead of once per item that has it for a neighbour.
        Unless they are kept, each e^t is overwritten after the next: new memory for every block takes its time.
        """
        used, rows = rows.unique(return_inverse=True)
        context = gallery if len(used) == len(gallery) else gallery[used]
        table, place, other_place = None, None, None  # the blocks take turns in them
        for block in self.attention_blocks()[:n_steps]:
            offer = block.offer(context, finished=len(used) < FEW * len(e), out=table)
            e, weights = block.refined(e, offer, rows, out=place)
            table = offer.table
            if not kept:
                place, other_place = other_place, e
            yield e, weights

    @torch.no_grad()
    def refine(
        self,
        items: Embeddings,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
        *,
        last_only: bool = False,
    ) -> Iterator[tuple[FloatArray, FloatArray | None, IntArray]]:
        """Refine items as every RefiningNetwork does, block by block, into vectors (N, out); see there."""
        rows = _context(items, SearchIndex(gallery), n_neighbors, progress)
        e, among, context = self.placed(items.vectors, gallery.vectors, rows)
        if not last_only or not n_steps:
            yield self.finish(e).numpy(force=True), None, rows
        for t, (state, weights) in enumerate(self.steps(e, among, context, n_steps, kept=not last_only), start=1):
            if not last_only or t == n_steps:
                yield self.finish(state).numpy(force=True), weights.numpy(force=True), rows
            if progress:
                progress("refining", t, n_steps)

    def refine_both(
        self,
        items: Embeddings,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress: Progress | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Refine items (N, out) and the gallery (M, out), to the bit what each becomes by itself."""
        runs = (self.refine(each, gallery, n_neighbors, n_steps, progress, last_only=True) for each in (items, gallery))
        refined, searched = (vectors for run in runs for vectors, _, _ in run)
        return refined, searched

    @torch.no_grad()
    def prepare(
        self, gallery: Embeddings, n_neighbors: int, n_steps: int, progress: Progress | None = None
    ) -> "PreparedGallery":
        """Prepare what the gallery offers to any query in each block, and keep it: T tables of (M, 2d)."""
        (among,) = self.placed(gallery.vectors)
        offers = []
        for t, block in enumerate(self.attention_blocks()[:n_steps], start=1):
            offers.append(block.offer(among, finished=True))
            if progress:
                progress("preparing the gallery", t, n_steps)
        index = SearchIndex(gallery)
        index.make_ready()
        return PreparedGallery(self, index, n_neighbors, offers)

    def placed(self, *arrays: np.ndarray) -> list[Tensor]:
        """The arrays where the weights are; on the processor they are not copied."""
        device = next(self.parameters()).device
        return [torch.from_dlpack(array).to(device) for array in arrays]


@dataclass(frozen=True)
class PreparedGallery:
    """A gallery prepared once for any number of queries."""

    network: PaperNetwork
    gallery: SearchIndex
    n_neighbors: int
    offers: list[Offer]

    def refined(self) -> FloatArray:
        """The refined gallery (M, out)."""
        return self.refine(self.gallery.items)

    def refine(self, items: Embeddings) -> FloatArray:
        """Refined items (N, out), whose context is found in the gallery."""
        return self.refine_given(items, _context(items, self.gallery, self.n_neighbors))

    @torch.no_grad()
    def refine_given(self, items: Embeddings, rows: IntArray) -> FloatArray:
        """Refine items (N, out) as `refine` does, with neighbours already found, rows (N, k) of the gallery."""
        e, context = self.network.placed(items.vectors, rows)
        # There are fewer offers than blocks where the gallery was prepared for an early exit.
        for block, offer in zip(self.network.attention_blocks(), self.offers, strict=False):
            e, _ = block.refined(e, offer, context)
        return self.network.finish(e).numpy(force=True)


def _context(items: Embeddings, gallery: SearchIndex, n_neighbors: int, progress: Progress | None = None) -> IntArray:
    """The gallery rows (N, k) of each item's neighbours."""
    needed = n_neighbors + (gallery.items is items)  # in its own set an item cannot be its own neighbour
    if len(gallery) < needed:
        raise InputError(
            f"there are {len(gallery)} vectors to find k = {n_neighbors} neighbours in; wanted at least "
            f"{needed}: give a larger gallery as context, or fit a model with fewer neighbours"
        )
    return search(items, gallery, n_neighbors, progress=progress).rows
