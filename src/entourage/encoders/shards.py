"""Many pictures into a file of vectors, or a folder of them; an interrupted run resumes with the missing shards.

    OUT.parts/plan.json    what is embedded, and by what: shards of another run are never mixed in
    OUT.parts/00000.npz    a shard: its rows, their vectors, and the paths of pictures that cannot be decoded
    OUT                    all of them, once the last is there

Memory holds one shard at a time, however many there are.
"""

import functools
import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from entourage import __version__
from entourage.data.image_set import Items, column_of
from entourage.encoders.adapter import CallableEncoder
from entourage.encoders.embedding import embed_shards, shard_rows
from entourage.encoders.protocol import Encoder
from entourage.encoders.saving import encoder_fingerprint
from entourage.errors import EntourageWarning, FileError, InputError
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.warnings import warn_caller
from entourage.stores import (
    WorkFolder,
    check_streamable,
    is_folder,
    whole_file,
    write_blocks,
    write_parquet_folder,
)
from entourage.stores.documents import read_arrays, read_document
from entourage.stores.filenames import PLAN
from entourage.values import without_direction

__all__ = ["EmbeddedFile", "Plan", "embed_to_file", "parts_of", "write_shard"]


@dataclass(frozen=True)
class Plan:
    """How the shards of a run are made, wherever each of them is."""

    parts: Path
    """The folder for them."""
    fingerprint: str
    """What is embedded, and by what: a shard of anything else is none of this run."""
    shard_size: int
    workers: int | None
    device: str | None
    strict: bool


@dataclass(frozen=True)
class EmbeddedFile:
    """What was written."""

    path: Path
    """The file, or the folder of files."""
    count: int
    """How many vectors it holds."""
    dim: int
    """Their dimensions."""
    total: int
    """How many pictures there were."""
    corrupt: list[str]
    """Paths of the pictures that cannot be decoded, and are left out."""


def parts_of(out: str | PathLike[str]) -> Path:
    """Where the shards of a file are kept until all are there.

    Parameters
    ----------
    out : path-like
        The file.

    Returns
    -------
    Path
        A folder beside it.
    """
    out = Path(out)
    return out.with_name(out.name + ".parts")


@shows_progress
def embed_to_file(
    encoders: Sequence[Encoder | CallableEncoder],
    images: Items,
    out: str | PathLike[str],
    *,
    splits: np.ndarray | None = None,
    shard_size: int = 4096,
    workers: int | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    strict: bool = False,
    by: Callable[[Plan, list[int]], Iterable[int]] | None = None,
    progress: ShowProgress = None,
) -> EmbeddedFile:
    """Write the unit vectors of an image set, with ids and labels, to a file or a folder of them.

    Whatever ends a run early, its finished shards stay in `parts_of(out)`, to be resumed.

    Parameters
    ----------
    encoders : sequence of Encoder
        Several make an ensemble: their unit vectors one behind the other, e = [e_1, ..., e_K] / sqrt(K).
    images : ImageSet or Embeddings
        What is embedded.
    out : path-like
        A .npz, .parquet or .npy file; a name without an ending is a folder of .parquet files, one for each shard.
    splits : array of str, shape (N,), optional
        The split that each item is from, for a column of the file.
    shard_size : int
        Items that are held in memory at a time.
    workers : int, optional
        Number of threads that decode; default: one per core.
    device : str, optional
        Where the encoders are moved to: auto, cpu, cuda or cuda:1; default: they stay.
    resume : bool
        Whether to resume from the shards of an interrupted run.
    overwrite : bool
        Whether to replace the file, or the shards of an interrupted run.
    strict : bool
        Whether a picture that cannot be decoded raises CorruptImage; if not, it is left out of the file.
    by : callable, optional
        Who makes the shards that are missing: called as by(plan, numbers), it calls `write_shard` for each number,
        here or elsewhere, and yields the numbers as they are done. Default: this process, one after the other.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    EmbeddedFile
        What was written, and which pictures were left out.
    """
    out, parts = check_streamable(out, overwrite=overwrite), parts_of(out)
    made_by = encoder_fingerprint(encoders)
    plan = Plan(parts.absolute(), _fingerprint(made_by, images, shard_size), shard_size, workers, device, strict)
    with WorkFolder(parts) as work:
        _begin(work, plan, resume=resume, overwrite=overwrite)
        try:
            _forget_unusable(parts, shard_rows(len(images), shard_size), strict=strict)
            if by is None:
                _write_missing(plan, encoders, images, progress)
            else:
                _follow(by, plan, images, progress)
            written = _join(parts, out, images, splits, shard_size, made_by, overwrite=overwrite)
        except BaseException:
            if not _finished(parts):  # nothing to go on with
                work.finish()
            raise
        work.finish()
    return written


