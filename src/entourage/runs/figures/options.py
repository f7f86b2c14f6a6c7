"""Options of a figure."""

from dataclasses import dataclass

__all__ = ["FigureOptions"]


@dataclass(frozen=True)
class FigureOptions:
    """Options of all kinds of figure; each kind uses those that concern it."""

    query: str | None = None
    """The id of the query to show. None: the one that changed most for the better."""
    points: int | None = None
    """At most this many items. None: as many as can be told apart, or can be scored."""
    seed: int = 0
    """Seed of everything drawn at random."""
    slices: int | None = None
    """Into how many slices an embedding is cut; None: as many as there are learners."""
    in_report: bool = False
    """Whether the figure stands in a report, where a table has the scores and options of `plot` mean nothing."""
