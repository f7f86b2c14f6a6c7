"""Where points lie: computed once, kept with the run, read again."""

import shutil

import numpy as np
import pytest

from entourage.explorer import keeping, scene
from entourage.explorer import places as module
from entourage.explorer.places import places_of
from entourage.explorer.scene import Scene
from entourage.explorer.spreading import spread
from entourage.figures import projection
from entourage.figures.projection import follow, follow_steps, lay_out
from entourage.runs.layout import MAP
from entourage.runs.refinement_run import open_refinement
from entourage.stores.replacing import foreign_in
from entourage.values import Embeddings


@pytest.fixture
def run(pictured, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(pictured, folder, ignore=shutil.ignore_patterns(MAP))
    return open_refinement(folder)


def test_they_are_kept_with_the_run_and_not_computed_again(run, monkeypatch):
    told = []
    first = places_of(run, lambda *progress: told.append(progress))
    assert first.shape == (4, len(run.items), 2) and told[-1] == ("moving the points along the steps", 3, 3)
    assert told[0] == ("laying out the map", 0, 1)
    assert foreign_in(run.folder) is None  # `--overwrite` knows the file as ours
    monkeypatch.setattr(module, "lay_out", None)
    assert np.array_equal(places_of(run), first)


def test_they_are_those_of_the_figures_but_for_their_scale_and_crowds(run, monkeypatch):
    monkeypatch.setattr(module, "spread", lambda places: places)
    steps = run.trajectory.steps
    expected = follow(lay_out(run.items), steps)
    found = places_of(run)
    low, high = expected.min(axis=(0, 1)), expected.max(axis=(0, 1))
    assert np.allclose(found, (expected - (low + high) / 2) / ((high - low).max() / 2), atol=1e-4)


def test_points_on_one_another_are_spread_over_a_disc_and_others_stay():
    alone = np.array([[-0.9, -0.9], [0.9, 0.9]])
    crowd = np.zeros((200, 2))
    steps = np.stack([np.concatenate([alone, crowd]), np.concatenate([alone, crowd + 0.5])]).astype(np.float32)
    moved = spread(steps)
    assert np.array_equal(moved[:, :2], steps[:, :2])
    far = np.linalg.norm(moved - steps, axis=2)[:, 2:]
    disc = np.sqrt(4 * 0.1 * 199 / 202 / np.pi)  # a tenth of the plane is for all points
    assert far.max() <= disc + 1e-6 and 0.55 * disc < far.mean() < 0.8 * disc  # two thirds, if evenly
    assert len(np.unique(moved[0, 2:].round(4), axis=0)) > 190
    assert np.allclose(moved[1] - moved[0], steps[1] - steps[0], atol=1e-6)  # each goes its own way together with them


@pytest.mark.parametrize("damage", ["cut", "shape", "nan"])
def test_a_damaged_file_is_computed_anew(run, damage):
    first, file = places_of(run), run.folder / MAP
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:100])
    else:
        np.savez(file, places=first[:2] if damage == "shape" else np.full_like(first, np.nan))
    assert np.array_equal(places_of(run), first)


def test_a_run_that_cannot_be_written_to_is_shown_all_the_same(run, monkeypatch):
    def refused(*given, **options):
        raise PermissionError("read-only")

    monkeypatch.setattr(keeping, "whole_file", refused)
    assert np.isfinite(places_of(run)).all() and not (run.folder / MAP).exists()


def test_steps_are_followed_one_by_one_as_all_at_once():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(3, 40, 6))
    steps /= np.linalg.norm(steps, axis=2, keepdims=True)
    positions = rng.normal(size=(40, 2)).astype(np.float32)
    one_by_one = list(follow_steps(positions, steps[1:].astype(np.float32)))
    assert np.array_equal(np.stack([positions, *one_by_one]), follow(positions, steps))


def test_many_points_are_placed_part_by_part_and_progress_is_told_after_each(monkeypatch):
    rng = np.random.default_rng(0)
    items = Embeddings.from_vectors(rng.normal(size=(90, 5)))
    steps = np.stack([items.vectors, items.vectors + 0.1 * rng.normal(size=(90, 5))]).astype(np.float32)
    whole = lay_out(items, landmarks=30)
    followed = follow(whole, steps, landmarks=30)
    monkeypatch.setattr(projection, "_AT_ONCE", 40)
    told = []
    assert np.allclose(lay_out(items, landmarks=30, progress=lambda *each: told.append(each)), whole, atol=1e-5)
    assert [each for each in told if each[0] == "placing items"] == [("placing items", n, 60) for n in (0, 40, 60)]
    told.clear()
    assert np.allclose(
        follow(whole, steps, landmarks=30, progress=lambda *each: told.append(each)), followed, atol=1e-5
    )
    assert told == [("following items", n, 3) for n in (0, 1, 2, 3)]


def test_the_graph_is_kept_beside_the_places_and_not_searched_again(run, monkeypatch):
    places = places_of(run)
    first = Scene(run).weighted
    monkeypatch.setattr(scene, "build_graph", None)
    again = Scene(run).weighted
    assert np.array_equal(again.graph.neighbors.rows, first.graph.neighbors.rows)
    assert (
        np.array_equal(again.weights, first.weights)
        and again.graph.items.ids.tolist() == first.graph.items.ids.tolist()
    )
    assert np.array_equal(places_of(run), places)


@pytest.mark.parametrize("damage", ["row", "asked", "stands_for"])
def test_a_graph_that_does_not_fit_is_searched_anew(run, damage):
    first, file = Scene(run).weighted, run.folder / MAP
    with np.load(file) as held:
        arrays = {name: held[name].copy() for name in held.files}
    name = "rows" if damage == "row" else damage
    arrays[name].flat[0] = 10_000
    np.savez(file, **arrays)
    assert np.array_equal(Scene(run).weighted.weights, first.weights)