def _fingerprint(made_by: str, images: Items, shard_size: int) -> str:
    """Names the encoders by their weights, the pictures by folder, ids and boxes or, in memory, pixels."""
    digest = hashlib.sha256(f"{shard_size} {made_by}".encode())
    digest.update(str(getattr(images, "root", "")).encode())
    for part in (images.ids, *(column_of(images, name) for name in ("boxes", "pixels", "vectors"))):
        if part is not None:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _begin(work: WorkFolder, plan: Plan, *, resume: bool, overwrite: bool) -> None:
    parts = work.path
    if resume and not parts.exists():
        raise FileError(f"there is no {parts} to resume from; run without --resume to start")
    if parts.exists():
        if not (resume or overwrite):
            raise FileError(
                f"{parts} holds an interrupted run; resume it (--resume), or start again (--overwrite, or delete it)"
            )
        if resume and _read_plan(parts).get("fingerprint") not in (plan.fingerprint, None):
            raise FileError(
                f"{parts} belongs to other pictures, models or shard sizes; resume with the same ones, or delete it"
            )
    if not (resume and (parts / PLAN).exists()):
        work.begin(PLAN, {"entourage": __version__, "fingerprint": plan.fingerprint})
        work.keep()


def _read_plan(parts: Path) -> dict[str, str]:
    """The plan of a folder that was written here; of an empty one there is none."""
    return read_document(parts / PLAN, dict) if (parts / PLAN).exists() else {}


def write_shard(plan: Plan, number: int, encoders: Sequence[Encoder | CallableEncoder], images: Items) -> None:
    """Embed one shard, and write it beside the others.

    Parameters
    ----------
    plan : Plan
        As `embed_to_file` has made it.
    number : int
        Which shard.
    encoders : sequence of Encoder
    images : ImageSet or Embeddings
        All of them; FileError unless encoders and images are those of the plan.
    """
    if _fingerprint(encoder_fingerprint(encoders), images, plan.shard_size) != plan.fingerprint:
        raise FileError(
            f"shard {number} of {plan.parts} would be made of other pictures, or by another model, than the rest; all "
            "machines must see the same files under the same names"
        )
    _write_missing(plan, encoders, images, None, [number])


def _follow(
    by: Callable[[Plan, list[int]], Iterable[int]], plan: Plan, images: Items, progress: Progress | None
) -> None:
    places = shard_rows(len(images), plan.shard_size)
    missing = _missing(plan, images)
    done, total = 0, sum(len(places[number]) for number in missing)
    for number in by(plan, missing) if missing else ():
        done += len(places[number])
        if progress:
            progress("embedding", done, total)


def _missing(plan: Plan, images: Items) -> list[int]:
    count = len(shard_rows(len(images), plan.shard_size))
    return [number for number in range(count) if not _shard(plan.parts, number).exists()]


def _write_missing(
    plan: Plan,
    encoders: Sequence[Encoder | CallableEncoder],
    images: Items,
    progress: Progress | None,
    missing: list[int] | None = None,
) -> None:
    missing = _missing(plan, images) if missing is None else missing
    options: dict[str, Any] = {name: getattr(plan, name) for name in ("shard_size", "workers", "device", "strict")}
    streams = [
        embed_shards(encoder, images, shards=missing, progress=_titled(progress, k, len(encoders)), **options)
        for k, encoder in enumerate(encoders)
    ]
    for number, of_each in zip(missing, zip(*streams, strict=True), strict=True):
        rows, vectors = _ensemble([(shard.rows, shard.vectors) for shard in of_each])
        corrupt = dict.fromkeys(path for shard in of_each for path in shard.corrupt)
        with whole_file(_shard(plan.parts, number)) as temporary, temporary.open("wb") as file:
            np.savez(file, rows=rows, vectors=vectors, corrupt=np.array(list(corrupt), dtype=str))


def _titled(progress: Progress | None, number: int, count: int) -> Progress | None:
    """Progress of one of several encoders, under a title of its own."""
    if progress is None or count == 1:
        return progress
    return lambda title, done, total: progress(f"{title} with model {number + 1}", done, total)


