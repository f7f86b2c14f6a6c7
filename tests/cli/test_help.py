"""Every --help reads well at the widths of terminals: nothing cut off, nothing of the source left in it."""

import re

import pytest
from tests.cli.shop import run

from entourage.cli import COMMANDS

NAMES = ["", *(command.__name__ for command in COMMANDS)]


def help_of(name: str, width: int, monkeypatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERMINAL_WIDTH", str(width))
    return run(f"{name} --help").stdout


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_help_is_whole_at_any_width(name, width, monkeypatch):
    text = help_of(name, width, monkeypatch)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if re.search(r"\w\.\.\.$", line)], "a sentence is cut off"
    for left in ("``", "**", ":class:", "list[", "int range", "[[", "]]", "{{"):
        assert left not in text.split("Options:", 1)[-1] and left not in text.splitlines()[0], left
    brackets = {"(": ")", "[": "]", "{": "}", "<": ">"}
    plain = text.replace("0<=x<=", "").replace("x>=", "")
    assert all(plain.count(opened) == plain.count(closed) for opened, closed in brackets.items())


def test_the_list_of_datasets_is_asked_for_in_plain_words(monkeypatch):
    assert "datasets [OPTIONS] [get] [NAME]" in help_of("datasets", 80, monkeypatch)
