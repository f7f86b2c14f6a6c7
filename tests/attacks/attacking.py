"""One attack: a folder is copied, tampered with, and used by a command."""

import random
import re
import shutil
from pathlib import Path

from tests.attacks.judging import leftovers, tried, unusable_vectors
from tests.attacks.tampering import Change, tamperings

Way = tuple[str, Change]


def attack(
    victim: Path, command: str, place: Path, *, only: str = "", sample: int | None = None, then: str = ""
) -> list[str]:
    """Tamper with a folder in every way, or in a few, and use each copy.

    Parameters
    ----------
    victim : Path
        The folder; it is not changed.
    command : str
        What uses it: {victim} is the copy, {folder} the folder that the victim is in, {out} an empty folder.
    place : Path
        Where there is room for the copies.
    only : str
        What the names of the files begin with that are tampered with.
    sample : int, optional
        How many of the ways are tried, always the same and of as many kinds as there are; all by default.
    then : str
        What uses the result of the command, and must succeed if that did.

    Returns
    -------
    list of str
        What went wrong, by the name of the tampering; empty if nothing did.
    """
    ways = [way for way in tamperings(victim) if way[0].startswith(only)]
    assert len(ways) > 100  # else there is nothing to attack
    if sample is not None:
        ways = _of_many_kinds(ways, random.Random(victim.name))[:sample]
    wrong = []
    for name, change in ways:
        copied, out = place / "copy" / victim.name, place / "out"
        for folder in (copied.parent, out):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        shutil.copytree(victim, copied)
        change(copied)
        places = {"victim": copied, "folder": victim.parent, "out": out}
        code, said = tried(command.format(**places).split())
        if then and code == 0:
            said = said or tried(then.format(**places).split(), codes=(0,))[1]
        for written in (out, copied):
            said = said or unusable_vectors(written / "out.npz") or ", ".join(leftovers(written))
        wrong += [f"{name}: {said}"] if said else []
    return wrong


def _of_many_kinds(ways: list[Way], rng: random.Random) -> list[Way]:
    """In random order, but one of each kind first: a field is null, an array is huge everywhere, a file is a pipe."""
    rng.shuffle(ways)
    first = {_kind(name): (name, change) for name, change in ways}.values()
    others = [way for way in ways if way not in first]
    return [*first, *others]


def _kind(name: str) -> str:
    """What is done, whatever it is done to.

    >>> _kind("model.safetensors: scorer.centre is huge everywhere"), _kind("config.json: a pipe")
    ('is huge everywhere', 'a pipe')
    """
    what = name.partition(": ")[2]
    found = re.search(r"\b(is|has|lacks) (?!.*\b(is|has|lacks) ).*", what)
    return found[0] if found else what
