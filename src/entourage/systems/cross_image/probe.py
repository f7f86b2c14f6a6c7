"""How large gradients are at the encoder's output while it trains, with the blocks and without them.

At the start of every epoch, for the same batch and the same weights, g = dL / dE is taken for the whole loss
("with_blocks") and for the unconditional similarities alone ("without_blocks"); |g| of all values are counted by log10.
E is what both embeddings and context are made of: the feature maps (b, c, h, w), or all tokens (b, t, c) of a
transformer whose embedding is not pooled from its map. Several processes count the whole batch, as one would.
Figure S1 of the paper; its baseline is another run, with conditional_weight = 0.
"""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from entourage.errors import InputError
from entourage.runtime import distributed
from entourage.stores import whole_file
from entourage.stores.filenames import CROSS_IMAGE, GRADIENTS
from entourage.stores.logs import read_log

__all__ = ["EDGES", "GradientProbe", "median_magnitude", "read_gradients"]

EDGES = np.linspace(-14, 2, 161)
"""(161,) borders of the bins of log10 |g|; what lies beyond is counted in the first and the last."""


class GradientProbe:
    """Counts of log10 |g| for every epoch, in `entries`: {"epoch", "with_blocks", "without_blocks", "zeros"}.

    with_blocks and without_blocks are 160 counts each, one for each bin of EDGES; zeros is how many values of each were
    0 and have no logarithm.

    Parameters
    ----------
    batches : int
        How many batches of an epoch are counted, the first ones.
    file : Path, optional
        Receives a JSON line for each epoch; it is replaced with every batch, so that a resumed run can continue it.
    """

    def __init__(self, batches: int = 1, file: Path | None = None) -> None:
        self.batches, self.file = batches, file
        self.entries: list[dict[str, Any]] = []
        self._left = 0

    def begin(self, epoch: int) -> None:
        """Begin an epoch, or begin it again: what was counted before it stays."""
        known = read_log(self.file) if self.file else self.entries
        self.entries = [entry for entry in known if entry["epoch"] < epoch]
        self._left = self.batches
        if self.batches:
            empty = [0] * (len(EDGES) - 1)
            self.entries.append({"epoch": epoch, "with_blocks": empty, "without_blocks": empty, "zeros": [0, 0]})

    def watch(self, source: Tensor, unconditional: Tensor) -> None:
        """Count the gradients of one batch, if it is one of the first.

        Parameters
        ----------
        source : Tensor
            Where gradients are counted: that of the whole loss when it passes, in backward().
        unconditional : Tensor, shape ()
            The loss of the unconditional similarities, whose gradient is taken now.
        """
        if not self._left or not source.requires_grad:
            return
        self._left -= 1
        (alone,) = torch.autograd.grad(unconditional, source, retain_graph=True, allow_unused=True)
        if alone is None:  # zeros would look like a finding
            raise InputError(
                "the embeddings do not depend on the output whose gradients are to be counted; use another pooling, "
                "or count none (probe_batches = 0)"
            )
        self._count("without_blocks", alone)
        source.register_hook(lambda gradient: self._count("with_blocks", gradient))

    def _count(self, name: str, gradient: Tensor) -> None:
        # The gradient that passed `gathered` is of this process's rows, and world_size times theirs.
        own = _counts(gradient.double() / distributed.world_size()).to(gradient.device)
        *counts, zeros = distributed.gathered(own[None]).sum(dim=0).tolist()
        entry = self.entries[-1]
        entry[name] = (np.array(entry[name]) + counts).tolist()
        place = ("with_blocks", "without_blocks").index(name)
        entry["zeros"] = [n + zeros * (i == place) for i, n in enumerate(entry["zeros"])]
        if self.file:
            with whole_file(self.file) as temporary:
                temporary.write_text("".join(json.dumps(entry) + "\n" for entry in self.entries), encoding="utf-8")


def read_gradients(run: str | PathLike[str]) -> list[dict[str, Any]]:
    """Read what a run's probe counted.

    Parameters
    ----------
    run : path-like
        A finished run, or the run folder of a training.

    Returns
    -------
    list of dict
        The entries of `GradientProbe`, one for each epoch; empty if there are none.
    """
    places = [Path(run) / GRADIENTS, Path(run) / CROSS_IMAGE / GRADIENTS]
    return next((read_log(file) for file in places if file.exists()), [])


def median_magnitude(counted: ArrayLike) -> float:
    """The median of log10 |g|.

    Parameters
    ----------
    counted : array, shape (160,)
        How many values are in each bin of EDGES.

    Returns
    -------
    float
        Interpolated within its bin; NaN where nothing was counted.

    Examples
    --------
    >>> median_magnitude(np.eye(160)[40])
    -9.95
    """
    counts = np.asarray(counted, float)
    if not counts.sum():
        return float("nan")
    share = np.concatenate([[0], counts.cumsum()]) / counts.sum()
    return round(float(np.interp(0.5, share, EDGES)), 4)


def _counts(gradient: Tensor) -> Tensor:
    """(161,) of a gradient of any shape: how many values are in each of the 160 bins, and at last how many are 0."""
    magnitudes = gradient.abs().flatten().cpu().numpy()
    found = magnitudes[magnitudes > 0]
    logs = np.log10(found).clip(EDGES[0], EDGES[-1])
    return torch.tensor([*np.histogram(logs, EDGES)[0].tolist(), magnitudes.size - found.size])
