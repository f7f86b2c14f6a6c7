"""What the page of a refinement says, against the files it says it from."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.report.conftest import items_of
from tests.report.reading import check_whole, find

from entourage.report.refinement import refinement_page
from entourage.runs.figures.matches import moved_matches
from entourage.runs.figures.refinement import changed_queries
from entourage.runs.media import Media
from entourage.runs.refine import write_refinement
from entourage.runs.refinement_run import open_refinement

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def html(labelled):
    return refinement_page(open_refinement(labelled), []).html()


UP, DOWN, UNCLEAR = ({"low": low, "high": high} for low, high in ((0.01, 0.1), (-0.1, -0.01), (-0.1, 0.1)))
SCORES = {"recall@1": 0.5, "recall@10": 0.8, "map@r": 0.3, "nmi": 0.6}


def said_of(labelled, **changes) -> tuple[str, str]:
    """The headline, and what follows it, of scores that changed so: (difference, interval) by name."""
    after = {name: score + changes.get(name, (0, None))[0] for name, score in SCORES.items()}
    intervals = {name: interval for name, (_, interval) in changes.items() if interval}
    run = open_refinement(labelled)
    document = run.document | {"metrics_before": SCORES, "metrics": after, "intervals": intervals}
    page = refinement_page(replace(run, document=document), [])
    return page.headline, page.lede.partition(" On average")[0]


def test_the_headline_names_what_changed_clearly_and_no_other_score(labelled):
    rise, fall, unclear = (0.05, UP), (-0.05, DOWN), (-0.05, UNCLEAR)
    changes = {"recall@1": rise, "map@r": rise, "recall@10": fall}
    assert said_of(labelled, **changes) == ("Refinement raised recall@1 and MAP@R.", "Recall@10 fell.")
    changes = {"recall@1": unclear, "map@r": rise, "recall@10": unclear, "nmi": (-0.1, None)}
    assert said_of(labelled, **changes) == ("Refinement raised MAP@R.", "NMI fell.")
    headline, lede = said_of(labelled, **{"recall@1": fall, "map@r": rise})
    assert headline == "Refinement raised MAP@R and lowered recall@1." and lede.startswith("On average")
    headline, lede = said_of(labelled, **{"recall@1": unclear, "recall@10": fall})  # neither of the two that come first
    assert headline == "Refinement lowered recall@10." and lede.startswith("On average")
    headline, _ = said_of(labelled, **{"recall@1": unclear, "map@r": (0.05, UNCLEAR)})
    assert headline == "Refinement changed no score clearly."


def test_numbers_are_said_once(labelled, reports):
    html = reports["labelled"].read_text(encoding="utf-8")
    document = json.loads((labelled / "metrics.json").read_text())
    words = " ".join(each.text for each in find(html, "body"))
    for scores in (document["metrics_before"], document["metrics"]):
        for name in ("recall@1", "map@r"):  # elsewhere equal numbers may be of other metrics
            assert f"{100 * scores[name]:.1f} " not in words and f"{100 * scores[name]:.1f}%" not in words
    facts = [each.text for each in find(html, "tr")]
    assert facts.count("items60") == 1 and not {"queries60", "gallery60"} & set(facts)
    assert sum(bool(re.match(r"(refiner\.)?(n )?steps", fact)) for fact in facts) == 1
    assert sum(bool(re.match(r"(refiner\.random state|seed)", fact)) for fact in facts) == 1
    assert sum("12 neighbours" in fact or fact.startswith("refiner.n neighbors") for fact in facts) == 1


def test_the_query_that_is_drawn_is_not_listed_again(labelled, reports):
    run = open_refinement(labelled)
    first = str(run.items.ids[int(changed_queries(run, 2)[0])])
    drawn = reports["labelled"].read_text(encoding="utf-8")
    listed = [[each.text for each in find(html, "header")] for html in (refinement_page(run, []).html(), drawn)]
    assert [any(f"item {first}" in text for text in texts) for texts in listed] == [True, False]
    headings = [each.text for each in find(drawn, "h3")]
    assert "Biggest wins besides the query above" in headings and "Biggest losses" in headings


def test_each_query_says_where_its_matches_went(labelled):
    run = open_refinement(labelled)
    html = refinement_page(run, []).html()
    for row in (int(run.gains.argmax()), int(run.gains.argmin())):
        said = moved_matches(run, row)
        assert re.match(r"\d of 9 matches (rose|fell) from ranks? [\d, …]+ to [\d, …]+$", said) and said in html


def test_how_far_vectors_moved_is_said(html, labelled):
    document = json.loads((labelled / "metrics.json").read_text())
    said = find(html, "p", "lede")[0].text.lower()
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
    assert "steps5" in rows and "refiner.scoreruniversal" in rows
    assert f"contexttransductive: {run['settings']['refiner']['n_neighbors']} neighbours among the items" in " ".join(
        rows
    )


def test_a_run_that_does_not_say_how_its_intervals_were_made_resampled_queries(labelled):
    run = open_refinement(labelled)
    older = {name: value for name, value in run.document["protocol"].items() if name != "intervals"}
    html = refinement_page(replace(run, document=run.document | {"protocol": older}), []).html()
    assert "bootstrap over queries" in find(html, "footer")[0].text


def test_without_labels_nothing_is_judged(bare, html):
    scored, html = html, refinement_page(open_refinement(bare), []).html()
    footers = [find(each, "footer")[0].text for each in (scored, html)]
    assert "bootstrap over classes" in footers[0] and "bootstrap" not in footers[1] and "`" not in "".join(footers)
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
