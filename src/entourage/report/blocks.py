"""Blocks of text and numbers: values that templates/blocks.html knows how to show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from entourage.report.templates import Block

__all__ = ["Beside", "Facts", "Heading", "Paragraph", "ScoreTable", "Table", "Tally", "Warnings"]

_WIDTH, _HEIGHT, _MARGIN, _SQUARE = 220, 22, 8, 7  # of a drawn interval, in CSS pixels


@dataclass(frozen=True)
class Paragraph(Block):
    """A paragraph of text."""

    text: str


@dataclass(frozen=True)
class Heading(Block):
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Warnings(Block):
    """Warnings: why the numbers may mean less than they seem to."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Facts(Block):
    """Names and values, one line each."""

    caption: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Table(Block):
    """Rows of a name and numbers; columns name all cells."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Beside(Block):
    """Blocks side by side where there is room, one below the other on a phone."""

    blocks: Sequence[Block]


@dataclass(frozen=True)
class Tally(Block):
    """How many queries are good, neither, and bad: drawn as one bar, and in words."""

    good: tuple[int, str]
    bad: tuple[int, str]
    neither: tuple[int, str] = (0, "")
    marks: tuple[str, str] = ("▲", "▼")


@dataclass(frozen=True)
class ScoreTable(Block):
    """Scores in percent, and what changed with its interval.

    NMI is a score of the whole set: queries that are drawn again would have no clusters of their own, so that it has
    no interval.
    """

    caption: str
    metrics: Mapping[str, float]
    """Name -> fraction."""
    before: Mapping[str, float] | None = None
    """Scores before the change, by name; None where there is only one state."""
    intervals: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Name -> {"difference", "low", "high"} of the change; without a state before, {"low", "high"} of the score."""

    def bar(self, interval: Mapping[str, float]) -> dict[str, float]:
        """Where an interval is drawn, in pixels: zero, low, high and the left side of the square at its mean."""
        ends = [each[end] for each in self.intervals.values() for end in ("low", "high")]
        start, stop = min(0.0, *ends), max(0.0, *ends)
        scale = (_WIDTH - 2 * _MARGIN) / (stop - start) if stop > start else 0.0
        values = {"zero": 0.0, "square": interval["difference"], "low": interval["low"], "high": interval["high"]}
        places = {name: round(_MARGIN + (value - start) * scale, 1) for name, value in values.items()}
        return places | {"width": _WIDTH, "height": _HEIGHT, "square": round(places["square"] - _SQUARE / 2, 1)}
