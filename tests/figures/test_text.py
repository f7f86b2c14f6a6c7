"""Words keep to their room, and every letter is one that the fonts have."""

import pytest
from matplotlib.figure import Figure

from entourage.figures import text as text_module
from entourage.figures.text import POINTS, families, printable, shorten, width_of, wrap

SENTENCE = "can you tell me if there are any shots that i am required to have before travelling to south africa"


def plain_wrap(text: str, room: float, size: float) -> list[str]:
    """Word by word, as many on a line as fit."""
    lines = [[]]
    for word in text.split():
        if lines[-1] and width_of(" ".join([*lines[-1], word]), size) > room:
            lines.append([])
        lines[-1].append(word)
    return [" ".join(line) for line in lines]


@pytest.mark.parametrize("room", [1.0, 1.7, 3.0, 9.0])
def test_a_text_is_wrapped_word_by_word(room):
    assert wrap(SENTENCE, room, 99, 8) == plain_wrap(SENTENCE, room, 8)


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_what_does_not_fit_is_cut_off_and_an_ellipsis_says_so(lines):
    wrapped = wrap(SENTENCE, 1.5, lines, 8)
    assert len(wrapped) == lines and wrapped[:-1] == plain_wrap(SENTENCE, 1.5, 8)[: lines - 1]
    assert wrapped[-1].endswith("…") and all(width_of(line, 8) <= 1.5 for line in wrapped)


def test_what_fits_is_left_as_it_is():
    assert wrap("two words", 2.0, 1, 8) == [shorten("two words", 2.0, 8)] == ["two words"]
    assert wrap("", 2.0, 1, 8) == []


def test_a_word_longer_than_a_line_is_broken():
    wrapped = wrap("a " + "x" * 60, 1.0, 9, 8)
    assert "".join(wrapped) == "a" + "x" * 60 and all(width_of(line, 8) <= 1.0 for line in wrapped)
    assert wrap("x" * 9, 0.01, 3, 8) == ["x", "x", "x…"]  # a letter at least, or it would never end


@pytest.mark.parametrize("room", [0.01, 0.3, 1.0, 2.5, 20.0])
def test_the_longest_beginning_that_fits(room):
    plain = max(n for n in range(1, len(SENTENCE) + 1) if n == 1 or width_of(SENTENCE[:n], 8) <= room)
    assert text_module._fitting(SENTENCE, room, 8) == plain


@pytest.mark.parametrize("text", ["Wide", "illi", "two words, $5 & $6", "Թ и é"])
def test_widths_are_those_of_the_drawn_text(text):
    figure = Figure(figsize=(9, 2), dpi=300)
    drawn = figure.text(0, 0.5, text, fontsize=20, family=families(), parse_math=False)
    figure.draw_without_rendering()
    assert width_of(text, 20) == pytest.approx(drawn.get_window_extent().width / 300, abs=1.5 / POINTS)


def test_a_letter_that_no_font_has_is_an_empty_box(monkeypatch):
    monkeypatch.setattr(text_module, "families", lambda: ("DejaVu Sans",))
    text_module._printable.cache_clear()
    assert printable("日本\tA\nԹ") == "□□ A\nԹ"
    text_module._printable.cache_clear()


def test_letters_of_another_font_are_taken_to_be_square(monkeypatch):
    monkeypatch.setattr(text_module, "_printable", lambda letter: letter)
    width_of.cache_clear()
    assert width_of("日本", 10) == pytest.approx(20 / POINTS)
    width_of.cache_clear()
