"""Pictures: functions that take values and return a matplotlib Figure; `save` writes it whole or not at all.

Colours tell right from wrong, and so do a tick and a cross, for readers who do not see the colours.
"""

from pathlib import Path

from matplotlib import rc_context

from entourage.errors import InputError
from entourage.stores import whole_file

__all__ = ["ENDINGS", "save", "write_svg"]

ENDINGS = (".png", ".pdf", ".svg")


def save(figure, path) -> None:
    """Write a figure as .png, .pdf or .svg, by the path's ending; the same figure gives the same file."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(f"the picture is to be written to {path}; wanted a name that ends in {', '.join(ENDINGS)}")
    kind = Path(path).suffix[1:].lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with whole_file(path) as temporary, rc_context({"svg.hashsalt": "entourage"}):
        figure.savefig(temporary, dpi=150, format=kind, metadata=undated)


def write_svg(figure, file) -> None:
    """Write a figure as SVG to an open file, for a page: without dates, the same figure gives the same bytes.

    Letters are written as shapes, because the fonts of a reader have other widths.
    """
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "entourage"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
