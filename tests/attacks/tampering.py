"""Everything that can be wrong with the files of a folder: each file, each field of it and each array in it.

`tamperings(folder)` lists them as (name, change); `change(copy)` does it to a copy of the folder.
"""

import copy
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

Change = Callable[[Path], None]
_DELETED = object()

# What takes the place of a field of a JSON document.
VALUES: dict[str, Any] = {
    "deleted": _DELETED,
    "null": None,
    "true": True,
    "zero": 0,
    "minus one": -1,
    "a half": 0.5,
    "huge": 10**12,
    "beyond 64 bits": 10**30,
    "NaN": math.nan,
    "infinite": math.inf,
    "empty text": "",
    "text": "what?",
    "a lone surrogate": "\udc80",
    "empty list": [],
    "list": [1, "two", None],
    "empty table": {},
    "table": {"a": {"b": [1]}},
    "nested lists": [[[[]]]],
}
_DEEP = b"[" * 100_000 + b"]" * 100_000

# What takes the place of a file.
CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "one byte": b"\0",
    "not UTF-8": b"\xff\xfe\x80" * 50,
    "a list": b"[]\n",
    "nothing": b"null\n",
    "a number": b"7\n",
    "an empty table": b"{}\n",
    "nested 100,000 deep": _DEEP,
    "a line of 10 MB": b"x" * 10_000_000,
}


