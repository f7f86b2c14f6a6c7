"""What the page of a refinement says, against the files it says it from."""

import json
import re

import numpy as np
import pytest
from tests.report.conftest import items_of
from tests.report.reading import check_whole, find

from entourage.report.refinement import refinement_page
from entourage.runs.media import Media
from entourage.runs.refine import write_refinement
from entourage.runs.refinement_run import open_refinement

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def html(labelled):
    return refinement_page(open_refinement(labelled), []).html()


def test_the_headline_has_the_scores_of_the_run(html, labelled):
    document = json.loads((labelled / "metrics.json").read_text())
    said = find(html, "p", "headline")[0].text
    for scores in (document["metrics_before"], document["metrics"]):
        assert f"{100 * scores['recall@1']:.1f}" in said and f"{100 * scores['map@r']:.1f}" in said
    assert said.startswith("Refinement ")


def test_what_fell_is_said_at_once(html, labelled):
    document = json.loads((labelled / "metrics.json").read_text())
    fell = [name for name, value in document["metrics"].items() if value < document["metrics_before"][name]]
    said = find(html, "p", "lede")[0].text.lower()
    assert all(name in said for name in fell if name not in ("recall@1", "map@r"))
    assert "% of its 10 nearest neighbours" in said
    moved = document["movement"]  # a cosine says little without that of two different items beside it
    to_input, between = (f"{moved[f'mean_cosine_{of}']:.3f}" for of in ("to_input", "of_two_inputs"))
    assert f"has a cosine of {to_input} to what it was before (two different vectors had {between})" in said


def test_the_table_has_every_metric_and_the_intervals(html, labelled):
    document = json.loads((labelled / "metrics.json").read_text())
    table = find(html, "table", "scores")[0].text
    for name, value in document["metrics"].items():
        assert f"{100 * value:.2f}" in table, name
    interval = document["intervals"]["map@r"]
    low, high = (f"{100 * interval[end]:+.2f}".replace("-", "−") for end in ("low", "high"))
    assert f"{low} to {high}" in table


def test_queries_are_counted_and_shown_by_what_they_won_and_lost(html, labelled):
    gains = open_refinement(labelled).gains
    won, lost = (gains > 1e-9).sum(), (gains < -1e-9).sum()
    counts = find(html, "ul", "counts")[0].text
    assert re.findall(r"\d+", counts) == [str(count) for count in (won, len(gains) - won - lost, lost)]
    headers = [each.text for each in find(html, "header") if "average precision" in each.text]
    assert len([text for text in headers if "▲" in text]) == min(4, won)
    assert len([text for text in headers if "▼" in text]) == min(4, lost)


def test_each_query_shows_its_kept_neighbours_before_and_after(html, labelled):
    run = open_refinement(labelled)
    row = int(np.argsort(-run.gains, kind="stable")[0])
    articles = re.findall(r'<article class="ranking">.*?</article>', html, re.DOTALL)
    shown = [each.attributes["alt"] for each in find(articles[0], "img")]
    expected = [str(run.items.labels[row])]
    for when in ("before", "after"):
        for other in run.neighbors[when].rows[row, :8]:
            right = run.items.labels[other] == run.items.labels[row]
            expected.append(f"{run.items.labels[other]}, {'right' if right else 'wrong'}")
    assert shown == expected


def test_classes_that_gained_and_lost_are_counted(html, labelled):
    captions = [each.text for each in find(html, "caption")]
    assert any(re.match(r"\d of 6 classes gained, these the most", text) for text in captions)
    assert "No class lost." in html or any("classes lost" in text for text in captions)


def test_settings_and_versions_are_those_of_the_run(html, labelled):
    run = json.loads((labelled / "run.json").read_text())
    rows = {each.text for each in find(html, "tr")}
    assert f"python{run['versions']['python']}" in rows and f"seed{run['seed']}" in rows
    assert "refiner.steps5" in rows and "refiner.scoreruniversal" in rows
    assert f"refiner.n neighbors{run['settings']['refiner']['n_neighbors']}" in rows


def test_steps_of_a_run_that_kept_none_for_all_are_told(labelled):
    run = open_refinement(labelled)
    run.run["settings"]["refiner"]["steps"] = None
    assert "refiner.steps5" in {each.text for each in find(refinement_page(run, []).html(), "tr")}


def test_without_labels_nothing_is_judged(bare, html):
    scored, html = html, refinement_page(open_refinement(bare), []).html()
    footers = [find(each, "footer")[0].text for each in (scored, html)]
    assert "bootstrap" in footers[0] and "bootstrap" not in footers[1] and "`" not in "".join(footers)
    check_whole(html)
    assert "Without labels there are no scores" in find(html, "p", "headline")[0].text
    assert not find(html, "span", "mark") and not find(html, "table", "scores")
    assert len(find(html, "article")) == 8
    assert all(each.kinds == {"cell"} for each in find(html, "li", "cell"))


def test_texts_and_a_gallery_are_shown_as_they_are(refiner, tmp_path):
    queries = items_of(3).take(np.arange(0, 60, 2))
    queries = type(queries).from_vectors(queries.vectors, labels=queries.labels)
    gallery = items_of(4)
    media = Media(
        texts=[f"query number {row}" for row in range(30)], context_texts=[f"<gallery> text {row}" for row in range(60)]
    )
    run = write_refinement(tmp_path / "texts", refiner, queries, gallery, media=media)
    html = refinement_page(run, []).html()
    check_whole(html)
    assert "words" in find(html, "article")[0].kinds and not find(html, "img")
    cells = [each.text for each in find(html, "li", "cell")]
    assert cells and all("<gallery> text" in text for text in cells)
    assert all("query number" in each.text for each in find(html, "div", "asked"))
