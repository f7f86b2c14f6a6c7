"""The service as a command: with a model, without torch, and where the disk or a library is missing."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from entourage.cli import app
from entourage.refiner import ContextRefiner
from entourage.refiner.gallery import Gallery
from entourage.runtime import extras
from entourage.serve import start as starting
from entourage.serve.start import ServeRequest, serve


@pytest.fixture
def served(monkeypatch):
    """What would be served, in the order of calls, instead of serving it."""
    calls = []
    monkeypatch.setattr(starting, "_run", lambda gallery, token, bound: calls.append((gallery.recipe, token)))
    return calls


def test_a_gallery_is_made_with_a_model_and_opened_with_the_same(tmp_path, vectors, served):
    refiner = ContextRefiner(5, 2).fit(vectors)
    refiner.save(tmp_path / "model")
    said = []
    for model in (tmp_path / "model", None, tmp_path / "model"):
        serve(ServeRequest(tmp_path / "shop", model, port=0), said.append)
    assert [(recipe.n_neighbors, recipe.n_steps) for recipe, _ in served] == [(5, 2)] * 3
    assert said[0].startswith("Serving 0 items of ") and " at http://127.0.0.1:" in said[0]
    ContextRefiner(4, 2).fit(vectors).save(tmp_path / "other")
    line = ["serve", "--gallery", str(tmp_path / "shop"), "--model", str(tmp_path / "other"), "--port", "0"]
    outcome = CliRunner().invoke(app, line)
    assert outcome.exit_code == 2 and "was made with another refiner" in outcome.stderr
    assert len(served) == 3


def test_the_token_comes_from_the_environment(tmp_path, served, monkeypatch):
    monkeypatch.setenv("ENTOURAGE_TOKEN", " secret ")
    serve(ServeRequest(tmp_path / "shop", host="0.0.0.0", port=0), lambda said: None)
    assert served[0][1] == "secret"


def test_without_the_extra_the_pip_line_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda library: library != "uvicorn")
    outcome = CliRunner().invoke(app, ["serve", "--gallery", str(tmp_path / "g")])
    assert outcome.exit_code == 2 and "pip install 'entourage[serve]'" in outcome.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_507_and_changes_nothing(client, gallery, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        refused = client.delete("/items/3")
    assert refused.status_code == 507 and "No space left" in refused.json()["detail"]
    assert gallery.version == 1 and client.delete("/items/3").status_code == 200


@pytest.mark.filterwarnings("ignore:the change was made:entourage.errors.EntourageWarning")
def test_a_disk_without_room_for_a_snapshot_is_no_answer_to_a_change(client, gallery, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    gallery._seconds = 1e9  # a snapshot is due
    with monkeypatch.context() as patched:
        patched.setattr("entourage.refiner.gallery.snapshots._write", full)
        assert client.delete("/items/3").status_code == client.delete("/items/4").status_code == 200
    assert gallery.version == 3


def test_serving_needs_no_torch(tmp_path):
    code = (
        "from tests.label_free import LEARNING, Absent\n"
        "import sys; sys.meta_path.insert(0, Absent(LEARNING))\n"
        "import numpy as np\n"
        "from entourage import Gallery\n"
        "from entourage.serve import make_app\n"
        f"gallery = Gallery({str(tmp_path / 'g')!r})\n"
        "X = np.random.default_rng(0).normal(size=(60, 8))\n"
        "gallery.add(X); gallery.remove([3]); gallery.rerank(X[0], ids=[4, 5])\n"
        "make_app(gallery); print(gallery.search(X[:1], 3).ids.shape)"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert run.stdout.strip() == "(1, 3)", run.stderr


def test_an_unknown_page_is_a_404_and_another_method_a_405(client):
    assert client.get("/no such page").status_code == 404
    assert client.get("/search").status_code == 405
    assert httpx.get(f"{client.base_url}/docs").status_code == 404  # it would load scripts from elsewhere


def test_closing_the_service_closes_the_gallery(tmp_path, vectors, start):
    from tests.serve.running import Running

    from entourage.serve import make_app

    gallery = Gallery(tmp_path / "shop")
    running = Running(make_app(gallery))
    running.stop()
    with Gallery(tmp_path / "shop") as again:
        assert len(again) == 0
