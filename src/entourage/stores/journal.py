"""What is written down of a change of several outputs: change.json, in the folder of each claim.

It says which outputs change together, what is to take the place of each, and what stood there when that was decided.
"""

import json
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from entourage.errors import FileError
from entourage.stores.claims import CHANGE, Claim
from entourage.stores.paths import StrPath

__all__ = ["Change", "Output", "inode_of", "read_change", "standing", "to_disk", "write_down"]


class Output(NamedTuple):
    """One output of a change."""

    name: str
    """Its path from the folder of the output that this was written down for."""
    inode: int
    """Of what is to take its place."""
    stood: tuple[int, int] | None
    """What stood there when the change was decided."""


class Change(NamedTuple):
    """What change.json holds."""

    id: str
    overwrite: bool
    own: int
    """Which of the outputs this was written down for."""
    outputs: list[Output]


def write_down(claims: Sequence[Claim], overwrite: bool) -> None:
    """Write a change down for each of its outputs, for the first one last."""
    key = secrets.token_hex(8)
    found = [(claim.new.stat().st_ino, standing(claim.path)) for claim in claims]
    for own, claim in reversed(list(enumerate(claims))):
        # relative to each, so that they are found wherever the folder around them is moved to
        names = [os.path.relpath(each.path, claim.path.parent) for each in claims]
        outputs = [Output(name, *each) for name, each in zip(names, found, strict=True)]
        writing = claim.staging / f"{CHANGE}.new"
        writing.write_text(json.dumps(Change(key, overwrite, own, outputs)._asdict()), encoding="utf-8")
        to_disk(writing)
        os.rename(writing, claim.staging / CHANGE)


def read_change(claim: Claim) -> Change | None:
    """The change that an output is part of; FileError if its file is damaged, or was copied with what it speaks of."""
    file = claim.staging / CHANGE
    if not os.path.lexists(file):
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8") if file.is_file() else "")  # a pipe would never end
        outputs = [_output(*each) for each in content.pop("outputs")]
        change = Change(**content, outputs=outputs)
        own = outputs[change.own]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise _unknown(claim, f"{CHANGE} in {claim.staging} is damaged") from error
    if inode_of(claim.new) not in (None, own.inode, own.stood and own.stood[0]):
        raise _unknown(claim, "it has been copied since")
    return change


def _output(name: str, inode: int, stood: list[int] | None) -> Output:
    return Output(os.fspath(name), int(inode), None if stood is None else (int(stood[0]), int(stood[1])))


def _unknown(claim: Claim, why: str) -> FileError:
    return FileError(
        f"the writing of {claim.path} was interrupted and cannot be finished, as {why}; move {claim.new} to where it "
        f"belongs if it is wanted, and delete {claim.staging}"
    )


def standing(path: StrPath) -> tuple[int, int] | None:
    """What stands at a path: it changes if that is replaced or written to.

    Parameters
    ----------
    path : str or path-like
        A file or folder, or nothing.

    Returns
    -------
    tuple of int or None
        Inode, and the time in nanoseconds when it, or anything in it, was last written to; None if nothing is there.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    inside = Path(path).rglob("*") if stat.S_ISDIR(found.st_mode) else ()
    return found.st_ino, max([found.st_mtime_ns, *(each.lstat().st_mtime_ns for each in inside)])


def inode_of(path: Path) -> int | None:
    """The inode of a file or folder; None if nothing is there."""
    return path.lstat().st_ino if os.path.lexists(path) else None


def to_disk(file: Path) -> None:
    """Make sure the content is on the disk before a rename is: else a power cut could leave an empty file."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
