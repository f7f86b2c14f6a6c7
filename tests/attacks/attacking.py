"""One attack: a folder is copied, tampered with, and used by a command."""

import random
import shutil
from pathlib import Path

from tests.attacks.judging import fault, leftovers, unusable_vectors
from tests.attacks.tampering import tamperings


def attack(victim: Path, command: str, place: Path, *, only: str = "", sample: int | None = None) -> list[str]:
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
        How many of the ways are tried, always the same; all by default.

    Returns
    -------
    list of str
        What went wrong, by the name of the tampering; empty if nothing did.
    """
    ways = [way for way in tamperings(victim) if way[0].startswith(only)]
    assert len(ways) > 100  # else there is nothing to attack
    if sample is not None:
        ways = random.Random(victim.name).sample(ways, sample)
    wrong = []
    for name, change in ways:
        copied, out = place / "copy" / victim.name, place / "out"
        for folder in (copied.parent, out):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        shutil.copytree(victim, copied)
        change(copied)
        said = fault(command.format(victim=copied, folder=victim.parent, out=out).split())
        said = said or unusable_vectors(out / "out.npz") or ", ".join(leftovers(out))
        wrong += [f"{name}: {said}"] if said else []
    return wrong
