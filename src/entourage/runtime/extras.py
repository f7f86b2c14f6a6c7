"""Optional parts of the package, imported when they are needed."""

from collections.abc import Iterator
from contextlib import contextmanager

from entourage.errors import MissingExtra

__all__ = ["needs_training"]

_TRAINING = {"torch", "pytorch_metric_learning"}


@contextmanager
def needs_training(purpose: str) -> Iterator[None]:
    """Around an import of what learns: where torch is not installed, the error names the pip line.

    Parameters
    ----------
    purpose : str
        What needs it, as the beginning of a sentence.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _TRAINING:
            raise
        raise MissingExtra("train", purpose) from error
