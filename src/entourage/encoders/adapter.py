"""Any other source of vectors as an encoder: a function, or an object with encode()."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entourage.errors import InputError

__all__ = ["CallableEncoder"]


class CallableEncoder:
    """An encoder of your own; its vectors are checked and scaled to length 1.

    Parameters
    ----------
    source : callable or object with `encode`
        A function from a list of items, texts or Pillow pictures, to vectors (b, d), or an object whose method `encode`
        is one (sentence-transformers).

    Examples
    --------
    >>> lengths = CallableEncoder(lambda texts: [[len(text), 1.0] for text in texts])
    >>> lengths.encode(["", "ab"]).round(2).tolist()
    [[0.0, 1.0], [0.8899999856948853, 0.44999998807907104]]
    """

    def __init__(self, source: Any) -> None:
        self._function: Callable[[list[Any]], Any] = getattr(source, "encode", source)
        if not callable(self._function):
            raise InputError(f"the encoder is {source!r}; wanted a function of a list, or an object with encode()")
        self.dim: int | None = None  # known after the first vectors

    def encode(self, items: Sequence[Any]) -> np.ndarray:
        """Embed items.

        Parameters
        ----------
        items : sequence
            b items.

        Returns
        -------
        ndarray of float32, shape (b, d)
            Unit vectors.
        """
        vectors = np.asarray(_on_cpu(self._function(list(items))), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(items):
            raise InputError(
                f"the encoder gave an array of shape {vectors.shape} for {len(items)} items; wanted ({len(items)}, d), "
                "a vector for each"
            )
        if self.dim not in (None, vectors.shape[1]):
            raise InputError(
                f"the encoder gave {vectors.shape[1]} dimensions and {self.dim} before; wanted the same number always"
            )
        self.dim = vectors.shape[1]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if bad.size:
            raise InputError(
                f"the encoder gave a vector of length {lengths[bad[0], 0]} for {items[bad[0]]!r}; "
                "wanted finite values that are not all zero"
            )
        return vectors / lengths


def _on_cpu(vectors: Any) -> Any:
    """A torch tensor as an array, wherever it was computed; anything else as it is."""
    return vectors.detach().cpu().float().numpy() if hasattr(vectors, "detach") else vectors
