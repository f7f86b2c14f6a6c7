"""Conditional embeddings: an image's embedding attends to the places of the image it is compared with.

    phi_0(i|j) = e_i
    phi_n(i|j) = normalise(phi_{n-1}(i|j) + CA_n(phi_{n-1}(i|j), context_j))      n = 1..N
    s(i, j)    = phi_N(i|j) . phi_N(j|i)                                          symmetric in its pair

b images, e_i their unit embeddings (b, d); L = h w places of a feature map (b, c, h, w), seen by the blocks as
context (b, L, d). Conditional embeddings of all pairs are held by context first: [j, i] is phi(i|j).
"""

import math
from collections.abc import Iterator
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from entourage.errors import InputError
from entourage.refiner.paper.attention import CrossAttention
from entourage.refiner.paper.projections import glorot_linear
from entourage.runtime.randomness import network_to_fill
from entourage.stores import read_model, usable_model, write_model

__all__ = ["CrossImageBlocks", "load_blocks", "save_blocks"]

_KIND = "cross_image"
_MOST_HELD = 2**30  # bytes of activations beyond which they are computed again instead of held


class CrossImageBlocks(nn.Module):
    """N cross-attention blocks over the places of another image's feature map of `channels` channels.

    Attention wants values of about 1 on both sides: places are projected to d dimensions and layer-normalised, the
    query is sqrt(d) phi. The last layer of every value starts at 0, so that training begins with phi_N(i|j) = e_i.

    Parameters
    ----------
    dim : int
        d, the dimensions of the embeddings.
    channels : int
        c, the channels of the feature maps.
    n_blocks : int
        N, the number of blocks.
    """

    places: Any  # a Sequential of Linear and LayerNorm
    blocks: Any  # a ModuleList of CrossAttention

    def __init__(self, dim: int, channels: int, n_blocks: int = 6) -> None:
        super().__init__()
        if min(dim, channels, n_blocks) < 1:
            raise InputError(f"dim is {dim}, channels {channels}, n_blocks {n_blocks}; wanted 1 or more of each")
        self.options = {"dim": dim, "channels": channels, "n_blocks": n_blocks}
        self.places = nn.Sequential(glorot_linear(channels, dim), nn.LayerNorm(dim))
        self.blocks = nn.ModuleList(CrossAttention(dim) for _ in range(n_blocks))
        for block in self.blocks:
            nn.init.zeros_(block.value.outer.weight)
        self.scale = math.sqrt(dim)

    def __len__(self) -> int:
        """N, the number of blocks."""
        return len(self.blocks)

    @property
    def device(self) -> torch.device:
        """Where they are, and where what they are given is brought to."""
        return self.places[0].weight.device

    def context(self, maps: Tensor) -> Tensor:
        """Feature maps (b, c, h, w) as places (b, L, d), row by row."""
        return self.places(maps.to(self.device).flatten(2).mT)

    def steps(self, vectors: Tensor, context: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Condition vectors on contexts, block by block.

        Parameters
        ----------
        vectors : Tensor, shape (g, m, d)
            m unit vectors for each context.
        context : Tensor, shape (g, L, d)
            g contexts.

        Yields
        ------
        state : Tensor, shape (g, m, d)
            phi_n, for n = 1..N.
        weights : Tensor, shape (g, m, L)
            The attention that gave it.
        """
        state, context = vectors.to(self.device), context.to(self.device)
        for block in self.blocks:
            state, weights = self.step(block, state, *block.finished(context))
            yield state, weights

    def step(self, block: CrossAttention, state: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """One block: the next states (g, m, d) and their attention (g, m, L), of states (g, m, d) with finished keys
        and values (g, L, d)."""
        update, weights = block.among(self.scale * state, keys, values)
        return F.normalize(state + update, dim=2), weights

    def given(self, vectors: Tensor, context: Tensor) -> Tensor:
        """phi_N (g, m, d) of m vectors (g, m, d) for each context (g, L, d)."""
        *_, (last, _) = self.steps(vectors, context)
        return last

    def attention(self, vectors: Tensor, context: Tensor) -> Tensor:
        """The attention (N, g, m, L) of vectors (g, m, d) to their context (g, L, d), block by block; sums of 1."""
        return torch.stack([weights for _, weights in self.steps(vectors, context)])

    def forward(
        self,
        vectors: Tensor,
        context: Tensor,
        needed: Tensor | None = None,
        *,
        pairs_at_once: int = 2048,
        recompute: bool | None = None,
    ) -> Tensor:
        """Conditional similarities of a batch.

        Parameters
        ----------
        vectors : Tensor, shape (b, d)
            Unit embeddings.
        context : Tensor, shape (b, L, d)
            Their places.
        needed : Tensor of bool, shape (b, b), optional
            The pairs to compute, symmetric; default: all. The others get -1, the least there is.
        pairs_at_once : int
            About how many pairs are computed together.
        recompute : bool, optional
            Whether what the gradient needs is computed again when it is due, so that of all pairs only phi_N is held,
            b^2 d values; None decides by what would have to be held.

        Returns
        -------
        Tensor, shape (b, b)
            s(i, j).
        """
        b = len(vectors)
        needed = torch.ones(b, b, dtype=torch.bool, device=vectors.device) if needed is None else needed
        i, j = needed.nonzero(as_tuple=True)
        phi = self.pairs(vectors, context, i, j, pairs_at_once=pairs_at_once, recompute=recompute)  # phi_N(i|j) (P, d)
        place = torch.empty(b, b, dtype=torch.long, device=vectors.device)
        place[i, j] = torch.arange(len(i), device=vectors.device)
        similarity = vectors.new_full((b, b), -1.0)
        return similarity.index_put((i, j), (phi * phi[place[j, i]]).sum(dim=1))

    def pairs(
        self,
        vectors: Tensor,
        context: Tensor,
        i: Tensor,
        j: Tensor,
        *,
        pairs_at_once: int = 2048,
        recompute: bool | None = None,
    ) -> Tensor:
        """Conditional embeddings of pairs.

        Parameters
        ----------
        vectors : Tensor, shape (n, d)
            Unit embeddings.
        context : Tensor, shape (M, L, d)
            Places.
        i, j : Tensor of int, shape (P,)
            Rows of vectors and of context.
        pairs_at_once, recompute
            As in `forward`.

        Returns
        -------
        Tensor, shape (P, d)
            phi_N(i|j) of each pair.
        """
        if recompute is None:
            recompute = torch.is_grad_enabled() and self.held_bytes(len(i), *context.shape[1:]) > _MOST_HELD
        parts, order = [], []
        for some, wanted, asked in _groups(j, pairs_at_once):
            inputs = vectors[i[wanted]], context[some]  # (g, m, d), (g, L, d)
            if recompute:  # nothing is drawn in it, so that the caller's random state is left alone
                phi = checkpoint(self.given, *inputs, use_reentrant=False, preserve_rng_state=False)
            else:
                phi = self.given(*inputs)
            parts.append(phi[asked])
            order.append(wanted[asked])
        return torch.cat(parts)[torch.cat(order).argsort()]

    def held_bytes(self, n_pairs: int, n_places: int, dim: int) -> int:
        """About what a gradient needs without recomputing: 8 d + 2 L values a pair and block."""
        return 4 * len(self) * n_pairs * (8 * dim + 2 * n_places)


def _groups(contexts: Tensor, pairs_at_once: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Pairs by their contexts (P,): contexts (g,), the pairs of each (g, m), and which of these are real (g, m).

    Contexts of about as many pairs come together, so that few places are padding.
    """
    found, counts = contexts.unique(return_counts=True)
    by_context, starts = contexts.argsort(stable=True), counts.cumsum(0) - counts
    order, start = counts.argsort(descending=True, stable=True), 0
    while start < len(order):
        m = int(counts[order[start]])  # the most of this group
        some = order[start : start + max(1, pairs_at_once // m)]
        slots = torch.arange(m, device=contexts.device)
        places = (starts[some, None] + slots).clamp(max=len(contexts) - 1)
        yield found[some], by_context[places], slots < counts[some, None]
        start += len(some)


def save_blocks(folder: str | PathLike[str], blocks: CrossImageBlocks, *, overwrite: bool = False) -> None:
    """Write blocks into a new folder: config.json and model.safetensors.

    Parameters
    ----------
    folder : path-like
        The folder to write.
    blocks : CrossImageBlocks
        What is written.
    overwrite : bool
        Whether an existing model is replaced.
    """
    weights = {name: value.detach().cpu().contiguous() for name, value in blocks.state_dict().items()}
    write_model(folder, _KIND, {"options": blocks.options}, weights, overwrite=overwrite)


def load_blocks(folder: str | PathLike[str]) -> CrossImageBlocks:
    """Load the blocks that `save_blocks` wrote, or a run of the system (RUN/cross_image).

    Parameters
    ----------
    folder : path-like
        Where they are.

    Returns
    -------
    CrossImageBlocks
        In evaluation mode.
    """
    config, weights = read_model(folder, _KIND, "torch")
    with usable_model(folder):
        blocks = network_to_fill(lambda: CrossImageBlocks(**config["options"]))
        blocks.load_state_dict(weights)
    return blocks.eval()
