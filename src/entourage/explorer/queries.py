"""What a visitor drops on the page: a file of vectors, a picture or a text, as vectors of the run's encoder."""

import importlib
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from entourage.errors import EntourageError, InputError
from entourage.stores import read_vectors
from entourage.values import Embeddings

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Dropped", "Encoder", "read_dropped"]

MOST_QUERIES = 200
MOST_PIXELS = 50_000_000
_VECTORS = {".npy": b"\x93NUMPY", ".npz": b"PK", ".parquet": b"PAR1"}


class Dropped(NamedTuple):
    """What was dropped, as vectors."""

    kind: str
    """vectors, picture or text."""
    queries: Embeddings
    """n queries without names: none of them is an item."""
    names: list[str]
    """What each is called on the page."""


class Encoder:
    """Makes vectors of pictures or texts.

    Parameters
    ----------
    name : str or None
        A run of `entourage train`, a saved encoder or a Hugging Face vision model for pictures; module:function for
        either, called with a list of texts or of PIL images.
    """

    def __init__(self, name: str | None) -> None:
        self.name = name
        self._loaded: Any = None

    def check(self) -> None:
        """Load it, if there is one: a wrong name is refused."""
        if self.name is not None and self._loaded is None:
            self._loaded = _own_function(self.name) if _is_own(self.name) else _of_pictures(self.name)

    def __call__(self, items: list[Any], kind: str) -> np.ndarray:
        """Vectors (n, d) of n pictures or texts."""
        if self.name is None:
            raise InputError(
                f"no encoder is known that makes vectors of a {kind}; start with --encoder, or drop vectors instead"
            )
        self.check()
        if kind == "text" and not _is_own(self.name):
            raise InputError(f"the encoder {self.name} takes pictures; wanted a picture, or an --encoder of texts")
        vectors: np.ndarray = self._loaded(items)
        return vectors


def read_dropped(body: bytes, name: str, encoder: Encoder) -> Dropped:
    """Make sense of what was dropped.

    Parameters
    ----------
    body : bytes
        The file, or the text in UTF-8.
    name : str
        What the file is called; it is used to tell its kind, never as a path.
    encoder : Encoder

    Returns
    -------
    Dropped
    """
    if not body:
        raise InputError("the file is empty; wanted vectors (.npy, .npz, .parquet), a picture or a text")
    suffix = next((suffix for suffix, start in _VECTORS.items() if body.startswith(start)), None)
    if suffix is not None:
        return _vectors(body, suffix, name)
    if name.lower().endswith(tuple(_VECTORS)):
        raise InputError(f"{name} does not begin as such a file does; wanted vectors: save it again")
    if name.lower().endswith((".txt", ".text")) or not name:
        return _text(body, encoder)
    return _picture(body, name, encoder)


def _vectors(body: bytes, suffix: str, name: str) -> Dropped:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"dropped{suffix}"
        file.write_bytes(body)
        try:
            read = read_vectors(file, labels=False)
        except EntourageError as error:
            raise InputError(str(error).replace(str(file), name or "the file")) from error
    if len(read) > MOST_QUERIES:
        raise InputError(f"{name} holds {len(read):,} vectors; wanted {MOST_QUERIES} at most: take a part of them")
    names = [str(each) if read.named else f"{name} · {each}" for each in read.ids.tolist()]
    return Dropped("vectors", Embeddings(read.vectors), names)


def _text(body: bytes, encoder: Encoder) -> Dropped:
    try:
        text = body.decode().strip()
    except UnicodeDecodeError as error:
        raise InputError("the text is not in UTF-8; save it in UTF-8, or drop a picture or vectors") from error
    if not text:
        raise InputError("the text is empty; wanted some words")
    return Dropped("text", Embeddings.from_vectors(encoder([text], "text")), [text[:280]])


def _picture(body: bytes, name: str, encoder: Encoder) -> Dropped:
    picture = _decoded(body, name)
    return Dropped("picture", Embeddings.from_vectors(encoder([picture], "picture")), [name])


def _decoded(body: bytes, name: str) -> "Image":
    from PIL import Image, UnidentifiedImageError

    try:
        picture = Image.open(io.BytesIO(body))
        if picture.width * picture.height > MOST_PIXELS:
            raise InputError(f"{name} has {picture.width} × {picture.height} pixels; wanted {MOST_PIXELS:,} at most")
        picture.load()
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(
            f"{name} is no picture that can be decoded; wanted vectors (.npy, .npz, .parquet), a picture or a .txt"
        ) from error
    return picture


def _is_own(name: str) -> bool:
    return ":" in name and not Path(name).exists()


def _own_function(name: str) -> Any:
    from entourage.encoders import CallableEncoder

    module, _, function = name.partition(":")
    try:
        return CallableEncoder(getattr(importlib.import_module(module), function)).encode
    except (ImportError, AttributeError) as error:
        raise InputError(f"the encoder {name} cannot be imported ({error}); wanted module:function") from error


def _of_pictures(name: str) -> Any:
    from entourage.encoders.embedding import PixelSet, embed
    from entourage.runs.encoders import encoder_of

    encoder = encoder_of(name)

    def vectors(pictures: "list[Image]") -> np.ndarray:
        mode = "L" if all(picture.mode in ("1", "L") for picture in pictures) else "RGB"
        return np.concatenate([embed(encoder, PixelSet(np.asarray(each.convert(mode))[None])) for each in pictures])

    return vectors
