"""runs.refine: whatever refines stands behind one interface, files are read once and searched no more than needed."""

import json

import numpy as np
import pytest
from tests.runs.samples import COUNT, fitted, halves, items

from entourage.errors import InputError
from entourage.evaluation import evaluate_embeddings
from entourage.neighbors import exact
from entourage.refiner.estimator import ContextRefiner
from entourage.runs import refine_request
from entourage.runs.open import open_run
from entourage.runs.refine import RefineRequest, refine
from entourage.runs.refiners import FittedRefiner, UniversalRefiner, open_refiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def files(tmp_path):
    """Queries and a gallery with ids and labels, a fitted model, and the items of both in one file."""
    queries, gallery = halves()
    for name, each in {"q": queries, "g": gallery, "all": items()}.items():
        np.savez(tmp_path / f"{name}.npz", vectors=each.vectors, ids=each.ids, labels=each.labels)
    fitted(gallery).save(tmp_path / "model")
    return tmp_path


def bare(given: Embeddings) -> Embeddings:
    return Embeddings(given.vectors, given.ids)


def test_the_universal_refiner_is_fit_transform(files):
    result = refine(RefineRequest(files / "all.npz", out=files / "o.npz"))
    wanted = ContextRefiner().fit_transform(bare(items()))
    np.testing.assert_array_equal(result.vectors, wanted)
    with np.load(files / "o.npz") as written:
        np.testing.assert_array_equal(written["vectors"], wanted)
    assert result.protocol["model"] == "universal, no labels" and "estimated_purity" in result.metrics
    assert result.written == {"out": files / "o.npz"} and result.scores == {} and result.warnings == ()


@pytest.mark.parametrize("steps", [None, 0, 2])
@pytest.mark.parametrize("model", [True, False], ids=["fitted", "universal"])
def test_queries_and_gallery_are_what_each_is_by_itself(files, model, steps):
    queries, gallery = halves()
    refiner = fitted(gallery) if model else ContextRefiner().fit(bare(gallery))
    request = RefineRequest(
        files / "q.npz",
        out=files / "o.npz",
        model=files / "model" if model else None,
        context=files / "g.npz",
        context_out=files / "go.npz",
        steps=steps,
    )
    result = refine(request)
    np.testing.assert_allclose(result.vectors, refiner.transform(bare(queries), bare(gallery), steps=steps), atol=1e-6)
    with np.load(files / "go.npz") as written:
        expected = refiner.transform(bare(gallery), bare(gallery), steps=steps)
        np.testing.assert_allclose(written["vectors"], expected, atol=1e-6)
    assert result.protocol["steps"] == (5 if steps is None else steps)


@pytest.mark.parametrize("run", [False, True])
def test_each_file_is_read_once(files, monkeypatch, run):
    read, real = [], refine_request.read_vectors
    monkeypatch.setattr(refine_request, "read_vectors", lambda path, **how: read.append(path.name) or real(path, **how))
    kept = {"run": files / "run"} if run else {}
    refine(RefineRequest(files / "q.npz", out=files / "o.npz", context=files / "g.npz", **kept))
    assert read == ["q.npz", "g.npz"]


def test_a_run_has_the_scores_of_its_result_and_labels_change_nothing(files):
    plain = refine(RefineRequest(files / "all.npz", out=files / "o.npz", model=files / "model"))
    kept = refine(RefineRequest(files / "all.npz", model=files / "model", run=files / "run"))
    np.testing.assert_array_equal(kept.vectors, plain.vectors)
    opened = open_run(files / "run")
    np.testing.assert_array_equal(opened.refined.vectors, kept.vectors)
    after = evaluate_embeddings(items().replace_vectors(kept.vectors), nmi=False).metrics
    assert kept.scores["after"] == pytest.approx(after) and kept.scores["after"] == opened.document["metrics"]
    assert kept.document()["scores"]["before"] == opened.document["metrics_before"]
    assert json.loads(json.dumps(kept.document()))["run"] == str(files / "run")
    assert opened.document["protocol"]["refiner"] == str(files / "model")


