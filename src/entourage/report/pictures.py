"""Figures and thumbnails as parts of a page, inside it as data URIs."""

import base64
import io
import re
from dataclasses import dataclass
from html import escape

__all__ = ["Picture", "data_uri", "picture_uri"]

_LARGEST_SVG = 400_000  # bytes; thousands of shapes load slowly, and pixels say as much
_DPI = 160
_CSS_PIXELS = 96  # in an inch
_PHONE = "(max-width: 46rem)"  # as in page.html
_SHRUNK = 0.75  # of its width a figure has there at least, as in page.html
_PHONE_ROOM = 340  # CSS pixels, of the usual phones
_NARROW = (4.2, 3.8)  # inches


@dataclass(frozen=True)
class Picture:
    """A figure: its data, how wide it is by nature (CSS pixels), what it shows in words, and how to read it."""

    uri: str
    width: int
    alt: str
    caption: str
    is_chart: bool
    """Lines and letters alone, which may be shown light on dark; pictures in it keep their colours."""
    narrow_uri: str | None = None
    """The same laid out for the screen of a phone."""

    @classmethod
    def of(cls, figure, alt: str, caption: str, *, narrow: bool = False) -> "Picture":
        """A matplotlib figure, as SVG; as PNG if it has too many shapes. narrow: try to lay it out for a phone too."""
        width, drawn = round(figure.get_figwidth() * _CSS_PIXELS), _svg(figure)
        is_chart = b"<image" not in drawn
        fits = len(drawn) <= _LARGEST_SVG
        uri = data_uri(drawn, "image/svg+xml") if fits else data_uri(_png(figure), "image/png")
        return cls(uri, width, alt, caption, is_chart, _narrow_uri(figure) if narrow and fits else None)

    def html(self) -> str:
        kind = "chart" if self.is_chart else "picture"
        image = f'<img src="{self.uri}" alt="{escape(self.alt)}" style="--natural: {self.width}px">'
        if self.narrow_uri is not None:
            kind += " fits"
            image = f'<picture><source media="{_PHONE}" srcset="{self.narrow_uri}">{image}</picture>'
        # Reachable by keyboard: a wide figure is moved sideways on a small screen.
        frame = f'<div class="sideways" tabindex="0" role="region" aria-label="{escape(self.alt)}">{image}</div>'
        return f'<figure class="{kind}">{frame}{self._hint()}<figcaption>{escape(self.caption)}</figcaption></figure>'

    def _hint(self) -> str:
        """What the page says below a figure on small screens, which cut it without a sign."""
        if self.narrow_uri is not None or self.width * _SHRUNK <= _PHONE_ROOM:
            return ""
        return '<p class="hint">Scroll sideways where it is wider than the screen.</p>'


def picture_uri(image) -> str:
    """A Pillow image, grey or coloured, as a data URI: PNG or JPEG, whichever is shorter."""
    forms = {"png": {"optimize": True}, "jpeg": {"quality": 85}}
    written = {}
    for form, options in forms.items():
        buffer = io.BytesIO()
        image.save(buffer, form, **options)
        written[form] = buffer.getvalue()
    shortest = min(written, key=lambda form: len(written[form]))
    return data_uri(written[shortest], f"image/{shortest}")


def data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _svg(figure) -> bytes:
    from entourage.figures import write_svg  # here: matplotlib takes its time

    buffer = io.BytesIO()
    write_svg(figure, buffer)
    return re.sub(rb"^.*?(?=<svg)", b"", buffer.getvalue(), flags=re.DOTALL)  # a doctype would name a remote file


def _narrow_uri(figure) -> str | None:
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


def _png(figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
