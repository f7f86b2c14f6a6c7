"""The card of a model or a run, README.md: of what it was made and how, what came out, and what it cannot do."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entourage import __version__
from entourage.stores.filenames import CARD

__all__ = ["LIMITS_OF_REFINERS", "ModelCard", "write_card"]

LIMITS_OF_REFINERS = (
    "It is for vectors of the encoder that it was fitted on; others are warned of, where they can be told.",
    "Refined queries are compared with a refined gallery, never with raw vectors.",
    "Whole rankings gain more than first hits; thresholds on similarities have to be set anew.",
    "Where neighbours do not belong together, or classes have few items, it gains little.",
    "None of the items that it was fitted on are in this repository.",
)


@dataclass(frozen=True)
class ModelCard:
    """What a card says."""

    title: str
    summary: str
    usage: str
    """Python; REPOSITORY stands for the name of the repository."""
    data: Mapping[str, Any]
    """What it was made of, by name."""
    protocol: Mapping[str, Any]
    """How it was measured."""
    scores: Mapping[str, Mapping[str, float]]
    """A column of scores by its title, as fractions, such as {"before": ..., "after": ...}."""
    limits: tuple[str, ...]
    tags: tuple[str, ...] = field(default=("embeddings", "retrieval", "metric-learning"))

    def text(self) -> str:
        """The card as Markdown, with the header that the hub reads."""
        header = ["---", "library_name: entourage", "tags:", *(f"- {tag}" for tag in self.tags), "---"]
        parts = [
            "\n".join(header),
            f"# {_plain(self.title)}",
            f"{self.summary} Written by entourage {__version__}.",
            f"```python\n{self.usage}\n```",
            "## Data",
            _table(("", "")) + _rows(self.data),
            "## How it was made",
            _table(("", "")) + _rows(self.protocol),
        ]
        if any(self.scores.values()):
            parts += ["## Scores", _scores(self.scores)]
        parts += ["## Limits", "\n".join(f"- {_plain(limit)}" for limit in self.limits)]
        return "\n\n".join(parts) + "\n"


def write_card(folder: Path, card: ModelCard) -> None:
    """Write README.md into a folder."""
    (folder / CARD).write_text(card.text(), encoding="utf-8")


def _table(titles: tuple[str, ...]) -> str:
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"


def _rows(values: Mapping[str, Any]) -> str:
    return "\n".join(f"| {_plain(name)} | {_shown(value)} |" for name, value in values.items())


def _scores(columns: Mapping[str, Mapping[str, float]]) -> str:
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    lines = [
        f"| {_plain(name)} | "
        + " | ".join(f"{100 * column[name]:.2f} %" if name in column else "" for column in columns.values())
        + " |"
        for name in names
    ]
    return _table(("", *map(_plain, columns))) + "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return _plain(value)
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _plain(json.dumps(value))


def _plain(text: str) -> str:
    """Text as text: no table ends early, no markup or tag begins."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(str(text).split()))
