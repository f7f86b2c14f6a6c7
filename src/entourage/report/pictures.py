"""Figures and thumbnails as parts of a page, inside it as data URIs."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from entourage.report.templates import Block

if TYPE_CHECKING:  # both take their time to load
    from matplotlib.figure import Figure
    from PIL.Image import Image

__all__ = ["Picture", "data_uri", "picture_uri"]

_LARGEST_SVG = 400_000  # bytes; thousands of shapes load slowly, and pixels say as much
_DPI = 160
_CSS_PIXELS = 96  # in an inch
_SHRUNK = 0.75  # of its width a figure has there at least, as in style.css
_PHONE_ROOM = 340  # CSS pixels, of the usual phones
_NARROW = (4.2, 3.8)  # inches


@dataclass(frozen=True)
class Picture(Block):
    """A figure as part of a page."""

    uri: str
    """Its data."""
    width: int
    """Its natural width, in CSS pixels."""
    alt: str
    """What it shows, in words."""
    caption: str
    """How to read it."""
    is_chart: bool
    """Whether it is lines and letters alone, which may be shown light on dark; pictures in it keep their colours."""
    narrow_uri: str | None = None
    """The figure laid out for the screen of a phone."""

    @classmethod
    def of(cls, figure: Figure, alt: str, caption: str, *, narrow: bool = False) -> Picture:
        """Draw a matplotlib figure, as SVG, or as PNG if it has too many shapes; narrow: for a phone too if it fits."""
        width, drawn = round(figure.get_figwidth() * _CSS_PIXELS), _svg(figure)
        is_chart = b"<image" not in drawn
        fits = len(drawn) <= _LARGEST_SVG
        uri = data_uri(drawn, "image/svg+xml") if fits else data_uri(_png(figure), "image/png")
        return cls(uri, width, alt, caption, is_chart, _narrow_uri(figure) if narrow and fits else None)

    @property
    def is_cut_on_phones(self) -> bool:
        """Whether it must be moved sideways on a small screen."""
        return self.narrow_uri is None and self.width * _SHRUNK > _PHONE_ROOM


def picture_uri(image: Image) -> str:
    """A Pillow image, grey or coloured, as a data URI: PNG or JPEG, whichever is shorter."""
    written = []
    for kind in ("png", "jpeg"):
        buffer = io.BytesIO()
        image.save(buffer, kind, optimize=kind == "png", quality=85)
        written.append(data_uri(buffer.getvalue(), f"image/{kind}"))
    return min(written, key=len)


def data_uri(content: bytes, kind: str) -> str:
    """Content of a media type, such as image/png, as a URI."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _svg(figure: Figure) -> bytes:
    from entourage.figures import write_svg  # here: matplotlib takes its time

    buffer = io.BytesIO()
    write_svg(figure, buffer)
    return re.sub(rb"^.*?(?=<svg)", b"", buffer.getvalue(), flags=re.DOTALL)  # a doctype would name a remote file


def _narrow_uri(figure: Figure) -> str | None:
    """The figure laid out anew for a phone; None if something would not fit. Its own size is given back to it."""
    size = figure.get_size_inches().copy()
    figure.set_size_inches(*_NARROW)
    try:
        drawn = _svg(figure)  # which decides the layout
        needed = figure.get_tightbbox()
        if min(needed.x0, needed.y0) < -0.02 or needed.x1 > _NARROW[0] + 0.02 or needed.y1 > _NARROW[1] + 0.02:
            return None
        return data_uri(drawn, "image/svg+xml")
    finally:
        figure.set_size_inches(*size)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
