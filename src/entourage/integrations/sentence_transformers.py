"""Encoders of texts, or of anything, whose vectors are refined among those of a gallery as they are made.

N inputs, M gallery items, d dimensions.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from entourage.errors import FileError, InputError
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.serving import ServedGallery
from entourage.runtime.extras import is_installed, optional
from entourage.values import FloatArray

__all__ = ["RefinedEncoder"]


class RefinedEncoder:
    """A model with `encode`, whose vectors are refined among a gallery.

    Search `gallery_embeddings` with what `encode` returns: both are refined, and only together do they fit.

    Parameters
    ----------
    model : object or str
        Anything with `encode(inputs, **options)`, such as a SentenceTransformer or a StaticModel of model2vec; or the
        name or folder of one, which needs that library.
    gallery : sequence of inputs, or array-like of shape (M, d)
        What is searched: inputs for the model, such as texts, or the raw vectors it made of them.
    refiner : ContextRefiner, optional
        A fitted refiner. Default: one that is fitted to the gallery, without labels.
    **options
        Given to the model each time it encodes, such as `batch_size=64`.

    Examples
    --------
    >>> class Letters:  # anything that makes vectors of texts
    ...     def encode(self, texts):
    ...         return np.array([[text.count(letter) + 1 for letter in "abcdefgh"] for text in texts], float)
    >>> gallery = [a + b + c for a in "abcdefgh" for b in "abcdefgh" for c in "ab"]
    >>> encoder = RefinedEncoder(Letters(), gallery)
    >>> encoder.encode(["abba", "cab"]).shape, encoder.gallery_embeddings.shape
    ((2, 8), (128, 8))
    """

    def __init__(self, model: Any, gallery: Any, *, refiner: ContextRefiner | None = None, **options: Any) -> None:
        self.model = _loaded(model) if isinstance(model, str | Path) else model
        if not hasattr(self.model, "encode"):
            raise InputError(
                f"the model is a {type(model).__name__} without encode(); wanted one that has it, or the name of one"
            )
        self._options = options
        vectors = self._raw(gallery) if _are_inputs(gallery) else gallery
        self.refiner = ContextRefiner().fit(vectors) if refiner is None else refiner
        self.served: ServedGallery = self.refiner.serve(vectors)

    @functools.cached_property
    def gallery_embeddings(self) -> Any:
        """The refined gallery (M, d), of the kind that the model returns: what goes into an index."""
        return self.served.refined_gallery

    def encode(self, inputs: Any, **options: Any) -> Any:
        """Encode inputs and refine them among the gallery.

        Parameters
        ----------
        inputs : sequence, or a single text
            N inputs of the model.
        **options
            Given to the model's `encode`, such as `convert_to_tensor=True`.

        Returns
        -------
        what the model returns, of shape (N, d), or (d,) for a single text
            Refined vectors of length 1.
        """
        vectors = self._raw(inputs, **options)
        if getattr(vectors, "ndim", 2) == 1:
            return self.served.transform(vectors[None])[0]
        return self.served.transform(vectors)

    def confidence(self, inputs: Any, **options: Any) -> FloatArray:
        """How sure one can be, from 0 to 1, that inputs have a match in the gallery at all; (N,)."""
        vectors = self._raw(inputs, **options)
        return self.served.confidence(vectors[None] if getattr(vectors, "ndim", 2) == 1 else vectors)

    def _raw(self, inputs: Any, **options: Any) -> Any:
        return self.model.encode(inputs, **self._options | options)


def _are_inputs(gallery: Any) -> bool:
    """Whether a gallery has yet to be encoded: its items are no numbers and no vectors."""
    if isinstance(gallery, str):
        raise InputError(f"the gallery is one text, {gallery[:40]!r}; wanted a list of them, or vectors (M, d)")
    first = next(iter(gallery), None) if isinstance(gallery, list | tuple) else None
    return first is not None and not isinstance(first, list | tuple | np.ndarray) and not hasattr(first, "shape")


def _loaded(name: str | Path) -> Any:
    """The model of that name or folder: of sentence-transformers, which also opens those of model2vec, or of this."""
    if is_installed("model2vec") and (_of_model2vec(Path(name)) or not is_installed("sentence_transformers")):
        from model2vec import StaticModel

        return _opened(StaticModel.from_pretrained, name)
    with optional(f"encoding texts by {name}"):
        from sentence_transformers import SentenceTransformer

    return _opened(SentenceTransformer, name)


def _opened(library: Callable[[str], Any], name: str | Path) -> Any:
    try:
        return library(str(name))
    except Exception as error:  # whatever the library, or one that carries its request, raises
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise FileError(
            f"the model {name} could not be opened ({reason}); check the name and the connection, or give a folder"
        ) from error


def _of_model2vec(folder: Path) -> bool:
    """Whether a folder holds a model of model2vec that sentence-transformers could not open."""
    return folder.is_dir() and not (folder / "modules.json").exists() and (folder / "model.safetensors").exists()
