"""A refinement kept as a folder: what it holds is what was refined, scored and drawn."""

import json

import numpy as np
import pytest
from tests.runs.samples import COUNT, fitted, halves, items, kept

from entourage.errors import FileError
from entourage.evaluation import evaluate_embeddings
from entourage.evaluation.bootstrap import paired_bootstrap
from entourage.neighbors import search
from entourage.runs.media import Media
from entourage.runs.refine import RefinementNotes, fill_refinement, write_refinement
from entourage.runs.refinement_run import open_refinement, refined_steps
from entourage.runs.refiners import FittedRefiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run(tmp_path_factory, one_thread):
    return kept(tmp_path_factory.mktemp("kept") / "run", items())


def test_the_folder_says_what_it_is_and_how_it_was_made(run):
    written = json.loads((run.folder / "run.json").read_text())
    assert written["kind"] == "refinement" and written["media"] is None and written["seed"] == 0
    assert written["versions"].keys() >= {"entourage", "python", "numpy", "torch"}
    assert written["settings"]["refiner"] == {
        "recipe": "relational", "random_state": 0, "scorer": "universal", "n_neighbors": 8, "n_steps": 5, "steps": 5
    }  # fmt: skip
    assert run.document["protocol"]["steps"] == 5
    assert run.document["protocol"]["context"] == "transductive: 8 neighbours among the items, labels unused"


def test_what_came_before_is_noted(tmp_path):
    notes = RefinementNotes({"data": "samples"}, {"demo": {"epochs": 3}}, seconds=100)
    document = fill_refinement(tmp_path, FittedRefiner(fitted(items())), items(), notes=notes)
    written = json.loads((tmp_path / "run.json").read_text())
    assert document["protocol"]["data"] == "samples" and document["protocol"]["steps"] == 5
    assert written["settings"]["demo"] == {"epochs": 3} and "refiner" in written["settings"]
    assert 100 <= written["seconds"] < 200


def test_vectors_labels_and_ids_come_back(run):
    given = items()
    np.testing.assert_array_equal(run.items.vectors, given.vectors)
    for name in ("ids", "labels"):
        assert getattr(run.refined, name).tolist() == getattr(run.items, name).tolist() == getattr(given, name).tolist()
    unlabelled = Embeddings(given.vectors, given.ids)
    expected = fitted(given).transform(unlabelled, context=unlabelled)
    np.testing.assert_allclose(run.refined.vectors, expected, atol=1e-6)


def test_scores_and_intervals_are_those_of_the_vectors(run):
    before, after = (evaluate_embeddings(each, nmi=False) for each in (run.items, run.refined))
    assert run.document["metrics_before"] == pytest.approx(before.metrics)
    assert run.document["metrics"] == pytest.approx(after.metrics)
    assert run.document["intervals"].keys() == after.metrics.keys()
    for name, interval in run.document["intervals"].items():
        wanted = paired_bootstrap(after.per_query[name], before.per_query[name], classes=run.items.labels)
        assert interval == pytest.approx(wanted.document()), name
    assert "paired bootstrap over classes" in run.document["protocol"]["intervals"]
    np.testing.assert_allclose(run.gains, after.average_precision - before.average_precision)
    np.testing.assert_array_equal(run.per_query["after"]["recall@1"], after.recall_at_1)


def test_neighbours_are_those_of_a_search(run):
    np.testing.assert_array_equal(run.neighbors["before"].rows, search(run.items, k=10).rows)
    np.testing.assert_array_equal(run.neighbors["after"].rows, search(run.refined, k=10).rows)
    kept_share = np.mean([
        len(set(a) & set(b)) / 10
        for a, b in zip(run.neighbors["before"].rows.tolist(), run.neighbors["after"].rows.tolist(), strict=True)
    ])  # fmt: skip
    assert run.document["movement"]["share_of_10_nearest_kept"] == pytest.approx(kept_share)


def test_the_trajectory_leads_from_the_raw_vectors_to_the_refined_ones(run):
    steps = run.trajectory.steps
    assert steps.shape == (6, COUNT, run.items.dim) and run.trajectory is run.trajectory
    np.testing.assert_array_equal(steps[0], run.items.vectors)
    np.testing.assert_allclose(steps[-1], run.refined.vectors, atol=1e-5)
    assert run.context_trajectory is None


