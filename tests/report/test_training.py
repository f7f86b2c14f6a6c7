"""What the page of a training run says, against the files it says it from."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.report.reading import check_whole, find

from entourage.errors import EntourageWarning
from entourage.evaluation.bootstrap import paired_bootstrap
from entourage.report.training import _class_tables, training_page
from entourage.runs.train import TrainRequest, train_run
from entourage.runs.training_run import open_training
from entourage.runtime.config import to_dict
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.intra_batch.settings import IntraBatchSettings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run(trained):
    return open_training(trained)


@pytest.fixture(scope="module")
def html(run):
    return training_page(run, []).html()


@pytest.mark.parametrize(
    ("recall", "share"),
    [(0.99, "nearly all"), (0.7, "most"), (0.5, "more than half"), (0.49, "fewer than half"), (0.1, "few")],
)
def test_the_headline_says_how_often_the_first_is_right_without_its_number(run, recall, share):
    measured = run.document | {"metrics": run.document["metrics"] | {"recall@1": recall}}
    said = find(training_page(replace(run, document=measured), []).html(), "p", "headline")[0].text
    assert said.startswith("Trained by baseline on glyphs, the encoder finds an item of the right class first for ")
    assert f" {share} " in said and not re.search(r"\d", said)


def test_scores_and_facts_are_said_once(html, run):
    for name, score in run.document["metrics"].items():
        assert html.count(f">{100 * score:.2f}") >= 1 and html.count(f"{100 * score:.1f} %") == 0, name
    assert html.count("classes unseen in training") == 1
    rows = [each.text for each in find(html, "tr")]
    assert "queries32" in rows and "gallery32" not in rows


def test_scores_have_intervals_over_classes(html, run):
    table = find(html, "table", "scores")[0].text
    assert run.per_query.keys() == run.document["metrics"].keys() - {"nmi"}
    for name, values in run.per_query.items():
        interval = paired_bootstrap(values, 0 * values, classes=run.embedded[0].labels)
        score = f"{100 * run.document['metrics'][name]:.2f}"
        assert f"{score}{100 * interval.low:.2f} to {100 * interval.high:.2f}" in table, name
    assert "Intervals: 95 %, bootstrap over classes" in find(html, "footer")[0].text


def test_queries_are_shown_from_best_to_worst(html, run):
    precision = [int(text) for text in re.findall(r"average precision (\d+) %", html)]
    assert len(precision) == 8 and precision == sorted(precision, reverse=True)
    assert all(each.kinds == {"ranking", "alone"} for each in find(html, "article"))
    found = int(run.per_query["recall@1"].sum())
    assert re.findall(r"\d+", find(html, "ul", "counts")[0].text) == [str(found), str(32 - found)]


def test_few_classes_are_listed_once_and_many_by_their_ends(html):
    def captions(tables):
        return [(table.caption.partition(".")[0], [row[0] for row in table.rows]) for table in tables]

    few, many = ([f"{code:02}" for code in range(count)] for count in (12, 13))
    (table,) = captions(_class_tables(few, np.linspace(1, 0, 12)))
    assert table == ("Classes from those found best to those found worst", few)
    tables = captions(_class_tables(many, np.linspace(1, 0, 13)))
    assert tables == [("Classes found best", many[:6]), ("Classes found worst", many[:-7:-1])]
    alike = np.repeat(many, [1] * 7 + [2] * 6)  # all found: the most frequent are listed, not the first
    assert captions(_class_tables(alike, np.ones(len(alike)))) == [(name, many[7:]) for name, _ in tables]
    assert "Classes from those found best" in html and "Classes found worst" not in html


def test_the_title_names_data_and_system_and_the_epoch_its_score_in_percent(html, run):
    assert find(html, "h1")[0].text == "glyphs · baseline (trained)"
    best = 100 * max(line["score"] for line in run.log if line.get("score") is not None)
    kept = [each.text for each in find(html, "tr") if each.text.startswith("epoch kept")]
    assert len(kept) == 1 and f"held-out training classes, {best:.2f} %" in kept[0]


def test_a_network_is_told_of_with_both_losses_and_what_it_is_good_for(run, tmp_path):
    settings = to_dict(IntraBatchSettings(network_weight=0.5, steps=2))
    (tmp_path / "net" / "network").mkdir(parents=True)
    made = replace(run, folder=tmp_path / "net", config=run.config | {"system": "intra-batch", "settings": settings})
    said = training_page(made, []).html()
    assert "entourage refine VECTORS --model net --run KEPT" in said and "those of the encoder alone" in said
    rows = {each.text for each in find(said, "tr")}
    assert "loss of the networkcross-entropy after the messages, weight 0.5" in rows
    assert {"message-passing steps2", "a batch10 classes of 7 items, each receiving messages from all"} <= rows
    assert "No network was kept" in training_page(replace(made, folder=tmp_path), []).html()
    del settings["messages"]  # as runs of older versions have it
    assert "each receiving messages from all" in training_page(made, []).html()


def test_settings_and_versions_are_those_of_the_run(html, run):
    rows = {each.text for each in find(html, "tr")}
    assert {"systembaseline", "data.sourceglyphs", "encoder options.width4", "epochs2"} <= rows
    assert f"torch{run.config['versions']['torch']}" in rows


def test_a_damaged_picture_is_left_out_and_the_rest_is_shown(pictures, tmp_path):
    source = shutil.copytree(pictures, tmp_path / "pictures")
    (source / "class 4" / "03.png").write_bytes(b"no picture")
    settings = BaselineSettings(
        encoder="small-rgb", dim=4, image_size=8, encoder_options={"width": 4}, batch_classes=3, batch_per_class=2,
        epochs=1, workers=1, validation_share=0.0,
    )  # fmt: skip
    with pytest.warns(EntourageWarning, match="1 of 60 pictures cannot be decoded"):
        train_run(TrainRequest(source, tmp_path / "run", settings=settings, nmi=False))
    run = open_training(tmp_path / "run")
    with pytest.warns(EntourageWarning, match="1 of 30 pictures cannot be decoded"):
        html = training_page(run, []).html()
    check_whole(html)
    assert "queries29" in [each.text for each in find(html, "tr")] and len(find(html, "article")) == 8
    assert "class 4/03.png" not in [str(item) for item in run.appearance.ids]
    assert "the test set cannot be loaded again" not in html


def test_a_run_whose_pictures_are_gone_still_has_its_page(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    config["data"] = {"source": str(tmp_path / "gone"), "root": None, "options": {}}
    (run / "config.json").write_text(json.dumps(config))
    html = training_page(open_training(run), []).html()
    check_whole(html)
    assert "the test set cannot be loaded again" in find(html, "div", "warnings")[0].text
    assert [each.text for each in find(html, "h2")] == ["Scores", "Protocol", "Settings", "Versions"]
    assert [each.text for each in find(html, "th")][1] == "score"
    assert "bootstrap" not in find(html, "footer")[0].text  # there is no interval
