"""Which encoder the vectors of a gallery come from, so that those of another one are refused.

Vectors of two encoders can have the same size and mean nothing to each other. A gallery therefore keeps the name of its
encoder and canaries: what it made of a few inputs that its user keeps. Encode these again before anything is added, and
a new version of the encoder, or another way to prepare its inputs, is noticed at once.

c canaries, d dimensions.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from entourage.errors import ModelError
from entourage.refiner.encoder_profile import warn_of_another_encoder
from entourage.values import Embeddings, FloatArray, as_embeddings

__all__ = ["Encoder"]

_LEAST_COSINE = 0.999  # half precision and other batches stay above it


@dataclass(frozen=True, eq=False)
class Encoder:
    """What is known of an encoder."""

    name: str | None = None
    dim: int | None = None
    """d; None as long as nothing is known."""
    canaries: FloatArray | None = None
    """(c, d) unit vectors, float32."""
    profile: FloatArray | None = None
    """(d,) how large each dimension is, if the refiner has learned it."""

    def with_canaries(self, canaries: Any) -> "Encoder":
        """The same with what it made of a few inputs, (c, d), vectors of any kind, or None."""
        if canaries is None:
            return self
        vectors = as_embeddings(canaries, name="the canaries").vectors
        return replace(self.checked_size(vectors.shape[1], "the canaries"), canaries=vectors)

    @property
    def fingerprint(self) -> str:
        """The same for the same name, size and canaries."""
        digest = hashlib.sha256(f"{self.name}\n{self.dim}\n".encode())
        digest.update(b"" if self.canaries is None else np.round(self.canaries, 2).astype("<f4").tobytes())
        return digest.hexdigest()[:16]

    def checked_size(self, dim: int, what: str) -> "Encoder":
        """This encoder, if its vectors have so many dimensions; it takes them over if it has none yet."""
        if self.dim not in (None, dim):
            raise ModelError(
                f"{what} have {dim} dimensions, but the gallery holds vectors of {self.dim}; use the encoder of the "
                "gallery, or make another gallery"
            )
        return self if self.dim == dim else replace(self, dim=dim)

    def checked(self, items: Embeddings) -> Embeddings:
        """Items of this encoder: of another size they are refused, and if their profile is another one, it is said."""
        self.checked_size(items.dim, "the vectors")
        warn_of_another_encoder(items, self.profile, "the vectors")
        return items

    def check(self, name: str | None = None, canaries: Any = None) -> None:
        """Refuse another encoder.

        Parameters
        ----------
        name : str, optional
            What the encoder is called; not compared where either side does not say.
        canaries : array-like of shape (c, d), optional
            What it makes of the inputs whose vectors the gallery keeps, in the same order.
        """
        if None not in (name, self.name) and name != self.name:
            raise ModelError(
                f"the vectors come from the encoder {name!r}, but the gallery was made with {self.name!r}; encode them "
                "with that one, or make another gallery"
            )
        if canaries is not None:
            self._check_canaries(as_embeddings(canaries, name="the canaries").vectors)

    def _check_canaries(self, vectors: FloatArray) -> None:
        if self.canaries is None:
            raise ModelError("the gallery keeps no canaries to compare these with; give them when it is made")
        if vectors.shape != self.canaries.shape:
            raise ModelError(
                f"the canaries have shape {vectors.shape}; wanted {self.canaries.shape}, as the gallery keeps them"
            )
        cosines = np.einsum("cd,cd->c", vectors, self.canaries)
        worst = int(np.argmin(cosines))
        if cosines[worst] < _LEAST_COSINE:
            raise ModelError(
                f"canary {worst} has a cosine of {cosines[worst]:.3f} with what the gallery keeps of it; wanted "
                f"{_LEAST_COSINE} or more: this is another encoder, or its inputs are prepared otherwise"
            )
