"""How learning rates change: a factor on every group's own rate, a pure function of the epoch.

Having no state, a schedule needs no place in the checkpoint: a resumed run goes on with the rates it would have had.
"""

import math
from collections.abc import Callable, Sequence

from entourage.errors import InputError
from entourage.runtime.config import check_known

__all__ = ["SCHEDULES", "Schedule", "build_schedule", "cosine_schedule", "step_schedule"]

Schedule = Callable[[int], float]

SCHEDULES = ("constant", "cosine", "step")


def step_schedule(after: Sequence[int], factor: float = 0.1) -> Schedule:
    """The rate is multiplied by `factor` after each of these epochs.

    >>> [round(step_schedule([2, 3])(epoch), 3) for epoch in (1, 2, 3, 4)]
    [1.0, 1.0, 0.1, 0.01]
    """
    return lambda epoch: float(factor ** sum(epoch > milestone for milestone in after))


def cosine_schedule(epochs: int) -> Schedule:
    """From the whole rate in the first epoch along half a cosine to almost none in the last.

    >>> [round(cosine_schedule(4)(epoch), 3) for epoch in (1, 2, 3, 4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    return lambda epoch: 0.5 * (1 + math.cos(math.pi * (epoch - 1) / epochs))


def build_schedule(name: str, epochs: int, after: Sequence[int] = ()) -> Schedule | None:
    """A schedule by its name in `SCHEDULES`; `after` says when "step" divides by ten."""
    check_known(name, SCHEDULES, "the scheduler")
    if (name == "step") != bool(after):
        seen = "without epochs to step after" if name == "step" else f"with epochs to step after ({list(after)})"
        raise InputError(f'the scheduler {name!r} came {seen}; wanted them for "step" and only there')
    return {"constant": None, "cosine": cosine_schedule(epochs), "step": step_schedule(after)}[name]