@pytest.fixture
def searches(monkeypatch):
    """How many queries were searched among how many items, search by search."""
    seen = []

    def counted(queries, gallery, *rest, search=exact.top_k):
        seen.append((len(queries), len(gallery)))
        return search(queries, gallery, *rest)

    monkeypatch.setattr(exact, "top_k", counted)
    return seen


@pytest.mark.parametrize("model", [None, "model"], ids=["universal", "fitted"])
@pytest.mark.parametrize("steps", [None, 2])
@pytest.mark.parametrize("written", [{}, {"context_out": "go.npz"}, {"run": "run"}], ids=["", "both", "run"])
def test_a_gallery_is_searched_in_itself_once_whatever_is_written(files, searches, model, steps, written):
    options = {name: files / value for name, value in written.items()} | {"steps": steps}
    options |= {"out": files / "o.npz", "model": model and files / model}
    few = items().take(np.arange(9))
    np.savez(files / "few.npz", vectors=few.vectors, ids=few.ids)
    refine(RefineRequest(files / "few.npz", context=files / "g.npz", **options))
    after = [(9, COUNT // 2)] * 2 if "run" in written else []  # a run keeps the nearest items before and after
    assert searches == [(COUNT // 2, COUNT // 2), (9, COUNT // 2), *after]


@pytest.mark.parametrize("options", [{}, {"steps": 2}, {"neighbors": 5}, {"model": "model", "steps": 2}])
def test_a_set_is_searched_in_itself_once(files, searches, options):
    if "model" in options:
        options = options | {"model": files / options["model"]}
    refine(RefineRequest(files / "all.npz", out=files / "o.npz", **options))
    assert searches == [(COUNT, COUNT)]


def test_a_refiner_says_what_a_run_records_of_it():
    done = FittedRefiner(fitted(items()), "mine", steps=2).refine(bare(items()))
    assert done.record.protocol == {
        "items": COUNT,
        "context": "transductive: 8 neighbours among the items, labels unused",
        "steps": 2,
        "refiner": "mine",
    }
    assert done.context_vectors is None and done.model.n_neighbors_ == 8
    assert FittedRefiner(fitted(items())).refine(bare(items()), both=True).context_vectors.shape == done.vectors.shape


def test_the_kind_of_model_decides_what_refines(files):
    assert isinstance(open_refiner(RefineRequest(files / "q.npz")), UniversalRefiner)
    opened = open_refiner(RefineRequest(files / "q.npz", model=files / "model", steps=1))
    assert isinstance(opened, FittedRefiner) and (opened.name, opened.steps) == (str(files / "model"), 1)
    with pytest.raises(InputError, match="--context-by is kmeans without a run of the system intra-batch"):
        open_refiner(RefineRequest(files / "q.npz", context_by="kmeans"))


def test_other_numbers_of_neighbours_leave_the_refiner_as_it_is():
    given = bare(items())
    refiner = fitted(given)
    before = refiner.transform(given, context=given)
    other = refiner.with_neighbors(4)
    assert (refiner.n_neighbors_, other.n_neighbors_) == (8, 4)
    assert other.attention(given, context=given).weights.shape == (5, COUNT, 4)
    np.testing.assert_array_equal(refiner.transform(given, context=given), before)


@pytest.mark.parametrize("model", [None, "model"])
def test_the_protocol_says_how_neighbours_were_found(files, monkeypatch, model):
    pytest.importorskip("faiss")
    monkeypatch.setattr("entourage.neighbors.choice.is_installed", lambda library: library == "faiss")
    request = RefineRequest(files / "all.npz", out=files / "o.npz", model=model and files / model, overwrite=True)
    assert ", exact, ties by id" in refine(request).protocol["neighbors"]
    monkeypatch.setattr("entourage.neighbors.choice._EXACT_PAIRS", 100)
    told = refine(request).protocol["neighbors"]
    assert ", approximate (HNSW32,SQ8" in told and ("recall" in told) == (model is None)