def tamperings(folder: Path) -> Iterator[tuple[str, Change]]:
    """All changes of all files in a folder, by name."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        inside = file.relative_to(folder)
        yield from ((f"{inside}: {name}", _on(inside, change)) for name, change in _of_any_file(file))
        for name, change in _OF_KIND.get(file.suffix, _nothing)(file):
            yield f"{inside}: {name}", _on(inside, change)


def _on(inside: Path, change: Change) -> Change:
    return lambda folder: change(folder / inside)


def _nothing(file: Path) -> Iterator[tuple[str, Change]]:
    return iter(())


# ---- files -------------------------------------------------------------------------------------------------------


def _of_any_file(file: Path) -> Iterator[tuple[str, Change]]:
    whole = file.read_bytes()
    yield "missing", Path.unlink
    yield "a folder", _replaced(Path.mkdir)
    yield "a pipe", _replaced(os.mkfifo)
    yield "a link to itself", _replaced(lambda path: path.symlink_to(path.name))
    for name, content in CONTENTS.items():
        yield name, _written(content)
    for share in (0.1, 0.5, 0.9):
        yield f"cut at {share:.0%}", _written(whole[: int(len(whole) * share)])
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    yield "a byte flipped", _written(bytes(flipped))


def _replaced(make: Callable[[Path], Any]) -> Change:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


def _written(content: bytes) -> Change:
    return lambda path: path.write_bytes(content) and None


# ---- fields of JSON ----------------------------------------------------------------------------------------------


def _of_json(file: Path) -> Iterator[tuple[str, Change]]:
    document = json.loads(file.read_text(encoding="utf-8"))
    for field in _fields(document):
        for name, value in VALUES.items():
            changed = _with(document, field, value)
            yield f"{'.'.join(map(str, field))} is {name}", _written(json.dumps(changed).encode())
    yield "an unknown field", _written(json.dumps(document | {"unknown": 1}).encode())


def _of_lines(file: Path) -> Iterator[tuple[str, Change]]:
    lines = file.read_text(encoding="utf-8").splitlines()
    for number in sorted({0, len(lines) - 1}):
        entry = json.loads(lines[number])
        for field in _fields(entry):
            for name, value in VALUES.items():
                changed = [*lines[:number], json.dumps(_with(entry, field, value)), *lines[number + 1 :]]
                where = f"line {number + 1}, {'.'.join(map(str, field))}"
                yield f"{where} is {name}", _written("\n".join(changed).encode() + b"\n")


def _fields(document: Any, before: tuple = ()) -> Iterator[tuple]:
    """The way to every field; of a list to its first and last element."""
    if isinstance(document, dict):
        inside = document.items()
    elif isinstance(document, list):
        inside = {0: document[0], len(document) - 1: document[-1]}.items() if document else ()
    else:
        return
    for name, value in inside:
        yield (*before, name)
        yield from _fields(value, (*before, name))


def _with(document: Any, field: tuple, value: Any) -> Any:
    changed = place = copy.deepcopy(document)
    for name in field[:-1]:
        place = place[name]
    if value is _DELETED:
        del place[field[-1]]
    else:
        place[field[-1]] = value
    return changed


# ---- arrays ------------------------------------------------------------------------------------------------------


def _of_safetensors(file: Path) -> Iterator[tuple[str, Change]]:
    arrays = load_file(file)
    with safe_open(file, framework="numpy") as opened:
        texts = opened.metadata()
    for name, changed in _changed_arrays(arrays):
        yield name, _saved(changed, texts)
    for key, text in (texts or {}).items():
        yield f"{key} is missing", _saved(arrays, {other: value for other, value in texts.items() if other != key})
        yield f"{key} is text", _saved(arrays, texts | {key: "what?"})
        if text.startswith("{"):
            document = json.loads(text)
            for field in _fields(document):
                for name, value in VALUES.items():
                    changed = texts | {key: json.dumps(_with(document, field, value))}
                    yield f"{key}, {'.'.join(map(str, field))} is {name}", _saved(arrays, changed)


def _saved(arrays: dict[str, np.ndarray], texts: dict[str, str] | None) -> Change:
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return lambda path: save_file(contiguous, path, texts)


def _of_npz(file: Path) -> Iterator[tuple[str, Change]]:
    with np.load(file) as held:
        arrays = {name: held[name] for name in held.files}
    for name, changed in _changed_arrays(arrays):
        yield name, _zipped(changed)
    for name, array in arrays.items():
        yield f"{name} is pickled", _zipped(arrays | {name: np.array([None] * max(array.shape[0], 1), object)})
        yield f"{name} is text", _zipped(arrays | {name: array.astype(str)})
        yield f"{name} is complex", _zipped(arrays | {name: np.ones(array.shape, complex)})
        yield f"{name} has lone surrogates", _zipped(arrays | {name: np.full(array.shape, "\udc80")})
    yield "arrays called file and allow_pickle", _zipped(arrays | {"file": np.ones(3), "allow_pickle": np.ones(2)})


def _zipped(arrays: dict[str, np.ndarray]) -> Change:
    def change(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=True)

    return change


def _changed_arrays(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    for name, array in arrays.items():
        for what, changed in _of_array(array):
            yield f"{name} {what}", arrays | {name: changed}
        yield f"{name} is missing", {other: values for other, values in arrays.items() if other != name}
        yield f"{name} has another name", {f"{other}x" if other == name else other: v for other, v in arrays.items()}
    yield "an array more", arrays | {"more": np.ones((2, 2), np.float32)}
    yield "no arrays", {"nothing": np.zeros(0, np.float32)}


def _of_array(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    yield "has another axis", array[None]
    yield "is flat", array.reshape(-1)
    yield "is empty", array[:0] if array.ndim else np.zeros(0, array.dtype)
    yield "is a single number", np.array(1, array.dtype) if array.dtype.kind in "fiub" else array[:1]
    if array.ndim:
        yield "lacks its last row", array[:-1]
        yield "has a row twice", np.concatenate([array, array[-1:]])
    if array.ndim == 2:
        yield "lacks its last column", array[:, :-1]
        yield "is turned", array.T
    if array.dtype.kind == "f":
        for what, value in {"NaN": np.nan, "infinite": np.inf, "huge": 3e38}.items():
            yield f"is {what} at one place", _at_one_place(array, value)
            yield f"is {what} everywhere", np.full_like(array, value)
        yield "is minus one everywhere", np.full_like(array, -1)
        yield "is of whole numbers", np.ones(array.shape, np.int64)
        yield "is of float64", array.astype(np.float64)
        yield "is of float16", array.astype(np.float16)
    if array.dtype.kind in "iu":
        yield "is of fractions", array + np.float32(0.5)
        yield "is huge everywhere", np.full_like(array, np.iinfo(array.dtype).max)
        yield "is minus one everywhere", np.full_like(array, -1)
    if array.dtype.kind in "fiu":
        yield "is zero everywhere", np.zeros_like(array)
        yield "is of bools", array > 0


def _at_one_place(array: np.ndarray, value: float) -> np.ndarray:
    changed = array.copy()
    changed.flat[0] = value
    return changed


_OF_KIND = {
    ".json": _of_json,
    ".jsonl": _of_lines,
    ".safetensors": _of_safetensors,
    ".checkpoint": _of_safetensors,
    ".npz": _of_npz,
}
