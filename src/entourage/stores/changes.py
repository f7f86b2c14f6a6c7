"""Outputs that change as one: a change of several is written down before its first step, and finished by whoever comes.

It is written down for each output (journal.py), for the first one last. From that moment the change will happen: if its
process is killed, the next to write or read one of the outputs finds it and puts the others in place, too. Before that
moment nothing has happened. What is in place already is known by its inode, which a rename does not change; what
someone else has written there since then stays.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from entourage.errors import FileError
from entourage.runtime.interrupts import without_interruption
from entourage.stores.claims import CHANGE, OLD, Claim, staging_of
from entourage.stores.journal import Change, Output, inode_of, read_change, standing, write_down
from entourage.stores.paths import StrPath

__all__ = ["claimed", "finish", "put_all_in_place", "settle", "settle_to_read"]


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
        change = read_change(claim)
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
        with without_interruption():
            claimed(path).release()


def settle_to_read(path: StrPath) -> None:
    """Finish a change that an output was to be part of, or undo one that left nothing in its place.

    What else a killed process left does not matter to who reads, nor what another user is writing.
    """
    _settle_to_read(path)
    if os.path.islink(path):
        _settle_to_read(os.path.realpath(path))


def _settle_to_read(path: StrPath) -> None:
    staging = staging_of(path)
    if os.path.lexists(staging / CHANGE) or (os.path.lexists(staging / OLD) and not os.path.lexists(path)):
        try:
            settle(path)
        except FileError:
            raise
        except OSError as error:
            raise FileError(
                f"the writing of {path} was interrupted and cannot be finished here ({error}); run that command again"
            ) from error


def put_all_in_place(claims: Sequence[Claim], *, overwrite: bool) -> None:
    """Let what is new in each claim take its place: of all of them or of none.

    Without `overwrite` that holds even if something comes into one of the places at this moment. With it, what was
    replaced cannot be brought back: if a folder comes into the place of a file after the first step, or the other way
    round, that one output is left out.

    Parameters
    ----------
    claims : sequence of Claim
        Each with `new` complete and on disk.
    overwrite : bool
        Whether outputs may be replaced.
    """
    if len(claims) == 1:
        claims[0].put_in_place(overwrite=overwrite)
        return
    if not overwrite:
        for claim in claims:
            claim.check_free()
    write_down(claims, overwrite)
    try:
        for claim in claims:
            claim.put_in_place(overwrite=overwrite)
    except FileError:
        if not overwrite:
            _take_back(claims)
        raise


def finish(claims: Sequence[Claim]) -> None:
    """Finish a change of these claims that was interrupted after it was written down."""
    change = read_change(claims[0]) if claims else None
    if change is not None:
        _put_rest(dict(enumerate(claims)), change)


def _take_back(claims: Sequence[Claim]) -> None:
    change = read_change(claims[0])
    assert change is not None
    for claim, output in zip(claims, change.outputs, strict=True):
        claim.take_back(output.inode)
    (claims[0].staging / CHANGE).unlink()


def _finish_for(claim: Claim, change: Change) -> None:
    """Finish the change that this output is part of, if it is decided: if it was written down for the first output."""
    claims: dict[int, Claim] = {change.own: claim}
    try:
        for number, output in enumerate(change.outputs):
            each = claim if number == change.own else _part_of(change, claim.path.parent / output.name)
            if each is not None:
                claims[number] = each
        if 0 in claims:
            _put_rest(claims, change)
            claim.empty()
            for number in sorted(claims, reverse=True):  # the first one last: it says that all this is decided
                if number != change.own:
                    claims[number].release()
    finally:
        for each in claims.values():
            if each is not claim:
                each.abandon()


def _part_of(change: Change, path: Path) -> Claim | None:
    """The claim of another output, if that is still part of the change."""
    if not staging_of(path).is_dir():
        return None
    claim = Claim(path)
    try:
        theirs = read_change(claim)
    except BaseException:
        claim.abandon()
        raise
    if theirs is not None and theirs.id == change.id:
        return claim
    claim.abandon()
    return None


def _put_rest(claims: dict[int, Claim], change: Change) -> None:
    """Put in place what is not yet; but what came into a place since then is left alone.

    If that was before the first step, nothing is put in place: the change has not begun, and something newer is there.
    """
    around = claims[change.own].path.parent
    states = [_state(around / output.name, claims.get(number), output) for number, output in enumerate(change.outputs)]
    if "overtaken" in states and "done" not in states:
        return
    for number, state in enumerate(states):
        if state == "waiting":
            with suppress(FileError):  # it was overtaken just now
                claims[number].put_in_place(overwrite=change.overwrite)


def _state(path: Path, claim: Claim | None, output: Output) -> Literal["waiting", "done", "overtaken"]:
    here = standing(path)
    if here is not None and here[0] == output.inode:
        return "done"
    if claim is None or inode_of(claim.new) != output.inode:
        return "overtaken"  # it was in its place and is no more, or has been given up
    put_aside = here is None and output.stood is not None and inode_of(claim.old) == output.stood[0]
    return "waiting" if here == output.stood or put_aside else "overtaken"
