"""Outputs that change as one: a change of several is written down before its first step, and finished by whoever comes.

    change.json    in the folder of each claim: an id, whether outputs may be replaced, and each output with the inode
                   of what is to take its place

It is written for the first output last. From that moment the change will happen: if its process is killed, the next
to write or read one of the outputs finds change.json and puts the others in place, too. Before that moment nothing has
happened. What is in place already is known by its inode, which a rename does not change.
"""

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from entourage.errors import FileError
from entourage.stores.claims import CHANGE, OLD, Claim, staging_of
from entourage.stores.paths import StrPath

__all__ = ["claimed", "finish", "put_all_in_place", "settle", "settle_to_read", "to_disk"]


def claimed(path: StrPath) -> Claim:
    """Claim an output, after what an earlier process left of it is put in order.

    Parameters
    ----------
    path : str or path-like
        The file or folder to be written.

    Returns
    -------
    Claim
        Nothing is in its folder.
    """
    claim = Claim(path)
    try:
        change = _read(claim)
        if change is not None:
            _finish_for(claim, change)
        claim.restore()
        claim.empty()
    except BaseException:
        claim.abandon()
        raise
    return claim


def settle(path: StrPath) -> None:
    """Put in order what an earlier process left of an output; FileError if a process is writing it now."""
    if os.path.lexists(staging_of(path)):
        claimed(path).release()


def settle_to_read(path: StrPath) -> None:
    """Finish a change that an output was to be part of, or undo one that left nothing in its place.

    What else a killed process left does not matter to who reads.
    """
    staging = staging_of(path)
    if (staging / CHANGE).exists() or (os.path.lexists(staging / OLD) and not os.path.lexists(path)):
        try:
            settle(path)
        except FileError:
            raise
        except OSError as error:
            raise FileError(
                f"the writing of {path} was interrupted and cannot be finished here ({error}); run that command again"
            ) from error


def put_all_in_place(claims: Sequence[Claim], *, overwrite: bool) -> None:
    """Let what is new in each claim take its place: of all of them or of none, whatever happens.

    Parameters
    ----------
    claims : sequence of Claim
        Each with `new` complete and on disk.
    overwrite : bool
        Whether outputs may be replaced.
    """
    if len(claims) > 1:
        _write_down(claims, overwrite)
    for claim in claims:
        claim.put_in_place(overwrite=overwrite)


def finish(claims: Sequence[Claim]) -> None:
    """Finish a change of these claims that was interrupted after it was written down."""
    change = _read(claims[0]) if claims else None
    if change is None:
        return
    for claim, (_, inode) in zip(claims, change["outputs"], strict=True):
        _put(claim, inode, change)


def _finish_for(claim: Claim, change: dict[str, Any]) -> None:
    """Finish the change that this output is part of, if it is decided: if it was written down for the first output."""
    places = [claim.path.parent / name for name, _ in change["outputs"]]
    claims: dict[int, Claim] = {change["own"]: claim}
    try:
        for number, place in enumerate(places):
            if number != change["own"] and staging_of(place).is_dir():
                claims[number] = Claim(place)
        first = _read(claims[0]) if 0 in claims else None
        if first is not None and first["id"] == change["id"]:
            for number, each in claims.items():
                _put(each, change["outputs"][number][1], change)
            claim.empty()
            for number in sorted(claims, reverse=True):  # the first one last: it says that all this is decided
                if number != change["own"]:
                    claims[number].release()
    finally:
        for each in claims.values():
            if each is not claim:
                each.abandon()


def _put(claim: Claim, inode: int, change: dict[str, Any]) -> None:
    if os.path.lexists(claim.new) and claim.new.stat().st_ino == inode:
        claim.put_in_place(overwrite=change["overwrite"])


def _write_down(claims: Sequence[Claim], overwrite: bool) -> None:
    change: dict[str, Any] = {"id": secrets.token_hex(8), "overwrite": overwrite}
    inodes = [claim.new.stat().st_ino for claim in claims]
    for own, claim in reversed(list(enumerate(claims))):
        # relative to each, so that they are found wherever the folder around them is moved to
        names = [os.path.relpath(each.path, claim.path.parent) for each in claims]
        content = change | {"own": own, "outputs": list(zip(names, inodes, strict=True))}
        writing = claim.staging / f"{CHANGE}.new"
        writing.write_text(json.dumps(content), encoding="utf-8")
        to_disk(writing)
        os.rename(writing, claim.staging / CHANGE)


def _read(claim: Claim) -> dict[str, Any] | None:
    try:
        change: dict[str, Any] = json.loads((claim.staging / CHANGE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return change


def to_disk(file: Path) -> None:
    """Make sure the content is on the disk before a rename is: else a power cut could leave an empty file."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
