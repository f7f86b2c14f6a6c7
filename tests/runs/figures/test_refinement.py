"""Every picture of a refinement shows what the run holds."""

import dataclasses
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch
from tests.figures.legible import check_legible
from tests.runs.samples import COUNT, fitted, halves, items, kept

from entourage.errors import InputError, MissingExtra
from entourage.evaluation import evaluate_embeddings
from entourage.neighbors import search
from entourage.runs.figures import FigureKind, FigureOptions, applicable, draw, draw_motion, write_figure
from entourage.runs.figures.choosing import choose_rows
from entourage.runs.figures.matches import moved_matches, ranks_of
from entourage.runs.figures.refinement import changed_queries, part_of
from entourage.runs.media import Media
from entourage.runs.refine import write_refinement
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

NEIGHBOURS = ("rows", "similarities")
TEXTS = [f"what item {row} says" for row in range(COUNT)]


@pytest.fixture(scope="module")
def run(tmp_path_factory, one_thread):
    return kept(tmp_path_factory.mktemp("plots") / "run", items(), media=Media(texts=TEXTS))


@pytest.fixture(scope="module")
def searched(tmp_path_factory, one_thread):
    """Queries in a gallery."""
    queries, gallery = halves()
    return write_refinement(tmp_path_factory.mktemp("plots") / "run", fitted(gallery), queries, gallery)


def words(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_sheet_begins_with_the_biggest_gain_and_ends_with_a_loss(run):
    figure, gains = draw("sheet", run), run.gains
    captions = [text for text in words(figure) if "AP@R" in text]
    lost = np.sort(gains[gains < 0])[:2]
    marks = [f"▲ {100 * gain:+.0f} AP@R" for gain in np.sort(gains)[[-1, -2]]]
    marks += [f"▼ {100 * gain:+.0f} AP@R".replace("-", "−") for gain in lost]
    assert (
        len(lost)
        and [caption[caption.index(mark[0]) :] for caption, mark in zip(captions, marks, strict=True)] == marks
    )
    assert next(text for text in words(figure) if text in TEXTS) == TEXTS[int(gains.argmax())]
    check_legible(figure)


def test_the_query_is_the_one_that_gained_most_or_the_one_asked_for(run):
    best = int(run.gains.argmax())
    title, *_ = words(draw("query", run))
    before, after = (100 * run.per_query[when]["map@r"][best] for when in ("before", "after"))
    assert f"average precision {before:.0f} → {after:.0f} %" in title and str(run.items.labels[best]) in title
    assert f"item id {best}" in title
    figure = draw("query", run, FigureOptions(query="id 7"))
    said = words(figure)
    assert TEXTS[7] in said
    assert all(TEXTS[row] in said for row in run.neighbors["after"].rows[7, :8])
    check_legible(figure)


def test_sheet_and_query_say_where_matches_went(run):
    rows = changed_queries(run, 4)
    assert [text for text in words(draw("sheet", run)) if "matches" in text] == [
        moved_matches(run, row) for row in rows
    ]
    figure = draw("query", run, FigureOptions(query=f"id {rows[-1]}"))
    assert run.gains[rows[-1]] < 0 and moved_matches(run, rows[-1]) in words(figure)
    check_legible(figure)


def test_ranks_are_places_in_a_search(run):
    found = search(run.items, k=COUNT - 1).rows[7]
    rows = np.array([5, 99, found[0]])
    wanted = [1 + found.tolist().index(row) for row in rows]
    assert ranks_of(run.items, 7, run.items, rows).tolist() == wanted


@pytest.mark.parametrize("named", [True, False])
def test_ranks_leave_the_query_out_and_count_copies_by_id(named):
    whole = items(named=named)
    vectors = whole.vectors.copy()
    vectors[[7, 3, 50, 90, 21]] = vectors[0]  # copies of the query, and of each other
    whole = whole.replace_vectors(vectors)
    galleries = [whole, Embeddings(vectors[::-1], whole.ids[::-1])] if named else [whole]
    for gallery in galleries:
        found = search(whole, gallery, COUNT - 1).rows[0]
        assert ranks_of(whole, 0, gallery, found).tolist() == list(range(1, COUNT))


def test_a_query_that_stands_in_the_gallery_moves_nowhere_if_nothing_changes(tmp_path):
    gallery = items()
    run = write_refinement(tmp_path / "run", fitted(gallery), gallery.take(np.arange(30)), gallery)
    shutil.copyfile(run.folder / "items.npz", run.folder / "refined.npz")
    with np.load(run.folder / "neighbors.npz") as kept_rows:
        same = {f"{name}_{when}": kept_rows[f"{name}_before"] for name in NEIGHBOURS for when in ("before", "after")}
    np.savez(run.folder / "neighbors.npz", **same)
    figure = draw("query", run)
    levels = [patch._posA_posB for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    assert len(levels) == 8 and all(begin[1] == end[1] for begin, end in levels)
    assert not [word for word in words(figure) if word.startswith(("from", "to ", "new", "out"))]


def test_a_neighbour_that_fell_behind_the_eighth_is_told_where_to(tmp_path):
    run = kept(tmp_path / "run", items())
    found = search(run.items, k=10)
    turned = found.rows.copy()
    turned[:, [7, 8]] = turned[:, [8, 7]]
    arrays = {"rows_before": found.rows, "rows_after": turned}
    np.savez(
        run.folder / "neighbors.npz",
        **arrays,
        similarities_before=found.similarities,
        similarities_after=found.similarities,
    )
    said = words(draw("query", run))
    assert "to 9" in said and "from 9" in said


def test_steps_are_scores_of_every_step(run):
    axes = draw("steps", run).axes[0]
    scores = [
        evaluate_embeddings(run.items.replace_vectors(step), nmi=False).metrics["map@r"] for step in run.trajectory
    ]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), 100 * (np.array(scores) - scores[0]), atol=1e-6)
    assert "120 items, searched among themselves" in axes.get_xlabel()


