"""Reports as files: what every one of them holds, and what is refused."""

import json
import shutil

import pytest
from tests.report.reading import check_whole, find

from entourage.errors import EntourageWarning, FileError, InputError
from entourage.report import write_report

pytestmark = pytest.mark.usefixtures("one_thread")

NAMES = ("labelled", "bare", "trained")


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_whole_and_needs_nothing_else(reports, name):
    html = reports[name].read_text(encoding="utf-8")
    check_whole(html)
    assert reports[name].stat().st_size < 3e6


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("labelled", ["Scores", "Figures", "Wins and losses", "Protocol", "Settings", "Versions"]),
        ("bare", ["Figures", "What changed most", "Protocol", "Settings", "Versions"]),
        ("trained", ["Scores", "Figures", "Found and missed", "Protocol", "Settings", "Versions"]),
    ],
)
def test_a_report_says_all_in_its_order(reports, name, sections):
    assert [each.text for each in find(reports[name].read_text(encoding="utf-8"), "h2")] == sections


@pytest.mark.parametrize("name", NAMES)
def test_a_report_does_not_tell_where_its_run_lies(reports, name, labelled, bare, trained):
    run = {"labelled": labelled, "bare": bare, "trained": trained}[name]
    (footer,) = find(reports[name].read_text(encoding="utf-8"), "footer")
    assert f"entourage report {name}." in footer.text and str(run.parent) not in footer.text


@pytest.fixture
def no_figures(monkeypatch):
    """Figures are drawn for the reports above, once."""
    monkeypatch.setattr("entourage.report.drawing.draw_all", lambda *_: [])


@pytest.mark.usefixtures("no_figures")
def test_its_own_place_is_the_run_and_is_not_taken_twice(labelled, tmp_path):
    run = shutil.copytree(labelled, tmp_path / "run")
    written = write_report(run)
    assert written == run / "report.html" and written.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(FileError, match="exists already"):
        write_report(run)
    before = written.stat().st_mtime_ns
    assert write_report(run, overwrite=True).stat().st_mtime_ns > before


@pytest.mark.parametrize("name", ["report.pdf", "report", "page.html.txt"])
def test_other_endings_are_refused_before_any_work(labelled, tmp_path, name):
    with pytest.raises(InputError, match=r"choose a name that ends in \.html"):
        write_report(labelled, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        write_report(tmp_path / "nothing", tmp_path / "report.html")
    with pytest.raises(FileError, match="is no run"):
        write_report(tmp_path, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("no_figures")
def test_pictures_that_are_gone_are_told_and_ids_shown(labelled, tmp_path):
    run = shutil.copytree(labelled, tmp_path / "run")
    told = json.loads((run / "run.json").read_text())
    told["media"]["pictures"]["source"] = str(tmp_path / "gone")
    (run / "run.json").write_text(json.dumps(told))
    with pytest.warns(EntourageWarning, match="ids are shown instead"):
        html = write_report(run).read_text(encoding="utf-8")
    check_whole(html)
    assert [each.text for each in find(html, "h2")][-1] == "About this report"
    assert "ids are shown instead" in find(html, "div", "warnings")[-1].text
    assert not find(html, "img") and "class 0/00.png" in html


def test_a_run_is_asked_once_what_it_has(labelled, monkeypatch):
    from entourage.report import drawing

    asked = []
    monkeypatch.setattr(drawing, "applicable", lambda run: asked.append(run) or [])
    assert drawing.draw_all(labelled) == [] and asked == [labelled]


def test_figures_are_drawn_as_plot_draws_them_but_for_the_scores_of_the_table(labelled, monkeypatch):
    from entourage.report import drawing

    asked = []

    def refuse(self, run, options):
        asked.append(options)
        raise InputError("refused")

    monkeypatch.setattr(type(drawing.FIGURES["drift"]), "draw", refuse)
    drawing._drawn("drift", labelled, 3)
    assert asked == [drawing.FigureOptions(seed=3, in_report=True)]


@pytest.mark.parametrize("error", [InputError, FileNotFoundError])
def test_a_figure_that_cannot_be_drawn_is_a_sentence(labelled, tmp_path, monkeypatch, error):
    from entourage.runs.figures import FigureKind

    def refuse(self, run, options):
        raise error(f"{self.name} is <refused>")

    monkeypatch.setattr(FigureKind, "draw", refuse)
    html = write_report(labelled, tmp_path / "report.html").read_text(encoding="utf-8")
    said = [each.text for each in find(html, "p") if each.text.startswith("Not drawn")]
    assert said == [f"Not drawn: {name} is <refused>." for name in ("drift", "query", "steps", "grid")]


@pytest.mark.usefixtures("no_figures")
def test_an_interrupted_report_leaves_nothing(labelled, tmp_path, monkeypatch):
    from entourage.report.page import Page

    monkeypatch.setattr(Page, "html", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(labelled, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
