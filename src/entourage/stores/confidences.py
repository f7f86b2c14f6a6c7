"""How sure one can be of each query, as a .csv with a line `id,confidence` for each."""

import csv
from pathlib import Path

from entourage.errors import FileError
from entourage.stores.atomic import Outputs
from entourage.stores.paths import StrPath
from entourage.stores.replacing import check_file
from entourage.values import FloatArray, LabelArray

__all__ = ["check_confidence_file", "write_confidences"]

_HEADER = ["id", "confidence"]


def check_confidence_file(path: StrPath, *, overwrite: bool) -> Path:
    """Raise FileError unless `write_confidences` can write this file.

    Parameters
    ----------
    path : str or path-like
        A name that ends in .csv.
    overwrite : bool
        Whether confidences that are there may be replaced; any other table stays.

    Returns
    -------
    Path
        The same path.
    """
    if Path(path).suffix.lower() != ".csv":
        raise FileError(f"confidences cannot be written to {path}; wanted a .csv file: choose another ending")
    return check_file(path, overwrite=overwrite, ours=_holds_confidences)


def write_confidences(path: StrPath, ids: LabelArray, confidences: FloatArray, outputs: Outputs) -> None:
    """Write the confidence in each query.

    Parameters
    ----------
    path : str or path-like
        A .csv file; it appears whole or not at all.
    ids, confidences : arrays of shape (N,)
    outputs : Outputs
        What it changes together with.
    """
    with outputs.file(path, _holds_confidences).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_HEADER)
        writer.writerows(zip(ids.tolist(), (f"{value:.9g}" for value in confidences), strict=True))


def _holds_confidences(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().strip().split(",") in (_HEADER, [""])
