"""What can be asked of a picture."""

from dataclasses import dataclass

__all__ = ["DRIFTING", "FigureOptions"]

DRIFTING = 480
"""Items of a drift whose arrows can be told apart; of 20 each, all classes can be named."""


@dataclass(frozen=True)
class FigureOptions:
    """Of every kind of picture at once; each takes what concerns it."""

    query: str | None = None
    """The id of the query to show. None: the one that changed most for the better."""
    points: int | None = None
    """At most so many items, whole classes where labels are known. None: all, or as many as can be scored at once."""
    seed: int = 0
    """Decides everything random."""
    slices: int | None = None
    """Into how many slices an embedding is cut; None: as many as there are learners."""
