"""The steps of refinement, from one memory-mapped file to the next.

    z_i^t = normalise(z_i^{t-1} + sum_j w_ij z_j^{t-1}),   y_i = normalise(b x_i + (1 - b) z_i^T)
    e_i = normalise(y_i + c sum_j v_ij y_j)

States are kept in the precision of the input, and computed in float32. G nodes, k neighbours, d dimensions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.refiner.context import blended
from entourage.refiner.gathering import gather_step
from entourage.runs.streamed.work import Work
from entourage.runtime.progress import Progress
from entourage.runtime.threads import blocks, in_threads
from entourage.stores.mapped import MappedVectors
from entourage.values import FloatArray, IntArray

__all__ = ["Refining"]

_ROWS = 2**10  # nodes at a time, in each thread


class Refining:
    """The nodes of a graph on their way, step by step.

    Parameters
    ----------
    vectors : MappedVectors
        M items, x.
    nodes : array of shape (G,)
        The item that each node is.
    stands_for : array of shape (M,)
        The node of each item.
    rows, weights, pulls : arrays of shape (G, k)
        The nodes that each attends to, how much, and how strongly each pulls at the end: w and c v.
    blend : float
        b, the share of the input in the result.
    """

    def __init__(
        self,
        vectors: MappedVectors,
        nodes: IntArray,
        stands_for: IntArray,
        rows: IntArray,
        weights: FloatArray,
        pulls: FloatArray,
        blend: float,
    ) -> None:
        self._vectors, self._nodes, self._stands_for = vectors, nodes, stands_for
        self._rows, self._weights, self._pulls, self._blend = rows, weights, pulls, blend
        self._state: MappedVectors | None = None  # (G, d) after the last step; None before the first: x
        self._ones = np.ones(len(nodes), np.float32)

    def advance(self, n_steps: int, work: Work, progress: Progress | None = None) -> None:
        """Take the steps that are still missing."""
        if self._blend == 1:  # whatever the neighbours are
            return
        shape = (len(self._nodes), self._vectors.shape[1])
        kind = self._vectors.dtype if self._vectors.dtype.itemsize < 8 else np.dtype(np.float32)
        for step in range(1, n_steps + 1):
            into = work.array(f"state_{step % 2}", shape, kind)
            if step > work.done("steps"):
                self._step(into, progress, step, n_steps)
                work.mark("steps", step, into)
            self._state = MappedVectors(into, self._ones)

    def refined(self, items: slice | IntArray) -> NDArray[np.float32]:
        """e (n, d) of some items."""
        x = self._vectors[items]
        if self._state is None:
            return x
        node = self._stands_for[items]
        z = self._state[node]
        y = blended(x, z, self._blend, out=z)
        if self._blend == 1 or not self._pulls[node].any():
            return y
        rows = self._rows[node]
        attended, places = np.unique(rows, return_inverse=True)
        z = self._state[attended]
        among = blended(self._vectors[self._nodes[attended]], z, self._blend, out=z)
        return gather_step(y, among, places.reshape(rows.shape), self._pulls[node])

    def _step(self, into: NDArray[Any], progress: Progress | None, step: int, n_steps: int) -> None:
        def work(block: slice) -> slice:
            rows = self._rows[block]
            context = self._z(rows.ravel())  # (n k, d)
            places = np.arange(rows.size).reshape(rows.shape)
            into[block] = gather_step(self._z(np.r_[block]), context, places, self._weights[block])
            return block

        for block in in_threads(work, blocks(len(into), _ROWS)):
            if progress:
                progress("refining", (step - 1) * len(into) + block.stop, n_steps * len(into))

    def _z(self, nodes: IntArray) -> NDArray[np.float32]:
        """z (n, d) of some nodes, before this step."""
        if self._state is None:
            return self._vectors[self._nodes[nodes]]
        return self._state[nodes]