def _ensemble(of_each: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(rows, vectors) of one shard by each encoder -> rows that all have, their vectors one behind the other.

    >>> one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> _ensemble([(np.array([7]), one), (np.array([7]), other)])[1].round(2).tolist()
    [[0.71, 0.0, 0.0, 0.71]]
    """
    rows = functools.reduce(np.intersect1d, [rows for rows, _ in of_each])
    joined = np.hstack([vectors[np.isin(seen, rows)] for seen, vectors in of_each])
    return rows, joined / np.sqrt(len(of_each)).astype(joined.dtype)


def _join(
    parts: Path,
    out: Path,
    images: Items,
    splits: np.ndarray | None,
    shard_size: int,
    encoder: str,
    *,
    overwrite: bool,
) -> EmbeddedFile:
    found, dim = [], 0
    corrupt: dict[str, None] = {}
    places = shard_rows(len(images), shard_size)
    for shard in _shards(parts, places):
        found.append(shard["rows"])
        corrupt |= dict.fromkeys(shard["corrupt"].tolist())
        dim = max(dim, shard["vectors"].shape[1])
    rows = np.concatenate(found)
    if not len(rows):
        for path in _finished(parts):
            path.unlink()
        raise InputError(
            f"none of the {len(images)} pictures can be decoded ({next(iter(corrupt))} is the first); check the files"
        )
    columns = {name: column_of(images, name) for name in ("labels", "cameras", "sequences")} | {"split": splits}
    held = {name: values for name, values in columns.items() if values is not None}
    full = (shard for shard in _shards(parts, places) if len(shard["rows"]))
    if is_folder(out):
        held["ids"] = np.asarray(images.ids)
        each = ((part["vectors"], {name: held[name][part["rows"]] for name in held}) for part in full)
        write_parquet_folder(out, each, encoder=encoder, overwrite=overwrite)
        return EmbeddedFile(out, len(rows), dim, len(images), list(corrupt))
    blocks = (shard["vectors"] for shard in full)
    known = {name: values[rows] for name, values in held.items()}
    if out.suffix.lower() == ".npy" and known.keys() & {"cameras", "sequences"}:
        _warn_of_lost_columns(out)
    ids = np.asarray(images.ids)[rows]
    write_blocks(out, blocks, dim, ids, encoder=encoder, overwrite=overwrite, **known)
    return EmbeddedFile(out, len(rows), dim, len(images), list(corrupt))


def _warn_of_lost_columns(out: Path) -> None:
    warnings.warn(
        f"{out} cannot hold cameras and sequences, so `evaluate` will count pictures of a query's own camera or "
        "sequence as found; write .npz or .parquet instead",
        EntourageWarning,
        stacklevel=4,
    )


def _shard(parts: Path, number: int) -> Path:
    return parts / f"{number:05}.npz"


def _finished(parts: Path) -> list[Path]:
    return list(parts.glob("[0-9]*.npz"))


def _forget_unusable(parts: Path, places: Sequence[np.ndarray], *, strict: bool) -> None:
    """Damaged shards are done again; `strict`, also those that lack a picture: it may have been repaired meanwhile."""
    for number, rows in enumerate(places):
        path = _shard(parts, number)
        if not os.path.lexists(path):
            continue
        try:
            forgotten = len(_read_shard(path, rows)["corrupt"]) > 0 and strict
        except FileError as error:
            warn_caller(f"a part of the interrupted run is made again, as it is damaged: {error}")
            forgotten = True
        if forgotten:
            path.unlink()


def _shards(parts: Path, places: Sequence[np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    for number, rows in enumerate(places):
        yield _read_shard(_shard(parts, number), rows)


def _read_shard(path: Path, place: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a shard; FileError unless they can be those of the rows that belong there."""
    shard = read_arrays(path, {"rows": (None,)}, "iu") | read_arrays(path, {"corrupt": (None,)}, "U")
    rows = shard["rows"]
    shard |= read_arrays(path, {"vectors": (len(rows), None)})
    complete = len(rows) == len(place) or len(shard["corrupt"])
    if not complete or len(np.unique(rows)) < len(rows) or not np.isin(rows, place).all():
        raise FileError(f"{path} has {len(rows)} rows from other places than {place[0]} to {place[-1]}")
    if without_direction(shard["vectors"]):
        raise FileError(f"{path}: {without_direction(shard['vectors'])}")
    return shard
