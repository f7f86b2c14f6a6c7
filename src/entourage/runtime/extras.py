"""Optional libraries, and which extra of the package brings each."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from entourage.errors import MissingExtra

__all__ = ["as_missing_extra", "is_installed", "needs_training", "require"]

_EXTRAS = {
    "faiss": "faiss",
    "fastapi": "serve",
    "huggingface_hub": "images",
    "imageio_ffmpeg": "video",
    "lancedb": "lance",
    "psycopg": "pgvector",
    "pymilvus": "milvus",
    "pynndescent": "nn-descent",
    "pytorch_metric_learning": "train",
    "qdrant_client": "qdrant",
    "ray": "ray",
    "tensorboard": "tensorboard",
    "torch": "train",
    "transformers": "images",
    "uvicorn": "serve",
}


def require(library: str, purpose: str, *, extra: str | None = None) -> None:
    """Refuse what needs an optional library that is not installed. The library is looked for, not imported.

    Parameters
    ----------
    library
        The name it is imported by.
    purpose
        What needs it, as the beginning of a sentence: "training an encoder".
    extra
        The extra to name, where several bring the library.

    Raises
    ------
    MissingExtra
        With the pip line that installs it.

    >>> require("torch", "training an encoder")
    """
    if not is_installed(library):
        raise MissingExtra(extra or _EXTRAS[library], purpose)


def as_missing_extra(error: ModuleNotFoundError, purpose: str) -> MissingExtra | None:
    """Turn an ImportError into a MissingExtra; None if the missing library is not an optional one."""
    library = (error.name or "").partition(".")[0]
    return MissingExtra(_EXTRAS[library], purpose) if library in _EXTRAS else None


@contextmanager
def needs_training(purpose: str) -> Iterator[None]:
    """Name the pip line where an import of training code fails because torch is not installed.

    Parameters
    ----------
    purpose
        What needs it, as the beginning of a sentence.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = as_missing_extra(error, purpose)
        if missing is None:
            raise
        raise missing from error


def is_installed(library: str) -> bool:
    """Whether a library could be imported, by its name; it is not."""
    try:
        return find_spec(library) is not None
    except ImportError:  # of whoever stands between Python and its libraries
        return False
