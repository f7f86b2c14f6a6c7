"""How reports are laid out: long sentences are folded in a terminal, and nowhere else."""

import pytest

from entourage.cli import output

LONG = "k-means on the queries, 98 clusters, one greedy k-means++ start, at most 20 iterations, arithmetic mean, seed 0"


@pytest.fixture
def of_80_letters(monkeypatch):
    monkeypatch.setattr(output, "terminal_width", lambda: 80)


def test_a_long_value_is_folded_under_itself(of_80_letters):
    first, *others = output.facts({"nmi": LONG, "map@1000": "divided by min(1000, R)"}).splitlines()
    assert first.startswith("nmi       k-means on the queries") and len(first) <= 80
    assert others[0].startswith(" " * 10) and " ".join([first[10:], others[0].strip()]) == LONG
    assert others[1] == "map@1000  divided by min(1000, R)"


def test_a_path_is_never_broken(of_80_letters):
    path = "/".join(["a-long-folder"] * 12)
    assert output.facts({"model": path}) == f"model  {path}"


def test_elsewhere_a_value_is_a_line():
    assert output.facts({"nmi": LONG}) == f"nmi  {LONG}"
