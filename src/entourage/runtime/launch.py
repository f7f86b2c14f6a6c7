"""Which of several processes this is, as `torchrun` says in the environment; needs no torch.

WORLD_SIZE decides: without it nobody started several processes, and a RANK that some other program left behind means
nothing. Where it is set, everything has to fit: a process that took itself for another one would train and then leave
the result for that one to write.
"""

import os
from dataclasses import dataclass

from entourage.errors import InputError

__all__ = ["Launch", "launched"]

_FIX = "start the processes with torchrun, or unset WORLD_SIZE to train with one"


@dataclass(frozen=True)
class Launch:
    """The place of this process among those that were started together."""

    rank: int = 0
    """Its number, 0 for the first, which writes files."""
    world_size: int = 1
    """How many processes there are."""
    local_rank: int = 0
    """Its number on its machine."""
    local_world_size: int = 1
    """How many of them are on its machine."""


def launched() -> Launch:
    """Read the place of this process from RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE.

    Returns
    -------
    Launch
        The first and only process where WORLD_SIZE is not set, or empty.

    Raises
    ------
    InputError
        If one of them is no number or out of range, or if something is missing to find the other processes.
    """
    if not os.environ.get("WORLD_SIZE"):
        return Launch()
    world_size = _number("WORLD_SIZE", least=1)
    if world_size > 1:
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            if not os.environ.get(name):
                raise InputError(f"WORLD_SIZE is {world_size} but {name} is not set, which all of them need; {_FIX}")
        _number("MASTER_PORT", least=1, most=65535)
    local_world_size = _number("LOCAL_WORLD_SIZE", least=1, most=world_size)
    return Launch(
        _number("RANK", most=world_size - 1),
        world_size,
        _number("LOCAL_RANK", most=world_size - 1),
        local_world_size,
    )


def _number(name: str, *, least: int = 0, most: int | None = None) -> int:
    """A whole number of the environment, the least one where it is not set."""
    text = os.environ.get(name) or str(least)
    number = int(text) if text.strip().removeprefix("-").isdecimal() and len(text) < 10 else None
    if number is None or number < least or (most is not None and number > most):
        wanted = f"{least} or more" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} is {text[:20]!r} in the environment; wanted a whole number, {wanted}: {_FIX}")
    return number
