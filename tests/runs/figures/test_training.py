"""Every picture of a training, on the smallest runs there are."""

import json

import numpy as np
import pytest
from PIL import Image
from tests.figures.legible import check_legible

from entourage.errors import EntourageWarning, FileError, InputError
from entourage.evaluation import evaluate_embeddings
from entourage.runs.figures import FigureOptions, applicable, draw
from entourage.runs.figures.cross_image import shown_blocks
from entourage.runs.figures.training import spread_queries
from entourage.runs.open import open_run
from entourage.runs.train import TrainRequest, train_run
from entourage.runs.training_run import open_training
from entourage.systems import SYSTEMS
from entourage.systems.cross_image.probe import read_gradients
from entourage.systems.divide_and_conquer.analysis import score_slices

pytestmark = pytest.mark.usefixtures("one_thread")

DATA = {"per_class": 6, "max_classes": 8}
SETTINGS = {"dim": 8, "epochs": 2, "image_size": 16, "batch_classes": 3, "batch_per_class": 2}
SETTINGS |= {"encoder_options": {"width": 4}, "workers": 1}
MORE = {"baseline": {}, "divide": {"learners": 2}, "cross-image": {"blocks": 2}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory, one_thread):
    folder = tmp_path_factory.mktemp("trainings")
    for system, more in MORE.items():
        settings = SYSTEMS[system].settings(**SETTINGS, **more)
        train_run(
            TrainRequest("glyphs", folder / system, system=system, settings=settings, data_options=DATA, nmi=False)
        )
    return {system: open_run(folder / system) for system in MORE}


@pytest.fixture(scope="module")
def filmed(tmp_path_factory, one_thread):
    """Runs on a table with queries, a gallery and sequences, of which one query and one gallery picture are damaged."""
    folder, rng = tmp_path_factory.mktemp("filmed"), np.random.default_rng(0)
    lines = ["label,path,split,is_query,is_gallery,sequence"]
    for label in range(8):
        for shot in range(6):
            name, query = f"{label}-{shot}.png", shot < 2
            colours = 30 * label + rng.integers(0, 40, (16, 16, 3))
            Image.fromarray(colours.astype(np.uint8)).save(folder / name)
            role = f"validation,{query},{not query}" if label > 3 else "train,,"
            lines.append(f"{label},{name},{role},{label}-{shot % 2}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    for name in ("5-1.png", "6-4.png"):
        (folder / name).write_bytes(b"no picture")
    for system in ("baseline", "cross-image"):
        settings = SYSTEMS[system].settings(**SETTINGS, encoder="small-rgb", **MORE[system])
        with pytest.warns(EntourageWarning, match="2 of 48 pictures cannot be decoded and are left out"):
            train_run(TrainRequest(folder / "table.csv", folder / system, system=system, settings=settings, nmi=False))
    return folder


def words(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_run_is_opened_with_what_it_was_scored_on(runs):
    run = runs["baseline"]
    queries, gallery = run.embedded
    assert gallery is None and len(queries) == 48
    assert evaluate_embeddings(queries, nmi=False).metrics == pytest.approx(run.document["metrics"])
    assert run.per_query["recall@1"].mean() == pytest.approx(run.document["metrics"]["recall@1"])
    assert [entry["epoch"] for entry in run.log] == [0, 1, 2]


def test_damaged_pictures_are_left_out_as_in_the_scores(filmed):
    run = open_run(filmed / "baseline")
    with pytest.warns(EntourageWarning, match="2 of 24 pictures cannot be decoded"):
        figure = draw("sheet", run)
    sets, whole = zip(run.tests, run.embedded, strict=True), run.loaded
    assert [len(images) for images in whole] == [8, 16]
    assert [(len(images), images.ids.tolist() == found.ids.tolist()) for images, found in sets] == [
        (7, True),
        (15, True),
    ]
    assert run.per_query["recall@1"].mean() == pytest.approx(run.document["metrics"]["recall@1"])
    assert len(figure.axes[0].images) == 7 * 9


def test_items_of_the_querys_own_sequence_have_no_mark(filmed):
    run = open_run(filmed / "baseline")
    with pytest.warns(EntourageWarning, match="cannot be decoded"):
        said = words(draw("sheet", run))
    queries, gallery = run.embedded
    found = run.neighbors.rows[:, :8]
    counted = gallery.sequences[found] != queries.sequences[:, None]
    right = gallery.labels[found] == queries.labels[:, None]
    assert not counted.all() and said.count("✓") == (right & counted).sum() and said.count("✗") == (~right).sum()


def test_slices_of_a_gallery_are_said_to_be_searched_among_itself(filmed):
    run = open_run(filmed / "baseline")
    with pytest.warns(EntourageWarning, match="cannot be decoded"):
        figure = draw("learners", run, FigureOptions(slices=2))
    assert figure.get_suptitle() == "table.csv: recall of the first m slices, gallery searched among itself"
    figure = draw("specialities", run, FigureOptions(slices=2))
    assert words(figure)[0] == "table.csv, gallery searched among itself: found by one alone (others' R@5 = 0)"
    check_legible(figure)


def test_the_blocks_are_shown_without_damaged_pictures(filmed):
    run = open_run(filmed / "cross-image")
    for kind in ("attention", "parts"):
        with pytest.warns(EntourageWarning, match="1 of 16 pictures cannot be decoded"):
            draw(kind, run)


def test_which_pictures_there_are(runs):
    assert applicable(runs["baseline"]) == ["training", "sheet"]
    assert applicable(runs["baseline"], FigureOptions(slices=2)) == ["training", "sheet", "learners", "specialities"]
    assert applicable(runs["divide"]) == ["training", "sheet", "learners", "specialities"]
    assert applicable(runs["cross-image"]) == ["training", "sheet", "gradients", "attention", "parts"]


def test_the_training_curve_is_the_log(runs):
    figure = draw("training", runs["divide"])
    losses = figure.axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(losses, [entry["loss"] for entry in runs["divide"].log if entry["loss"] is not None])
    assert figure.axes[-1].get_xlabel() == "epoch"
    check_legible(figure)


def test_the_sheet_goes_from_the_best_query_to_the_worst(runs):
    run = runs["baseline"]
    figure = draw("sheet", run)
    precision = run.per_query["map@r"]
    chosen = spread_queries(precision, run.embedded[0].labels, 8)
    assert precision[chosen[0]] == precision.max() and (np.diff(precision[chosen]) <= 0.2).all()
    assert len(figure.axes[0].images) == 8 * 9
    assert "nearest" in words(figure) and "before" not in words(figure)
    check_legible(figure)


def test_learners_are_slices_of_the_embedding(runs):
    for system, options in (("divide", FigureOptions()), ("baseline", FigureOptions(slices=4))):
        figure = draw("learners", runs[system], options)
        wanted = score_slices(runs[system].embedded[0], options.slices or 2, recall_at=(1, 8))
        np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), 100 * np.array(wanted.first[1]))
        assert [axes.get_title() for axes in figure.axes] == ["recall@1", "recall@2", "recall@4", "recall@8"]


