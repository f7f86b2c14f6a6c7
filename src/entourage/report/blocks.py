"""Blocks of text and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Beside", "Doubts", "Facts", "Heading", "Paragraph", "Table", "flattened", "told"]


@dataclass(frozen=True)
class Paragraph:
    text: str

    def html(self) -> str:
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str

    def html(self) -> str:
        return f"<h3>{escape(self.text)}</h3>"


@dataclass(frozen=True)
class Doubts:
    """Why the numbers may mean less than they seem to."""

    texts: Sequence[str]

    def html(self) -> str:
        items = "".join(f"<li>{escape(text)}</li>" for text in self.texts)
        return f'<div class="doubts" role="note"><p><strong>⚠ To be read first</strong></p><ul>{items}</ul></div>'


@dataclass(frozen=True)
class Facts:
    """Names and values, a line each."""

    caption: str
    values: Mapping

    def html(self) -> str:
        named = ((str(name).replace("_", " "), told(value)) for name, value in self.values.items())
        rows = (
            f'<tr><th scope="row">{escape(name)}</th><td dir="auto">{escape(value)}</td></tr>' for name, value in named
        )
        caption = f"<caption>{escape(self.caption)}</caption>"
        return f'<table class="facts">{caption}<tbody>\n{_lines(rows)}\n</tbody></table>'


@dataclass(frozen=True)
class Table:
    """Rows whose first cell names them, the others being numbers or texts; columns name all cells."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def html(self) -> str:
        first, *others = self.columns
        head = f'<th scope="col">{escape(first)}</th>'
        head += "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in others)
        body = _lines(
            f'<tr><th scope="row"><bdi>{escape(name)}</bdi></th>'
            + "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
            + "</tr>"
            for name, *cells in self.rows
        )
        caption = f"<caption>{escape(self.caption)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


@dataclass(frozen=True)
class Beside:
    """Blocks side by side where there is room, one below the other on a phone."""

    blocks: Sequence

    def html(self) -> str:
        return f'<div class="beside">{_lines(f"<div>{block.html()}</div>" for block in self.blocks)}</div>'


def told(value) -> str:
    """A setting or a fact as people write it.

    >>> [told(value) for value in (None, True, [], [30, 50], 5960, 0.0001, "cosine")]
    ['none', 'yes', 'none', '30, 50', '5,960', '0.0001', 'cosine']
    """
    if value is None or (isinstance(value, list | tuple | dict) and not value):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(told, value))
    return str(value)


def flattened(settings: Mapping, before: str = "") -> dict:
    """Settings within settings by dotted names, as `--set` takes them.

    >>> flattened({"loss": "margin", "loss_options": {"beta": 1.2}, "encoder_options": {}})
    {'loss': 'margin', 'loss_options.beta': 1.2, 'encoder_options': {}}
    """
    flat = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{before}{name}.")
        else:
            flat[f"{before}{name}"] = value
    return flat


def _lines(rows) -> str:
    return "\n".join(rows)
