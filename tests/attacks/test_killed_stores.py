"""A refinement of a store that is killed at any moment loses and duplicates nothing, and resumed it ends the same.

`make test` kills once for each store, `make attack` 15 times at random moments, and as often as it is told by

    KILLS=50 pytest -m attack tests/attacks/test_killed_stores.py
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.attacks.killed_refinement import refine_and_die
from tests.runs.test_streamed import KEYS, few
from tests.stores.engines import ENGINES, NAME

KILLS, IN_A_ROW = int(os.environ.get("KILLS", "15")), 3
MILLISECONDS = 15.0  # on average, after a report of progress


@pytest.fixture(params=ENGINES)
def engine(request):
    pytest.importorskip(ENGINES[request.param].library, reason=f"{request.param}: its package is not installed")
    return ENGINES[request.param]


def unfinished(folder: Path) -> bool:
    return bool(list(folder.rglob("*.refining")))


def undisturbed(engine, folder: Path) -> tuple[int, dict]:
    """How many reports of progress there are where nothing is killed, and what is written."""
    folder.mkdir()
    url = engine.fill(folder, KEYS, few())
    code, said = refine_and_die(url, None, 0.0, resume=False, said=folder / "said.txt")
    assert code == 0, said
    return int(said), engine.read(folder, f"{NAME}_refined")


def check_killed(engine, place: Path, wanted: dict, moments: list[tuple[int | str | None, float]]) -> int:
    """Kill a refinement at these moments, the one that goes on at the next, ...; then let it be: how often it died."""
    place.mkdir()
    url, kills = engine.fill(place, KEYS, few()), 0
    before = engine.read(place, NAME)
    for moment, milliseconds in [*moments, (None, 0.0)]:
        code, said = refine_and_die(url, moment, milliseconds, resume=unfinished(place), said=place / "said.txt")
        assert code in (0, -9), said
        kills += code == -9
        seen = engine.read(place, f"{NAME}_refined")
        assert not seen or sorted(seen) == sorted(wanted), "a part of it is seen"
        if seen and not unfinished(place):
            break
    assert_same(engine.read(place, f"{NAME}_refined"), wanted)
    assert_same(engine.read(place, NAME), before)
    assert not unfinished(place)
    shutil.rmtree(place)
    return kills


def assert_same(found: dict, wanted: dict) -> None:
    assert sorted(found) == sorted(wanted)
    for key, (vector, colour) in wanted.items():
        np.testing.assert_allclose(found[key][0], vector, atol=1e-6)
        assert found[key][1] == colour


def test_killed_while_it_writes_a_store_is_resumed(engine, tmp_path):
    _, wanted = undisturbed(engine, tmp_path / "whole")
    assert check_killed(engine, tmp_path / "place", wanted, [("writing", 1.0)]) == 1


@pytest.mark.attack
def test_killed_at_any_moment_nothing_is_lost_or_written_twice(engine, tmp_path):
    reports, wanted = undisturbed(engine, tmp_path / "whole")
    rng, kills = np.random.default_rng(), 0
    last = np.array([reports] + [max(2, reports // 3)] * (IN_A_ROW - 1))  # what is resumed reports less
    while kills < KILLS:
        numbers, delays = rng.integers(1, last + 1), rng.exponential(MILLISECONDS, IN_A_ROW)
        moments = list(zip(numbers.tolist(), delays.tolist(), strict=True))
        kills += check_killed(engine, tmp_path / "place", wanted, moments)
        print(f"{engine.library}: killed {kills} times, at last after {moments}")