def test_the_grid_has_the_run_itself_in_it(run):
    figure = draw("grid", run)
    axes = figure.axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["4", "8", "16", "32", "64"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("steps T", "neighbours k")
    for axes, name in zip(figure.axes, ("recall@1", "map@r"), strict=True):
        values = np.asarray(axes.images[0].get_array())
        assert values.shape == (5, 5)
        assert values[1, -1] == pytest.approx(100 * run.document["metrics"][name])
        assert axes.get_title("left").endswith(f"{100 * run.document['metrics_before'][name]:.1f}")
    assert "in use (neighbours k = 8, steps T = 5)" in figure.get_supxlabel()
    check_legible(figure)


def test_points_choose_what_is_scored(run):
    axes = draw("steps", run, FigureOptions(points=50)).axes[0]
    assert "50 of 120 items" in axes.get_xlabel()
    some = run.items.take(choose_rows(run.items, 50, FigureOptions().seed))
    steps = run.trajectory.steps[:, choose_rows(run.items, 50, FigureOptions().seed)]
    recalls = [evaluate_embeddings(some.replace_vectors(step), nmi=False).metrics["recall@1"] for step in steps]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 100 * (np.array(recalls) - recalls[0]), atol=1e-6)


def test_a_gallery_is_searched_by_every_picture(searched):
    assert applicable(searched) == ["drift", "query", "steps", "grid", "sheet"]
    last = 100 * searched.document["metrics"]["recall@1"]
    grid = np.asarray(draw("grid", searched).axes[0].images[0].get_array())
    assert grid[1, -1] == pytest.approx(last)
    steps = draw("steps", searched).axes[0]
    first = 100 * searched.document["metrics_before"]["recall@1"]
    assert steps.lines[0].get_ydata()[-1] == pytest.approx(last - first)
    assert "60 items, searched among 60 of a gallery" in steps.get_xlabel()
    row = int(searched.gains.argmax())
    said = words(draw("query", searched))
    assert all(searched.context.ids[each] in said for each in searched.neighbors["after"].rows[row, :8])


def test_right_items_by_the_querys_own_camera_have_no_mark(tmp_path):
    given = items()
    filmed = dataclasses.replace(given, cameras=np.arange(COUNT) % 2)
    run = kept(tmp_path / "run", filmed)
    assert run.document["protocol"]["same_camera"].startswith("items of the query's label by its own camera")
    row = int(run.gains.argmax())
    said = words(draw("query", run, FigureOptions(query=f"id {row}")))
    found = np.concatenate([run.neighbors[when].rows[row, :8] for when in ("before", "after")])
    right, alike = given.labels[found] == given.labels[row], filmed.cameras[found] == filmed.cameras[row]
    assert (right & alike).any() and (right & ~alike).any()
    marks = [word for word in said if word in ("✓", "✗")][-int((~(right & alike)).sum()) :]
    assert marks == ["✓" if each else "✗" for each in right[~(right & alike)]]
    assert said.count("✓") + said.count("✗") < 8 + len(found)


