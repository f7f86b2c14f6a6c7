"""A value in a line or two, whatever its size."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["brief"]

_MOST_FIELDS, _LONGEST = 6, 48


def brief(value: Any) -> str:
    """Describe a dataclass or named tuple by its fields: arrays by type and shape, long texts and lists by their start.

    A class takes it as its own by `__repr__ = brief`.

    Parameters
    ----------
    value : dataclass or named tuple

    Returns
    -------
    str
        At most some hundred characters.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Found:
    ...     vectors: np.ndarray
    ...     notes: list[str]
    ...     __repr__ = brief
    >>> Found(np.zeros((200, 64), np.float32), ["x" * 9] * 50)
    Found(vectors=float32 (200, 64), notes=50 entries)
    """
    names = [field.name for field in fields(value) if field.repr] if is_dataclass(value) else list(value._fields)
    known = {name: _short(getattr(value, name)) for name in names if getattr(value, name) is not None}
    shown = [f"{name}={text}" for name, text in list(known.items())[:_MOST_FIELDS]]
    return f"{type(value).__name__}({', '.join(shown + ['...'] * (len(known) > _MOST_FIELDS))})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) or (hasattr(value, "shape") and hasattr(value, "dtype")):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, list | tuple | dict | set):
        simple = all(isinstance(entry, str | int | float | bool) for entry in (*value, *_inside(value)))
        text = repr(value) if simple and len(value) <= _MOST_FIELDS else ""
        return text if 0 < len(text) <= _LONGEST else f"{len(value):,} entries"
    if isinstance(value, str | int | float | bool):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"
    return type(value).__name__


def _inside(value: Any) -> tuple[Any, ...]:
    return tuple(value.values()) if isinstance(value, dict) else ()
