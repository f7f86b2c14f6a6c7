"""How learning rates change: a factor on every group's own rate, a pure function of the epoch.

Having no state, a schedule needs no place in the checkpoint: a resumed run continues with the rates it would have had.
"""

import math
from collections.abc import Callable, Sequence

from entourage.errors import InputError
from entourage.runtime.config import check_known

__all__ = ["SCHEDULES", "Schedule", "build_schedule", "cosine_schedule", "step_schedule", "warmed_up"]

Schedule = Callable[[int], float]
"""From an epoch, counted from 1, to the factor on the learning rates."""

SCHEDULES = ("constant", "cosine", "step")


def step_schedule(after: Sequence[int], factor: float = 0.1) -> Schedule:
    """Multiply the rates by a factor after each of the given epochs.

    Parameters
    ----------
    after : sequence of int
        Epochs that are the last with their rate.
    factor : float
        What the rate is multiplied by then.

    Returns
    -------
    Schedule
        The factor on the first rate, by epoch.

    Examples
    --------
    >>> [round(step_schedule([2, 3])(epoch), 3) for epoch in (1, 2, 3, 4)]
    [1.0, 1.0, 0.1, 0.01]
    """
    return lambda epoch: float(factor ** sum(epoch > milestone for milestone in after))


def cosine_schedule(epochs: int) -> Schedule:
    """Lower the rates along half a cosine, from the whole rate in the first epoch to almost none in the last.

    Parameters
    ----------
    epochs : int
        How many there are.

    Returns
    -------
    Schedule
        The factor on the first rate, by epoch.

    Examples
    --------
    >>> [round(cosine_schedule(4)(epoch), 3) for epoch in (1, 2, 3, 4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    return lambda epoch: 0.5 * (1 + math.cos(math.pi * (epoch - 1) / epochs))


def warmed_up(schedule: Schedule | None, epochs: int) -> Schedule:
    """Let the rates of a schedule grow linearly over the first epochs.

    Parameters
    ----------
    schedule : Schedule or None
        The schedule; None for constant rates.
    epochs : int
        The first epoch with the whole rate of the schedule.

    Returns
    -------
    Schedule
        The factor on the first rate, by epoch.

    Examples
    --------
    >>> [warmed_up(None, 4)(epoch) for epoch in (1, 2, 3, 4, 5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """
    return lambda epoch: min(1.0, epoch / epochs) * (1.0 if schedule is None else schedule(epoch))


def build_schedule(
    name: str, epochs: int, after: Sequence[int] = (), factor: float = 0.1, warmup: int = 0
) -> Schedule | None:
    """Build a schedule by its name.

    Parameters
    ----------
    name : str
        One of `SCHEDULES`.
    epochs : int
        How many epochs there are, for "cosine".
    after : sequence of int
        The epochs after which "step" multiplies the rates by the factor; empty for the others.
    factor : float
        That factor.
    warmup : int
        The first epochs, over which rates grow linearly; 0 for none.

    Returns
    -------
    Schedule or None
        None for "constant" without a warm-up.
    """
    check_known(name, SCHEDULES, "the scheduler")
    if name == "step" and not after:
        raise InputError("the scheduler is 'step' without step_after; wanted the epochs after which the rate drops")
    if name != "step" and after:
        raise InputError(
            f"the scheduler is {name!r} and step_after is {list(after)}; wanted step_after for 'step' only: leave it "
            "out, or choose 'step'"
        )
    schedules = {"constant": None, "cosine": cosine_schedule(epochs), "step": step_schedule(after, factor)}
    return warmed_up(schedules[name], warmup) if warmup else schedules[name]
