"""A refiner as ONNX gives what the package gives, in Python and, where node is there, in JavaScript."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from entourage import ContextRefiner, rerank
from entourage.cli import app
from entourage.errors import InputError, MissingExtra
from entourage.refiner.rerank import scores_of
from entourage.refiner.universal import universal_network

EXAMPLE = Path(__file__).parent.parent.parent / "docs" / "rerank.mjs"


def found(n, dim=12, seed=0):
    """A query and n candidates, with copies among them."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, dim))
    candidates = (centres[rng.integers(5, size=n)] + 0.8 * rng.normal(size=(n, dim))).astype(np.float32)
    if n >= 20:
        candidates[3], candidates[11], candidates[15] = 2 * candidates[7], candidates[7], candidates[4]
    return (centres[0] + 0.8 * rng.normal(size=dim)).astype(np.float32), candidates


def expected_scores(query, candidates, refiner=None):
    done = rerank(query, candidates, refiner=refiner)
    scores = np.empty(len(candidates), np.float32)
    scores[done.rows] = done.scores
    return scores


@pytest.fixture(scope="module")
def session():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from entourage.integrations.onnx import onnx_model

    def opened(refiner=None, part="refine"):
        model = onnx_model(refiner, part).SerializeToString()
        return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])

    return opened


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 60, 150])
def test_refine_gives_the_scores_of_rerank_with_candidates_masked_or_not(session, n):
    query, candidates = found(n, seed=n)
    universal = session()
    refined, context, scores = universal.run(
        None, {"vector": 3 * query, "context": candidates, "mask": np.ones(n, bool)}
    )
    assert np.allclose(scores, expected_scores(query, candidates), atol=1e-4)
    assert np.allclose(np.linalg.norm(context, axis=1), 1, atol=1e-5)
    padded = np.concatenate([candidates, np.full((5, 12), 7, np.float32)])
    mask = np.arange(n + 5) < n
    order = np.random.default_rng(n).permutation(5) + n
    padded[order] += 1
    again = universal.run(None, {"vector": query, "context": padded, "mask": mask})
    assert np.allclose(again[0], refined, atol=1e-6) and np.allclose(again[2][:n], scores, atol=1e-6)
    assert (again[2][n:] == -2).all() and not again[1][n:].any()


def test_a_query_without_candidates_stays_as_it_is(session):
    query, candidates = found(5)
    refined, _, scores = session().run(None, {"vector": query, "context": candidates, "mask": np.zeros(5, bool)})
    assert np.allclose(refined, query / np.linalg.norm(query), atol=1e-6) and (scores == -2).all()


def test_a_fitted_refiner_takes_its_base_map_along(session):
    rng = np.random.default_rng(0)
    refiner = ContextRefiner().fit(rng.normal(size=(40, 12)))
    base_map = (np.eye(12) + 0.3 * rng.normal(size=(12, 12))).astype(np.float32)
    refiner.network_ = replace(universal_network(), base_map=base_map)
    query, candidates = found(40)
    given = {"vector": query, "context": candidates, "mask": np.ones(40, bool)}
    assert np.allclose(session(refiner).run(None, given)[2], expected_scores(query, candidates, refiner), atol=1e-4)


def test_the_scorer_alone_gives_its_probabilities(session):
    relations = np.random.default_rng(0).normal(size=(50, 22)).astype(np.float32)
    (given,) = session(part="scorer").run(None, {"relations": relations})
    assert np.allclose(given, universal_network().scorer.probabilities(relations), atol=1e-5)


def test_what_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    from entourage.integrations.onnx import export_onnx, onnx_model

    with pytest.raises(InputError, match=r"ends in \.onnx"):
        export_onnx(None, tmp_path / "model.bin")
    with pytest.raises(InputError, match="the part is 'everything'"):
        onnx_model(part="everything")
    with pytest.raises(InputError, match="the refiner is a str"):
        onnx_model("model")
    monkeypatch.setattr("entourage.runtime.extras.is_installed", lambda name: name != "onnx")
    with pytest.raises(MissingExtra, match=r"entourage\[onnx\]"):
        onnx_model()


def test_the_command_writes_a_file_once(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    file = tmp_path / "universal.onnx"
    outcome = CliRunner().invoke(app, ["export", "--out", str(file), "--json"])
    assert outcome.exit_code == 0 and json.loads(outcome.stdout)["bytes"] == file.stat().st_size < 100_000
    assert [each.name for each in runtime.InferenceSession(file).get_inputs()] == ["vector", "context", "mask"]
    again = CliRunner().invoke(app, ["export", "--out", str(file)])
    assert again.exit_code == 2 and "--overwrite" in again.stderr
    missing = CliRunner().invoke(app, ["export", "nowhere", "--out", str(tmp_path / "b.onnx")])
    assert missing.exit_code == 2 and "nowhere" in missing.stderr


def test_javascript_gets_the_same_order(tmp_path):
    pytest.importorskip("onnx")
    from entourage.integrations.onnx import export_onnx

    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not there")
    places = [Path(place) for place in os.environ.get("NODE_PATH", "").split(os.pathsep) if place]
    package = next((place / "onnxruntime-node" for place in places if (place / "onnxruntime-node").is_dir()), None)
    if package is None:
        pytest.skip("onnxruntime-node is not in a folder of NODE_PATH: npm install onnxruntime-node")
    (tmp_path / "node_modules").symlink_to(package.parent)
    shutil.copy(EXAMPLE, tmp_path)
    query, candidates = found(60)
    export_onnx(None, tmp_path / "refine.onnx")
    (tmp_path / "found.json").write_text(json.dumps({"query": query.tolist(), "candidates": candidates.tolist()}))
    command = [node, EXAMPLE.name, "refine.onnx", "found.json"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert told.returncode == 0, told.stderr
    given, scores = json.loads(told.stdout), expected_scores(query, candidates)
    assert np.allclose([each["score"] for each in given], np.sort(scores)[::-1], atol=1e-4)
    assert given[0]["row"] == rerank(query, candidates).rows[0]


def test_the_graph_is_that_of_the_package(session):
    """Not only in order: raw scores of a network that leaves vectors as they are are cosines."""
    rng = np.random.default_rng(0)
    refiner = ContextRefiner().fit(rng.normal(size=(40, 12)))
    refiner.network_ = replace(refiner.network_, blend=1.0)
    query, candidates = found(9)
    unit = np.concatenate([query[None], candidates])
    unit = (unit / np.linalg.norm(unit, axis=1, keepdims=True)).astype(np.float32)
    given = session(refiner).run(None, {"vector": query, "context": candidates, "mask": np.ones(9, bool)})
    assert np.allclose(given[2], scores_of(refiner.network_, unit), atol=1e-6)
