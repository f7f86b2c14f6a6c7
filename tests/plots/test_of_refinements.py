"""Every picture of a refinement shows what the run holds."""

import numpy as np
import pytest
from tests.figures.legible import check_legible
from tests.refinements.samples import COUNT, fitted, halves, items, kept

from entourage.evaluation import evaluate_embeddings
from entourage.neighbors import search
from entourage.plots import PlotOptions, applicable, draw
from entourage.plots.of_refinements import changed_queries, part_of, ranks_of
from entourage.refinements import Looks, keep_refinement

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = [f"what item {row} says" for row in range(COUNT)]


@pytest.fixture(scope="module")
def run(tmp_path_factory, one_thread):
    return kept(tmp_path_factory.mktemp("plots") / "run", items(), looks=Looks(texts=TEXTS))


@pytest.fixture(scope="module")
def searched(tmp_path_factory, one_thread):
    """Queries in a gallery."""
    queries, gallery = halves()
    return keep_refinement(tmp_path_factory.mktemp("plots") / "run", fitted(gallery), queries, gallery)


def words(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_sheet_begins_with_the_biggest_gain_and_ends_with_a_loss(run):
    figure, gains = draw("sheet", run), run.gains()
    said = " ".join(words(figure))
    assert f"{100 * gains.max():+.0f} AP@R" in said and TEXTS[int(gains.argmax())] in said
    assert "▼" in said if gains.min() < 0 else "▼" not in said
    check_legible(figure)


def test_the_query_is_the_one_that_gained_most_or_the_one_asked_for(run):
    best = int(run.gains().argmax())
    title, *_ = words(draw("query", run))
    before, after = (100 * run.per_query()[when]["map@r"][best] for when in ("before", "after"))
    assert f"average precision {before:.0f} → {after:.0f} %" in title and str(run.items.labels[best]) in title
    assert f"item id {best}" in title
    figure = draw("query", run, PlotOptions(query="id 7"))
    said = words(figure)
    assert TEXTS[7] in said
    assert all(TEXTS[row] in said for row in run.neighbors("after").rows[7, :8])
    check_legible(figure)


def test_ranks_are_places_in_a_search(run):
    found = search(run.items, k=COUNT - 1).rows[7]
    rows = np.array([5, 99, found[0]])
    wanted = [1 + found.tolist().index(row) for row in rows]
    assert ranks_of(run.items.vectors[7], run.items.vectors, rows, 7).tolist() == wanted


def test_steps_are_scores_of_every_step(run):
    axes = draw("steps", run).axes[0]
    scores = [
        evaluate_embeddings(run.items.replace_vectors(step), nmi=False).metrics["map@r"] for step in run.trajectory()
    ]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), 100 * (np.array(scores) - scores[0]), atol=1e-6)
    assert "120 items, searched among themselves" in axes.get_xlabel()


def test_the_grid_has_the_run_itself_in_it(run):
    figure = draw("grid", run)
    axes = figure.axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["4", "8", "16", "32", "64"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("steps T", "neighbours k")
    values = np.asarray(axes.images[0].get_array())
    assert values.shape == (5, 6)
    assert values[1, -1] == pytest.approx(100 * run.document["metrics"]["recall@1"])
    assert values[:, 0] == pytest.approx([100 * run.document["metrics_before"]["recall@1"]] * 5)


def test_points_choose_what_is_scored(run):
    assert "50 of 120 items" in draw("steps", run, PlotOptions(points=50)).axes[0].get_xlabel()


def test_a_gallery_is_searched_by_every_picture(searched):
    assert applicable(searched) == ["drift", "query", "steps", "grid", "sheet"]
    last = 100 * searched.document["metrics"]["recall@1"]
    grid = np.asarray(draw("grid", searched).axes[0].images[0].get_array())
    assert grid[1, -1] == pytest.approx(last)
    steps = draw("steps", searched).axes[0]
    first = 100 * searched.document["metrics_before"]["recall@1"]
    assert steps.lines[0].get_ydata()[-1] == pytest.approx(last - first)
    assert "60 items, searched among 60 of a gallery" in steps.get_xlabel()
    row = int(searched.gains().argmax())
    said = words(draw("query", searched))
    assert all(searched.context.ids[each] in said for each in searched.neighbors("after").rows[row, :8])


def test_without_labels_there_is_what_needs_none(tmp_path):
    run = kept(tmp_path / "run", items(labelled=False))
    assert applicable(run) == ["drift", "query", "sheet"]
    for kind in ("query", "sheet"):
        figure = draw(kind, run)
        assert not {"✓", "✗"} & set(words(figure))
        check_legible(figure)


def test_the_sheet_shows_the_queries_that_changed_most_however_few_neighbours_it_has_room_for(tmp_path):
    run = kept(tmp_path / "run", items(labelled=False))
    before, after = (run.neighbors(when).rows[:, :8] for when in ("before", "after"))
    stayed = np.array([np.isin(*each).sum() for each in zip(before, after, strict=True)])
    wanted = np.argsort(stayed, kind="stable")[:4]
    assert changed_queries(run, 4).tolist() == wanted.tolist()
    said = words(draw("sheet", run))
    assert [text for text in said if text.startswith("item ")] == [f"item id {row}" for row in wanted]
    assert words(draw("query", run))[0] == f"Item id {wanted[0]}"


def test_the_drift_shows_every_item_it_is_asked_for(run):
    figure = draw("drift", run, PlotOptions(points=30))
    assert any("30 of 120 items" in text.get_text() for text in [*figure.texts, *figure.axes[0].texts])
    check_legible(figure)


def test_the_drift_moves_from_step_to_step(run):
    frames = draw("drift", run, PlotOptions(points=20, motion=True))
    first = next(iter(frames))
    said = " ".join(text.get_text() for text in frames.picture.axes.texts)
    assert "after each step" in said and f"after {run.n_steps} steps" not in said
    assert first.dtype == np.uint8 and first.shape[2] == 3 and len(frames) > run.n_steps


def test_a_part_looks_like_its_rows(run):
    part = part_of(run.appearance(), np.array([5, 3]))
    assert (part.text(1), part.name(0), part.picture) == (TEXTS[3], run.items.labels[5], None)
