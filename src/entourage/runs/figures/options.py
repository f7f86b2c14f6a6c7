"""Options of a figure."""

from dataclasses import dataclass

__all__ = ["DRIFTING", "FigureOptions"]

DRIFTING = 480
"""Items of a drift whose arrows can be told apart; of 20 each, all classes can be named."""


@dataclass(frozen=True)
class FigureOptions:
    """Options of all kinds of figure; each kind uses those that concern it."""

    query: str | None = None
    """The id of the query to show. None: the one that changed most for the better."""
    points: int | None = None
    """At most this many items, in whole classes where labels are known. None: all, or as many as can be scored."""
    seed: int = 0
    """Seed of everything drawn at random."""
    slices: int | None = None
    """Into how many slices an embedding is cut; None: as many as there are learners."""
