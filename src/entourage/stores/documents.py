"""JSON documents and arrays of a model or a run, read back: what they hold is checked before anything uses it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import FileError
from entourage.runtime.declared import misfit
from entourage.stores.reading import regular

__all__ = ["check_document", "read_arrays", "read_document", "read_json"]

Shape = tuple[int | None, ...]
_ADVICE = "make it again, or copy it again"


def read_json(path: Path) -> Any:
    """Read a JSON file of any content; one that is missing, damaged or nested too deep is a FileError."""
    try:
        return json.loads(regular(path).read_text(encoding="utf-8"))
    except FileError:
        raise
    except RecursionError as error:
        raise FileError(f"{path} is nested too deep to be read; {_ADVICE}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path} cannot be read as JSON ({reason}); {_ADVICE}") from error


def read_document(path: Path, kind: type) -> Any:
    """Read a JSON document.

    Parameters
    ----------
    path : Path
    kind : type
        A TypedDict that declares its fields; `runtime.declared` says how.

    Returns
    -------
    dict
        All its fields are there and of their types. Further ones are kept, as later versions may write some.

    Raises
    ------
    FileError
        It names the file and the first field that is missing or of another type.
    """
    document = read_json(path)
    check_document(path, document, kind)
    return document


def check_document(path: Path, document: Any, kind: Any, name: str = "") -> None:
    """Raise a FileError that names the file, the part `name` of it and the field that is not of the declared kind."""
    sentence = misfit(document, kind, name if name or isinstance(document, dict) else "the document")
    if sentence:
        raise FileError(f"{path}: {sentence}; {_ADVICE}")


def read_arrays(path: Path, shapes: Mapping[str, Shape], kinds: str = "f") -> dict[str, NDArray[Any]]:
    """Read arrays of an .npz file.

    Parameters
    ----------
    path : Path
    shapes : dict of str to tuple
        The shape of each array that is read; None stands for any length.
    kinds : str
        The kinds of numbers they may hold, as numpy's dtype.kind has them. Fractions must be finite.

    Returns
    -------
    dict of str to ndarray
    """
    try:
        with regular(path).open("rb") as file, np.load(file, allow_pickle=False) as held:
            found = {name: held[name] for name in shapes if name in held.files}
    except FileError:
        raise
    except Exception as error:  # readers of damaged files raise anything from EOFError to zlib.error
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(f"{path} cannot be read ({reason}); {_ADVICE}") from error
    for name, shape in shapes.items():
        sentence = _misfit_of_array(found.get(name), shape, kinds)
        if sentence:
            raise FileError(f"{path}: {name} {sentence}; {_ADVICE}")
    return found


def _misfit_of_array(array: NDArray[Any] | None, shape: Shape, kinds: str) -> str | None:
    wanted = f"numbers of shape ({', '.join('any' if length is None else str(length) for length in shape)})"
    if array is None:
        return f"is missing; wanted {wanted}"
    alike = len(array.shape) == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
    if not alike or array.dtype.kind not in kinds:
        return f"is {array.dtype} of shape {array.shape}; wanted {wanted}"
    return None if array.dtype.kind != "f" or np.isfinite(array).all() else f"holds NaN or infinities; wanted {wanted}"
