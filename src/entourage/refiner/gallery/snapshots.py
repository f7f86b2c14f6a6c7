"""A gallery on disk: the latest whole state as arrays, and a log of the changes since.

    config.json, model.safetensors    how items are refined, and which encoder they come from
    snapshot-V.safetensors            the items at version V, their lists, and what was told of them
    log-V                             its first record names the snapshot and its checksum, each other one a change

A new log appears, in one step, when its snapshot is on the disk; then the old two are deleted. So the latest log is
always whole, and so is what it names.
"""

import json
import os
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from entourage.errors import FileError
from entourage.refiner.gallery.lists import Lists
from entourage.refiner.gallery.log import Log, sync_folder
from entourage.refiner.gallery.moved import Told
from entourage.values import Embeddings, FloatArray, IntArray, LabelArray

__all__ = ["Change", "Kept", "latest_log", "log_name", "start_log"]

_LOG = re.compile(r"log-(\d{12})")
_OURS = re.compile(r"(log-\d{12}|snapshot-\d{12}\.safetensors)(\.new)?")


class Change(NamedTuple):
    """One change of a gallery: what a record of the log holds."""

    version: int
    """Of the gallery after it."""
    removed: list[int | str]
    """Ids of items that go; one whose vector changes goes and comes."""
    ids: LabelArray
    """(n,) of items that come."""
    vectors: FloatArray
    """(n, d) unit vectors, float32."""

    def to_bytes(self) -> bytes:
        """As a record."""
        head = {"version": self.version, "removed": self.removed, "ids": self.ids.tolist()}
        head["dim"] = int(self.vectors.shape[1])
        return json.dumps(head).encode() + b"\n" + np.ascontiguousarray(self.vectors, "<f4").tobytes()

    @classmethod
    def from_bytes(cls, record: bytes) -> "Change":
        """From a record."""
        head, _, vectors = record.partition(b"\n")
        fields = json.loads(head)
        ids = _as_ids(fields["ids"])
        table = np.frombuffer(vectors, "<f4").reshape(len(ids), fields["dim"]).astype(np.float32)
        return cls(fields["version"], fields["removed"], ids, table)


class Kept(NamedTuple):
    """What a snapshot holds."""

    version: int
    items: Embeddings | None
    """M items, None if there are none."""
    represented_by: IntArray
    """(M,)"""
    lists: Lists
    told: Told


def log_name(version: int) -> str:
    """What the log behind the snapshot of a version is called."""
    return f"log-{version:012}"


def start_log(folder: Path, kept: Kept) -> Log:
    """Write a snapshot, start a log behind it and delete those before.

    Parameters
    ----------
    folder : Path
    kept : Kept
        Of a version that has no log yet.

    Returns
    -------
    Log
        Where it cannot be written, a FileError says so, and what was the latest log still is.
    """
    snapshot, path = folder / f"snapshot-{kept.version:012}.safetensors", folder / log_name(kept.version)
    try:
        log = Log.create(path, _first_record(snapshot, kept))
    except BaseException as error:
        if not path.exists():  # otherwise it was interrupted a moment later, and the log is the latest
            _delete(_new(snapshot), snapshot, _new(path))  # they may hold the last bytes of a full disk
        if not isinstance(error, OSError):
            raise
        raise FileError(
            f"the snapshot cannot be written to {folder} ({error.strerror or error}), and all changes stay in the log; "
            "free space, or check the disk"
        ) from error
    with suppress(OSError):  # the log is the latest by now; what is left behind is deleted when it is opened again
        log.keep_name()
        _tidy(folder, {snapshot.name, path.name})
    return log


def _first_record(snapshot: Path, kept: Kept) -> bytes:
    """Write a snapshot; returns what the log behind it begins with."""
    checksum = _write(_new(snapshot), kept)
    os.rename(_new(snapshot), snapshot)
    sync_folder(snapshot.parent)
    return json.dumps({"snapshot": snapshot.name, "checksum": checksum, "version": kept.version}).encode()


def _new(path: Path) -> Path:
    """What a file is called until it is whole."""
    return path.with_name(f"{path.name}.new")


def _delete(*paths: Path) -> None:
    """Delete files as far as that is possible."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def latest_log(folder: Path) -> tuple[Log, Kept, list[Change]] | None:
    """Open the latest log of a gallery.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    tuple or None
        The log, the snapshot it follows and the changes since; None if there is none.
    """
    names = sorted(name for name in os.listdir(folder) if _LOG.fullmatch(name))
    if not names:
        return None
    log = Log(folder / names[-1])
    try:
        first, *records = log.records()
        named = json.loads(first)
        kept = _read(folder / named["snapshot"], named["checksum"], named["version"])
        changes = [Change.from_bytes(record) for record in records]
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        log.close()
        if isinstance(error, FileError):
            raise
        raise _damaged(log.path) from error
    with suppress(OSError):  # what cannot be deleted does no harm
        _tidy(folder, {named["snapshot"], names[-1]})
    return log, kept, changes


def _damaged(path: Path) -> FileError:
    return FileError(f"{path} is damaged; restore the folder from a copy")


def _tidy(folder: Path, current: set[str]) -> None:
    """Delete what a snapshot has replaced, and what a killed process left half-written."""
    for name in os.listdir(folder):
        if _OURS.fullmatch(name) and name not in current:
            (folder / name).unlink()


def _write(path: Path, kept: Kept) -> int:
    """Write a snapshot and bring it to the disk; returns its checksum."""
    from safetensors.numpy import save

    told = kept.told
    arrays: dict[str, Any] = {
        "represented_by": kept.represented_by,
        "list_rows": kept.lists.rows,
        "list_similarities": kept.lists.similarities,
        "told": told.vectors,
        "told_versions": told.versions,
        "removed_versions": np.array(list(told.removed.values()), np.int64),
        "removed_ids": _as_bytes(list(told.removed)),
        "ids": _as_bytes([] if kept.items is None else kept.items.ids.tolist()),
    }
    if kept.items is not None:
        arrays["vectors"] = kept.items.vectors
    data = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return zlib.crc32(data)


def _read(path: Path, checksum: int, version: int) -> Kept:
    from safetensors.numpy import load

    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror}); restore the folder from a copy") from error
    if zlib.crc32(data) != checksum:
        raise _damaged(path)
    arrays = load(data)
    removed = dict(zip(_from_bytes(arrays["removed_ids"]), arrays["removed_versions"].tolist(), strict=True))
    told = Told(arrays["told"], arrays["told_versions"], removed)
    items = Embeddings(arrays["vectors"], _as_ids(_from_bytes(arrays["ids"]))) if "vectors" in arrays else None
    lists = Lists(arrays["list_rows"], arrays["list_similarities"])
    return Kept(version, items, arrays["represented_by"], lists, told)


def _as_bytes(ids: list[int | str]) -> np.ndarray:
    """Ids as JSON, which keeps numbers and texts apart."""
    return np.frombuffer(json.dumps(ids).encode(), np.uint8)


def _from_bytes(values: np.ndarray) -> list[Any]:
    ids: list[Any] = json.loads(values.tobytes())
    return ids


def _as_ids(ids: list[Any]) -> LabelArray:
    """(n,) ids as they were; numpy would turn whole numbers on both sides of 2^63 into floats."""
    return np.array(ids, dtype=None if ids and isinstance(ids[0], str) else np.int64)
