"""Settings of the relational recipe."""

from collections.abc import Iterable
from dataclasses import dataclass

from entourage.evaluation.names import check_metric

__all__ = [
    "LOSS_ALLOWED",
    "LOSS_WITHOUT_LABELS",
    "MOST_NEIGHBORS",
    "MOST_STEPS",
    "PURITY_OF",
    "RefinerSettings",
    "check_protected",
]

MOST_NEIGHBORS, MOST_STEPS = 10_000, 1_000  # more is a slip, or the wish of a tampered file, and could take for ever
PURITY_OF = 8
"""Purity is the share of so many nearest neighbours that are of an item's own class."""
LOSS_ALLOWED = 0.002
"""How far R@1, or what is protected, may fall below the raw vectors in a rehearsal: two queries in a thousand."""

LOSS_WITHOUT_LABELS = 0.005
"""How far R@1 may fall without labels; what `fit` does where nothing that it learned may be used."""


@dataclass(frozen=True)
class RefinerSettings:
    """Settings of the relational recipe, as the estimator hands them on, already checked."""

    n_neighbors: int | None = None
    """k, how many neighbours each item attends to; None leaves the choice to the recipe."""
    n_steps: int = 5
    """T, how many steps of refinement follow one another, where nothing else is asked for or learned."""
    steps_asked_for: bool = False
    """Whether there must be n_steps; otherwise labels may choose another T."""
    random_state: int = 0
    """Seed of everything that is drawn at random."""
    protect: tuple[str, ...] = ()
    """Metrics that must not fall in the rehearsals, besides R@1, which never may."""


def check_protected(protect: str | Iterable[str] | None, what: str = "protect") -> tuple[str, ...]:
    """Refuse what is not the name of a metric.

    Parameters
    ----------
    protect : str, iterable of str or None
        "recall@10", ...
    what : str
        What they were given as, for the message.

    Returns
    -------
    tuple of str
        Each name once.

    Examples
    --------
    >>> check_protected("recall@10"), check_protected(None)
    (('recall@10',), ())
    """
    given = [protect] if isinstance(protect, str) or not isinstance(protect, Iterable) else protect
    return () if protect is None else tuple(dict.fromkeys(check_metric(name, what) for name in given))