def test_labels_of_two_types_are_framed_as_they_are_scored(tmp_path):
    queries, gallery = halves()
    codes = [np.array([label.rpartition(" ")[2] for label in of.labels]) for of in (queries, gallery)]
    queries = Embeddings(queries.vectors, queries.ids, codes[0].astype(int))
    gallery = Embeddings(gallery.vectors, gallery.ids, codes[1])
    run = write_refinement(tmp_path / "run", fitted(gallery), queries, gallery)
    assert run.document["metrics"]["recall@1"] > 0.5
    assert "✓" in words(draw("sheet", run)) and "✓" in words(draw("query", run))


def test_without_labels_there_is_what_needs_none(tmp_path):
    run = kept(tmp_path / "run", items(labelled=False))
    assert applicable(run) == ["drift", "query", "sheet"]
    for kind in ("query", "sheet"):
        figure = draw(kind, run)
        assert not {"✓", "✗"} & set(words(figure))
        check_legible(figure)


def test_without_a_step_there_is_nothing_a_query_looked_at(tmp_path):
    run = kept(tmp_path / "run", items(), steps=0)
    assert applicable(run) == ["drift", "steps", "grid", "sheet"]
    with pytest.raises(InputError, match="query is a figure of a refinement of 1 step or more"):
        draw("query", run)
    for kind in applicable(run):
        draw(kind, run)


def test_the_sheet_shows_the_queries_that_changed_most_however_few_neighbours_it_has_room_for(tmp_path):
    run = kept(tmp_path / "run", items(labelled=False))
    before, after = (run.neighbors[when].rows[:, :8] for when in ("before", "after"))
    stayed = np.array([np.isin(*each).sum() for each in zip(before, after, strict=True)])
    wanted = np.argsort(stayed, kind="stable")[:4]
    assert changed_queries(run, 4).tolist() == wanted.tolist()
    said = words(draw("sheet", run))
    assert [text for text in said if text.startswith("item ")] == [f"item id {row}" for row in wanted]
    assert words(draw("query", run))[0] == f"Item id {wanted[0]}"


def test_the_drift_shows_every_item_it_is_asked_for(run):
    figure = draw("drift", run, FigureOptions(points=30))
    said = words(figure)
    assert "30 of 120 items, from 3 of 12 classes, laid out by themselves; --points 120 draws all" in said
    assert said.count("10") == 3  # of each of the three, all
    check_legible(figure)
    whole = words(draw("drift", run))
    assert "120 items" in whole and not any("by themselves" in text or "--points" in text for text in whole)
    assert not any("--points" in text for text in words(draw("drift", run, FigureOptions(points=30, in_report=True))))


def test_a_drift_of_many_classes_draws_the_most_frequent_and_says_how_many(tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.runs.figures.choosing.DRIFTING", 60)
    sizes = {"zebra": 40, "yak": 30, "ant": 10, **{f"b{code:02}": 2 for code in range(20)}}
    labels = np.repeat(list(sizes), list(sizes.values()))
    run = kept(tmp_path / "run", Embeddings.from_vectors(items().vectors, labels=labels))
    figure = draw("drift", run)
    said = words(figure)
    assert any(text.startswith("60 of 120 items, from the 6 most frequent of 23 classes") for text in said)
    assert said.count("zebra") == said.count("yak") == said.count("ant") == 2  # in the plane and in the key
    assert {"22 of 40", "22 of 30", "10"} <= set(said) and not any("other classes" in text for text in said)
    check_legible(figure)


def test_the_drift_moves_from_step_to_step(run):
    frames = draw_motion("drift", run, FigureOptions(points=20))
    assert frames.picture.n_steps == run.n_steps
    shown = list(replace(frames, moments=np.linspace(0, 1, run.n_steps + 1)))
    assert all(frame.dtype == np.uint8 and frame.shape == shown[0].shape for frame in shown)
    assert (shown[0][100:] != shown[-1][100:]).any()  # below the clock; a single step may be less than a pixel
    said = " ".join(text.get_text() for text in frames.picture.axes.texts)
    assert "after each step" in said and f"after {run.n_steps} steps" not in said


def test_a_missing_extra_is_told_before_anything_is_drawn(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr(FigureKind, "draw", lambda *_: pytest.fail("drawn"))
    with pytest.raises(MissingExtra, match=r"entourage\[video\]"):
        write_figure("drift", run, tmp_path / "drift.mp4")
    assert not list(tmp_path.iterdir())


def test_a_part_looks_like_its_rows(run):
    part = part_of(run.appearance, np.array([5, 3]))
    assert (part.text(1), part.name(0), part.picture) == (TEXTS[3], run.items.labels[5], None)