def test_specialities_are_what_one_learner_alone_finds(runs):
    figure = draw("specialities", runs["divide"])
    only = score_slices(runs["divide"].embedded[0], 2, lost_at=5).only
    assert {f"learner {k + 1}\n{len(rows)} found" for k, rows in enumerate(only)} <= set(words(figure))
    assert len(figure.axes[0].images) == sum(min(10, len(rows)) for rows in only)


def test_pictures_of_the_blocks(runs):
    run = runs["cross-image"]
    gradients = draw("gradients", run)
    assert f"epoch {read_gradients(run.folder)[0]['epoch']}" in {axes.get_title(loc="left") for axes in gradients.axes}
    labels = gradients.legends[0].get_texts()
    assert [text.get_text() for text in labels] == ["with the blocks", "without the blocks"]
    anchor = str(run.tests[0].ids[9])
    said = " ".join(_everything(draw("attention", run, FigureOptions(query=anchor))))
    assert f"Ia: {run.tests[0].labels[9]}" in said
    assert "block 1" in said and "block 2" in said
    with pytest.raises(InputError, match=f"not an id of the .* wanted one like {run.tests[0].ids[0]}, "):
        draw("attention", run, FigureOptions(query="nothing"))
    for item in run.tests[0].ids[::6]:  # one of each class, whichever class --points leaves
        draw("attention", run, FigureOptions(query=str(item), points=12))
    parts = draw("parts", run)
    assert {"✓", "✗"} & set(words(parts)) and "chosen place" in words(parts)


@pytest.mark.parametrize(("count", "shown"), [(1, [1]), (2, [1, 2]), (5, [1, 3, 5]), (6, [2, 4, 6]), (8, [2, 4, 6])])
def test_blocks_of_the_paper_or_the_first_the_middle_and_the_last(count, shown):
    assert shown_blocks(count) == shown


def _everything(figure) -> list[str]:
    found = [*words(figure), *(axes.get_xlabel() for axes in figure.axes), *(axes.get_title() for axes in figure.axes)]
    return [*found, *(axes.get_ylabel() for axes in figure.axes)]


def test_a_run_on_vectors_has_no_pictures(runs, tmp_path):
    trained = runs["divide"].folder
    (tmp_path / "encoder").mkdir()
    config = json.loads((trained / "config.json").read_text())
    (tmp_path / "config.json").write_text(
        json.dumps(config | {"data": {"source": "vectors.npz", "root": None, "options": {}}})
    )
    for name in ("metrics.json", "log.jsonl"):
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    run = open_run(tmp_path)
    assert applicable(run) == ["training", "sheet", "learners"]
    with pytest.raises(InputError, match="specialities is a figure of a run on pictures"):
        draw("specialities", run)


def test_queries_evenly_apart_are_of_different_classes():
    precision = np.linspace(1, 0, 200)
    chosen = spread_queries(precision, np.arange(200) % 10, 5)
    assert len(set((chosen % 10).tolist())) == 5
    assert np.abs(chosen - [0, 50, 100, 149, 199]).max() <= 5


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(FileError, match="is no run"):
        open_run(tmp_path)
    with pytest.raises(FileError, match="does not exist; wanted a folder of"):
        open_run(tmp_path / "nothing")
    with pytest.raises(FileError, match="is an unfinished run; finish it"):
        open_run(tmp_path / "run.partial")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FileError, match="is no run; wanted a folder that `entourage train`"):
        open_training(tmp_path)
    (tmp_path / "encoder").mkdir()
    with pytest.raises(FileError, match="system is missing"):
        open_training(tmp_path)
