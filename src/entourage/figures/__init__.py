"""Figures: functions that take values and return a matplotlib Figure, which `save` writes whole or not at all.

Nothing is shown by colour alone: right and wrong also have a tick and a cross, lines also differ in style and marker.
"""

from pathlib import Path
from typing import IO

from entourage.errors import InputError, MissingExtra
from entourage.stores import StrPath, whole_file

try:
    from matplotlib import rc_context
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise MissingExtra("figures", "drawing") from error

__all__ = ["ENDINGS", "save", "write_svg"]

ENDINGS = (".png", ".pdf", ".svg")


def save(figure: Figure, path: StrPath, *, overwrite: bool = True) -> None:
    """Write a figure to a file; the same figure gives the same file.

    Parameters
    ----------
    figure : matplotlib Figure
    path : str or path-like
        A name that ends in .png, .pdf or .svg, which decides the format.
    overwrite : bool, default True
        Whether a file that exists is replaced.
    """
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(f"a picture cannot be written to {path}; wanted a name that ends in {', '.join(ENDINGS)}")
    kind = Path(path).suffix[1:].lower()
    undated: dict[str, None] | None = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with whole_file(path, overwrite=overwrite) as temporary, rc_context({"svg.hashsalt": "entourage"}):
        figure.savefig(temporary, dpi=150, format=kind, metadata=undated)


def write_svg(figure: Figure, file: IO[bytes] | IO[str]) -> None:
    """Write a figure as SVG into an open file, for a web page; the same figure gives the same bytes.

    Letters are written as shapes, because the fonts of a reader have other widths.

    Parameters
    ----------
    figure : matplotlib Figure
    file : open file
    """
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "entourage"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
