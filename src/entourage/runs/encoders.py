"""The encoder of a run or by name, the columns it was trained on, and pictures it could not decode."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from entourage.data import COLUMNS
from entourage.errors import EntourageWarning, FileError, InputError
from entourage.runs.layout import CONFIG, is_partial, partial_of
from entourage.runtime.randomness import network_to_fill
from entourage.stores import encoder_of_vectors
from entourage.stores.documents import read_json
from entourage.stores.reading import same_file

if TYPE_CHECKING:
    from entourage.encoders.protocol import Encoder

__all__ = ["check_ended", "check_made_by", "encoder_of", "recorded_columns", "warn_of_corrupt"]

_UNTRAINED = ("auto", "small", "small-rgb", "linear", "mlp")  # encoders by name that have no weights of their own


def encoder_of(model: str | Path) -> "Encoder":
    """Load the encoder of a run or of a folder written by `save_encoder`, or a Hugging Face model by folder or name."""
    from entourage.encoders import build_encoder, load_encoder
    from entourage.encoders.saving import saved_encoder

    saved = saved_encoder(model)
    if saved is not None:
        return load_encoder(saved)
    check_ended(model)
    if str(model) in _UNTRAINED:
        raise InputError(f"the model is {model!r}, an untrained encoder; wanted a run: train it with `entourage train`")
    encoder: Encoder = network_to_fill(lambda: build_encoder(str(model)))
    return encoder.eval()


def recorded_columns(models: Iterable[str | Path], source: str | Path) -> dict[str, str]:
    """The columns of a file that were named when an encoder was trained on it.

    Parameters
    ----------
    models : iterable of str or Path
        Runs, among other encoders.
    source : str or path
        The .csv or file of vectors that is read now.

    Returns
    -------
    dict
        Options of `data.load`; empty if no run was trained on that file, or none of its columns was named.
    """
    for model in models:
        config = Path(model) / CONFIG
        if not config.is_file() or not Path(source).is_file():
            continue
        try:
            described = read_json(config)["data"]
            if same_file(Path(described["source"]), Path(source)):
                return {name: value for name, value in described["options"].items() if name in COLUMNS}
        except (FileError, KeyError, TypeError, AttributeError):  # a damaged run says so when its encoder is loaded
            continue
    return {}


def check_ended(run: str | Path) -> None:
    """Refuse a training run that is unfinished: still going on, or interrupted."""
    if is_partial(run) or partial_of(run).is_dir():
        raise FileError(f"{run} is an unfinished run; finish it with `entourage train ... --resume`")


def check_made_by(vectors: Path, run: Path) -> None:
    """Warn if the vectors of a file come from another encoder than the run's; most files do not name their encoder."""
    from entourage.encoders.saving import encoder_fingerprint

    made_by = encoder_of_vectors(vectors)
    if made_by is not None and made_by != encoder_fingerprint([encoder_of(run)]):
        text = (
            f"{vectors} holds vectors of another encoder, which mean nothing to the network of {run}; embed with {run}"
        )
        warnings.warn(text, EntourageWarning, stacklevel=2)


def warn_of_corrupt(corrupt: list[str], count: int, note: str = "") -> list[str]:
    """Warn of pictures that could not be decoded, if there are any.

    Parameters
    ----------
    corrupt : list of str
        Paths of the pictures that could not be decoded.
    count : int
        Number of pictures in all.
    note : str
        Text that is added to the warning.

    Returns
    -------
    list of str
        The text of the warning; empty if there is none.
    """
    if not corrupt:
        return []
    text = f"{len(corrupt)} of {count} pictures cannot be decoded and are left out; the first is {corrupt[0]}{note}"
    warnings.warn(text, EntourageWarning, stacklevel=2)
    return [text]