def test_steps_of_some_items_are_those_of_all_and_do_not_hold_them(tmp_path):
    rows = np.array([3, 40, 7])
    queries, gallery = halves()
    searched = write_refinement(tmp_path / "searched", fitted(gallery), queries, gallery)
    for run in (kept(tmp_path / "among themselves", items()), searched):
        some = run.trajectory_of(rows)
        assert some.ids.tolist() == run.items.ids[rows].tolist() and "trajectory" not in vars(run)
        np.testing.assert_allclose(some.steps, run.trajectory.steps[:, rows], atol=1e-5)


def test_the_first_steps_are_those_of_the_refiner_and_stay_frozen(run):
    steps = refined_steps(run.refiner, run.items, None, 3).steps
    assert len(steps) == 4 and not steps.flags.writeable
    for step in range(4):
        np.testing.assert_array_equal(steps[step], run.refiner.transform(run.items, run.items, steps=step))


def test_the_attention_of_one_item_is_its_row_of_all(run):
    whole, one = run.attention, run.attention_of([7])
    assert one.weights.shape == (5, 1, 8)
    assert one.neighbor_ids[0].tolist() == whole.neighbor_ids[7].tolist()
    np.testing.assert_allclose(one.weights[:, 0], whole.weights[:, 7], atol=1e-4)


def test_without_labels_there_are_no_scores(tmp_path):
    given = items(labelled=False, named=False)
    run = kept(tmp_path / "run", given, steps=2)
    assert (run.document["metrics"], run.document["intervals"], run.per_query, run.gains) == ({}, {}, None, None)
    assert not run.labelled and not run.items.named and len(run.trajectory) == 3
    np.testing.assert_allclose(run.trajectory[-1], run.refined.vectors, atol=1e-5)
    assert run.attention_of([3]).neighbor_ids[0].tolist() == run.attention.neighbor_ids[3].tolist()
    assert run.appearance.kind == "ids"


def test_labels_that_tell_nothing_are_a_warning_not_a_failure(tmp_path):
    given = items()
    different = Embeddings(given.vectors, given.ids, np.arange(COUNT))
    run = write_refinement(tmp_path / "run", fitted(given), different)
    assert run.document["metrics"] == {} and run.per_query is None
    assert run.document["warnings"][-1].startswith("not scored: no query has a match")


def test_a_gallery_is_kept_and_searched(tmp_path):
    queries, gallery = halves()
    texts, gallery_texts = ([f"{name} {item}" for item in of.ids] for name, of in (("q", queries), ("g", gallery)))
    refiner = fitted(gallery)
    run = write_refinement(tmp_path / "run", refiner, queries, gallery, media=Media(None, texts, gallery_texts))
    np.testing.assert_array_equal(run.neighbors["after"].rows, search(run.refined, run.context_refined, k=10).rows)
    assert run.document["metrics"]["map@r"] == pytest.approx(
        evaluate_embeddings(run.refined, run.context_refined, nmi=False).metrics["map@r"]
    )
    np.testing.assert_allclose(run.context_trajectory[-1], run.context_refined.vectors, atol=1e-5)
    assert run.document["protocol"]["context"] == "gallery: 8 neighbours of 60 items, labels unused"
    assert (run.appearance.text(3), run.gallery_appearance.text(3)) == ("q id 7", "g id 6")


@pytest.mark.parametrize("name", ["items.npz", "refined.npz", "context.npz", "context_refined.npz"])
def test_a_run_in_which_some_labels_are_missing_is_one_without_scores(tmp_path, name):
    queries, gallery = halves()
    write_refinement(tmp_path / "run", fitted(gallery), queries, gallery)
    assert open_refinement(tmp_path / "run").labelled
    with np.load(tmp_path / "run" / name) as held:
        arrays = {key: held[key] for key in held.files if key != "labels"}
    np.savez(tmp_path / "run" / name, **arrays)
    opened = open_refinement(tmp_path / "run")
    assert not opened.labelled and opened.gains is None


def test_an_existing_folder_stays(run):
    with pytest.raises(FileError, match="exists already"):
        kept(run.folder, items())
    again = kept(run.folder, items(), overwrite=True)
    assert again.document["metrics"] == run.document["metrics"]


def test_what_is_no_refinement_is_refused(tmp_path, run):
    with pytest.raises(FileError, match="is no refinement run"):
        open_refinement(tmp_path)
    (tmp_path / "run.json").write_text('{"kind": "refinement"}')
    with pytest.raises(FileError, match=r"has no items\.npz"):
        open_refinement(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FileError, match="cannot be read"):
        open_refinement(tmp_path)
