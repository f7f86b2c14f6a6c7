"""Text in figures: measured, wrapped and shortened to fit, and made only of letters that the fonts have."""

from functools import lru_cache

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font
from matplotlib.textpath import text_to_path

__all__ = ["POINTS", "families", "printable", "shorten", "width_of", "wrap"]

POINTS = 72  # in an inch
_FIRST = "DejaVu Sans"  # comes with matplotlib
_OTHERS = (  # for scripts that the first lacks, where they are installed
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
)


def wrap(text: str, width: float, lines: int, size: float) -> list[str]:
    """Wrap a text; an ellipsis shows that something was cut off.

    Parameters
    ----------
    text : str
    width : float
        Width of the lines, in inches; a word longer than that is broken.
    lines : int
        How many lines there may be.
    size : float
        Size of the font, in points.

    Returns
    -------
    list of str
        The lines.
    """
    wrapped: list[str] = []
    current = ""
    for word in text.split():
        joined = f"{current} {word}".strip()
        if width_of(joined, size) <= width:
            current = joined
            continue
        wrapped += [current] if current else []
        while width_of(word, size) > width and len(word) > 1 and len(wrapped) <= lines:
            fits = _fitting(word, width, size)
            wrapped.append(word[:fits])
            word = word[fits:]
        current = word
        if len(wrapped) > lines:  # the rest of a long text need not be measured
            break
    wrapped += [current] if current else []
    if len(wrapped) <= lines:
        return wrapped
    return [*wrapped[: lines - 1], _cut(wrapped[lines - 1], width, size)]


def shorten(text: str, width: float, size: float) -> str:
    """Cut a text to one line of `width` inches, in a font of `size` points; an ellipsis shows that it was cut."""
    return text if width_of(text, size) <= width else _cut(text, width, size)


def _cut(text: str, width: float, size: float) -> str:
    fits = _fitting(text, width - width_of("…", size), size)
    return f"{text[:fits].rstrip()}…"


def _fitting(text: str, width: float, size: float) -> int:
    """How many of the first letters fit into `width` inches; one at least."""
    low, high = 1, max(1, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width_of(text[:middle], size) <= width else (low, middle - 1)
    return low


@lru_cache(maxsize=4096)
def width_of(text: str, size: float) -> float:
    """The width of a text on one line, in inches, in a font of `size` points."""
    font = font_manager.FontProperties(family=_FIRST, size=size)
    letters = printable(text)
    known = "".join(letter for letter in letters if _has(_FIRST, letter))
    wide = len(letters) - len(known)  # of another font: taken to be as wide as they are high
    width = text_to_path.get_text_width_height_descent(known, font, False)[0] if known else 0.0
    return (width + wide * size) / POINTS


# ---- fonts -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def families() -> tuple[str, ...]:
    """The font families of all figures, in the order in which a letter is looked up in them."""
    installed = set(font_manager.get_font_names())
    return (_FIRST, *(name for name in _OTHERS if name in installed))


def printable(text: str) -> str:
    """A text with an empty box for every letter that no font here has: matplotlib would draw one too, and warn."""
    return "".join(map(_printable, text))


@lru_cache(maxsize=4096)
def _printable(letter: str) -> str:
    if letter.isspace():
        return "\n" if letter == "\n" else " "
    return letter if any(_has(family, letter) for family in families()) else "□"


@lru_cache(maxsize=4096)
def _has(family: str, letter: str) -> bool:
    return bool(_font(family).get_char_index(ord(letter)))


@lru_cache(maxsize=16)
def _font(family: str) -> FT2Font:
    return font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=family)))
