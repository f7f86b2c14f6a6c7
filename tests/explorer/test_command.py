"""`entourage explore`: what it opens, what it refuses, what it says."""

import time

import numpy as np
import pytest
from tests.explorer.conftest import names_of_classes, vectors_of
from typer.testing import CliRunner

from entourage.cli import app
from entourage.explorer import start as starting
from entourage.runtime import extras

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def started(monkeypatch):
    """What would be served, when it is ready, instead of serving it."""
    calls = []

    def run(preparing, token, bound):
        while preparing.desk is None and preparing.error is None:
            time.sleep(0.01)
        calls.append((preparing, token, bound.getsockname()))

    monkeypatch.setattr(starting, "_run", run)
    return calls


def explore(*arguments):
    return CliRunner().invoke(app, ["explore", *map(str, arguments)])


def test_a_run_is_opened_on_this_machine_alone(pictured, started):
    outcome = explore(pictured, "--port", 0, "--no-browser")
    assert outcome.exit_code == 0, outcome.output
    (preparing, token, address), *_ = started
    assert token is None and address[0] == "127.0.0.1" and preparing.desk.summary["name"] == "pictured"
    assert f"Open http://127.0.0.1:{address[1]}/ in a browser" in outcome.stdout


def test_a_browser_is_opened_unless_it_is_not_wanted(pictured, started, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    explore(pictured, "--port", 0)
    assert len(opened) == 1 and opened[0].startswith("http://127.0.0.1:")


def test_open_to_a_network_the_address_has_a_token(pictured, started):
    outcome = explore(pictured, "--port", 0, "--no-browser", "--host", "0.0.0.0")
    token = started[0][1]
    assert token is not None and len(token) >= 32 and f"?token={token}" in outcome.stdout


def test_vectors_are_refined_first_and_nothing_is_left_beside_them(tmp_path, started):
    np.savez(tmp_path / "v.npz", vectors=vectors_of(), labels=names_of_classes())
    (tmp_path / "texts.txt").write_text("\n".join(f"text {row}" for row in range(len(vectors_of()))))
    outcome = explore("--vectors", tmp_path / "v.npz", "--texts", tmp_path / "texts.txt", "--port", 0, "--no-browser")
    assert outcome.exit_code == 0, outcome.output
    summary = started[0][0].desk.summary
    assert summary["points"] == len(vectors_of()) and summary["kind"] == "texts" and "gain" in summary["columns"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.txt", "v.npz"]


def test_a_run_of_train_is_shown_by_its_test_pictures(tmp_path, pictures, started):
    from entourage.runs.train import TrainRequest, train_run
    from entourage.systems.baseline.settings import BaselineSettings

    settings = BaselineSettings(
        dim=4, image_size=8, encoder_options={"width": 4}, batch_classes=3, batch_per_class=2, epochs=1, workers=1
    )
    train_run(TrainRequest(str(pictures), tmp_path / "run", settings=settings, nmi=False))
    outcome = explore(tmp_path / "run", "--port", 0, "--no-browser")
    assert outcome.exit_code == 0, outcome.output
    preparing = started[0][0]
    assert preparing.error is None, preparing.error
    assert preparing.desk.summary["kind"] == "pictures" and preparing.desk.summary["points"] == 36
    file = next(pictures.rglob("*.png"))  # the run knows its encoder
    (told,) = preparing.desk.queries(file.read_bytes(), file.name, preparing.desk.usual)["queries"]
    assert len(told["after"]["rows"]) == 12 and told["attention"]["rows"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "neither RUN nor --vectors"),
        (["nothing"], "nothing does not exist"),
        (["RUN", "--vectors", "v.npy"], "wanted one of them"),
        (["RUN", "--labels", "l.npy"], "--labels goes with --vectors"),
        (["RUN", "--encoder", "nothing:here", "--no-browser"], "cannot be imported"),
        (["--vectors", "nothing.npy", "--no-browser"], "nothing.npy"),
        (["RUN", "--export", "page.pdf"], "wanted the name of a .html"),
        (["RUN", "--host", "nowhere.invalid", "--port", "0"], "cannot be bound"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(pictured, arguments, said):
    outcome = explore(*(pictured if each == "RUN" else each for each in arguments))
    assert outcome.exit_code == 2 and said in outcome.stderr and outcome.stderr.count("\n") <= 2


def test_without_the_extra_the_pip_line_is_said(pictured, monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda library: library != "uvicorn")
    outcome = explore(pictured)
    assert outcome.exit_code == 2 and "pip install 'entourage[explorer]'" in outcome.stderr


def test_a_page_is_written_and_nothing_that_is_not_one_is_replaced(pictured, tmp_path, monkeypatch):
    file = tmp_path / "page.html"
    assert explore(pictured, "--export", file).exit_code == 0 and file.stat().st_size > 50_000
    assert "exists already" in explore(pictured, "--export", file).stderr
    assert explore(pictured, "--export", file, "--overwrite").exit_code == 0
    (tmp_path / "mine.html").write_text("my notes")
    assert explore(pictured, "--export", tmp_path / "mine.html", "--overwrite").exit_code == 2
    monkeypatch.setattr("entourage.explorer.export.MOST_POINTS", 10)
    assert "wanted 10 at most" in explore(pictured, "--export", tmp_path / "other.html").stderr
