"""Refining in stages: the same vectors as in memory, from files and stores, however often it is interrupted."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from tests.refiner.samples import clusters
from tests.stores.engines import ENGINES, NAME

from entourage import ContextRefiner
from entourage.errors import FileError, InputError, StoreError
from entourage.refiner import scorer
from entourage.refiner.universal import universal_network
from entourage.runs.streamed.refine import StreamedRequest, is_streamed, refine_streamed
from entourage.runs.streamed.work import Work
from entourage.stores.mapped import MappedVectors

pytestmark = pytest.mark.usefixtures("one_thread")


def some(dtype=np.float32, copies=True) -> np.ndarray:
    vectors, _ = clusters(0, n_classes=20, per_class=12)
    if copies:
        vectors[100:120] = vectors[100]
        vectors[7] = vectors[9]
    return vectors.astype(dtype)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module, name in {"steps": "_ROWS", "sources": "_ROWS", "graph": "_ROWS", "refine": "_ROWS"}.items():
        monkeypatch.setattr(f"entourage.runs.streamed.{module}.{name}", 50)
    monkeypatch.setattr("entourage.neighbors.approximate._BLOCK", 10)


def refined(folder, vectors, **options):
    np.save(folder / "x.npy", vectors)
    result = refine_streamed(StreamedRequest(str(folder / "x.npy"), folder / "y.npy", **options))
    return np.load(folder / "y.npy"), result


@pytest.mark.parametrize("options", [{}, {"neighbors": 5}, {"neighbors": 30}, {"steps": 2}, {"steps": 0}])
def test_it_is_what_refining_in_memory_gives(tmp_path, options):
    found, result = refined(tmp_path, some(), **options)
    steps = options.pop("steps", None)
    wanted = ContextRefiner(options.get("neighbors")).fit_transform(some(), steps=steps)
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["x.npy", "y.npy"]
    assert result.protocol["distinct_items"] == 220 and "exact" in result.protocol["neighbors"]


@pytest.mark.parametrize("few", [0, 4096])
def test_lists_that_end_in_copies_are_searched_again_as_in_memory(tmp_path, monkeypatch, few):
    from entourage.runs.streamed.graph import Search

    monkeypatch.setattr("entourage.runs.streamed.graph._FEW", few)
    asked, of_some = [], Search.of_some
    monkeypatch.setattr(Search, "of_some", lambda self, *asks: (asked.append(asks), of_some(self, *asks))[1])
    vectors = some(copies=False)
    vectors[40:60] = vectors[40] + 1e-3 * np.random.default_rng(0).normal(size=(20, vectors.shape[1]))
    found, _ = refined(tmp_path, vectors)
    np.testing.assert_allclose(found, ContextRefiner().fit_transform(vectors), atol=2e-6)
    assert asked


def test_a_fitted_model_refines_as_in_memory(tmp_path, short_rehearsals):
    vectors, labels = clusters(1, n_classes=12, per_class=10)
    refiner = ContextRefiner().fit(vectors, labels)
    refiner.save(tmp_path / "model")
    found, result = refined(tmp_path, some(), model=tmp_path / "model")
    np.testing.assert_allclose(found, refiner.transform(some(), context=some()), atol=1e-5)
    assert result.protocol["model"] == str(tmp_path / "model")


def test_half_precision_stays_and_costs_little(tmp_path):
    found, result = refined(tmp_path, some(np.float16))
    assert found.dtype == np.float16
    cosines = (found.astype(np.float32) * ContextRefiner().fit_transform(some())).sum(axis=1)
    assert np.median(cosines) > 0.9999 and np.mean(cosines > 0.99) > 0.95
    assert result.metrics["mean_cosine_to_input"] < 0.99


def test_an_approximate_search_tells_its_recall(tmp_path):
    pytest.importorskip("faiss")
    found, result = refined(tmp_path, some(copies=False), search="HNSW16,SQ8")
    assert "approximate (HNSW16,SQ8, efSearch 32), recall" in result.protocol["neighbors"]
    assert ((found * ContextRefiner().fit_transform(some(copies=False))).sum(axis=1) > 0.99).mean() > 0.95


def test_edges_are_weighed_in_parts_as_at_once(tmp_path, monkeypatch):
    wanted, _ = refined(tmp_path, some())
    monkeypatch.setattr(scorer, "_NODES_AT_ONCE", 60)
    (tmp_path / "y.npy").unlink()
    np.testing.assert_allclose(refined(tmp_path, some())[0], wanted, atol=1e-6)


class Stopped(BaseException):
    """As KeyboardInterrupt."""


class StopAt:
    """A progress that stops the work at a report."""

    def __init__(self, number=None):
        self.number, self.reports = number, []

    def __call__(self, title, done, total):
        self.reports.append(title)
        if len(self.reports) == self.number:
            raise Stopped


@pytest.mark.parametrize("search", ["exact", "HNSW16"])
def test_interrupted_anywhere_it_is_resumed_and_ends_the_same(tmp_path, search):
    if search != "exact":
        pytest.importorskip("faiss")
    np.save(tmp_path / "x.npy", some())
    whole, watched = StreamedRequest(str(tmp_path / "x.npy"), tmp_path / "whole.npy", search=search), StopAt()
    refine_streamed(whole, progress=watched)
    moments = sorted({1, *np.linspace(2, len(watched.reports), 9).astype(int).tolist()})
    assert len(set(watched.reports)) >= 3
    for moment in moments:
        out, again = tmp_path / f"{moment}.npy", {"search": search}
        with pytest.raises(Stopped):
            refine_streamed(StreamedRequest(whole.vectors, out, **again), progress=StopAt(moment))
        assert not out.exists()
        kept = (tmp_path / f"{moment}.npy.refining").exists()
        refine_streamed(StreamedRequest(whole.vectors, out, resume=kept, **again))
        np.testing.assert_array_equal(np.load(out), np.load(tmp_path / "whole.npy"), err_msg=f"stopped at {moment}")
    assert not list(tmp_path.glob("*.refining"))


def test_what_was_done_is_not_done_again(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", some())
    request = StreamedRequest(str(tmp_path / "x.npy"), tmp_path / "y.npy")
    watched = StopAt()
    refine_streamed(request, progress=watched)
    (tmp_path / "y.npy").unlink()
    with pytest.raises(Stopped):
        refine_streamed(request, progress=StopAt(1 + watched.reports.index("blending")))
    monkeypatch.setattr("entourage.runs.streamed.graph.search", None)  # whoever searched again would fail
    monkeypatch.setattr("entourage.runs.streamed.steps.Refining._step", None)
    refine_streamed(StreamedRequest(request.vectors, request.out, resume=True))
    assert (tmp_path / "y.npy").exists()


def test_work_on_another_input_or_with_other_settings_is_never_mixed_in(tmp_path):
    np.save(tmp_path / "x.npy", some())
    request = StreamedRequest(str(tmp_path / "x.npy"), tmp_path / "y.npy")
    with pytest.raises(Stopped):
        refine_streamed(request, progress=StopAt(3))
    with pytest.raises(FileError, match="holds an interrupted refinement; resume it"):
        refine_streamed(request)
    with pytest.raises(FileError, match="of another neighbors: 12, not 9"):
        refine_streamed(StreamedRequest(request.vectors, request.out, neighbors=9, resume=True))
    np.save(tmp_path / "x.npy", some(copies=False)[:200])
    with pytest.raises(FileError, match="of another version"):
        refine_streamed(StreamedRequest(request.vectors, request.out, resume=True))
    refine_streamed(StreamedRequest(request.vectors, request.out, overwrite=True))
    assert np.load(request.out).shape == (200, 32)


def test_a_model_that_was_fitted_again_is_never_mixed_in(tmp_path, short_rehearsals):
    np.save(tmp_path / "x.npy", some())
    request = StreamedRequest(str(tmp_path / "x.npy"), tmp_path / "y.npy", model=tmp_path / "model")
    vectors, labels = clusters(1, n_classes=12, per_class=10)
    refiner = ContextRefiner().fit(vectors, labels)
    refiner.save(request.model)
    with pytest.raises(Stopped):
        refine_streamed(request, progress=StopAt(3))
    refiner.network_ = replace(refiner.network_, sharpness=2 * refiner.network_.sharpness)
    refiner.save(request.model, overwrite=True)
    with pytest.raises(FileError, match="holds the refinement of another fit of the model"):
        refine_streamed(replace(request, resume=True))
    refine_streamed(replace(request, overwrite=True))


class Disk:
    """What would be there after a power cut: files as they were when they were last brought to the disk."""

    def __init__(self, monkeypatch):
        self._kept, self.noted = {}, []
        fsync, flush, note = os.fsync, np.memmap.flush, Work.note

        def synced(descriptor):
            fsync(descriptor)
            self._keep(f"/proc/self/fd/{descriptor}")

        def flushed(array):
            flush(array)
            self._keep(array.filename)

        def noted(work, name, value, *written):
            note(work, name, value, *written)
            self._check(work.folder, name)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(np.memmap, "flush", flushed)
        monkeypatch.setattr(Work, "note", noted)

    def _keep(self, path):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                self._kept[os.stat(path).st_ino] = file.read()

    def _check(self, folder, name):
        for path in (*folder.glob("*.npy"), *folder.glob("*.faiss"), *folder.glob("*.json")):
            if not path.name.startswith("vectors_"):  # copied again by whoever resumes
                assert self._kept.get(path.stat().st_ino) == path.read_bytes(), f"{path.name} when {name} is noted"
        self.noted.append(name)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="what a descriptor belongs to is told by /proc")
@pytest.mark.parametrize("search", ["exact", "HNSW16"])
def test_what_is_noted_as_done_is_on_the_disk(tmp_path, monkeypatch, short_rehearsals, search):
    if search != "exact":
        pytest.importorskip("faiss")
    vectors, labels = clusters(1, n_classes=12, per_class=10)
    ContextRefiner().fit(vectors, labels).save(tmp_path / "model")
    disk = Disk(monkeypatch)
    refined(tmp_path, some(), search=search, model=tmp_path / "model")
    assert {"weighed", "steps", "method all"} <= set(disk.noted)
    assert "searched all" in disk.noted or search == "exact"
    url = ENGINES["parquet"].fill(tmp_path, KEYS, few())
    refine_streamed(StreamedRequest(url, search=search))
    assert {"read", "refined", "written"} <= set(disk.noted)


def test_a_base_map_is_on_the_disk_when_it_is_noted(tmp_path, monkeypatch):
    from entourage.runs.streamed.refine import _through_base_map

    network = replace(universal_network(), base_map=np.eye(32, dtype=np.float32))
    disk = Disk(monkeypatch)
    with Work(tmp_path / "work", {}, resume=False, overwrite=False) as work:
        mapped = _through_base_map(MappedVectors(some()), network, work)
        np.testing.assert_allclose(mapped[:], MappedVectors(some())[:], atol=1e-6)
    assert disk.noted == ["mapped"]


def test_a_kill_while_it_notes_how_far_it_is_leaves_what_was_noted(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", some())
    request, whole = StreamedRequest(str(tmp_path / "x.npy"), tmp_path / "y.npy"), tmp_path / "whole.npy"
    refine_streamed(StreamedRequest(request.vectors, whole))

    def half_written(path, content):
        path.write_text(json.dumps(content)[:5])
        if "steps" in content:
            raise Stopped
        path.write_text(json.dumps(content))

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("entourage.runs.streamed.work.write_json", half_written)
        refine_streamed(request)
    refine_streamed(StreamedRequest(request.vectors, request.out, resume=True))
    np.testing.assert_array_equal(np.load(request.out), np.load(whole))
    assert not list(tmp_path.glob("*.refining"))


def test_damaged_work_is_refused_in_a_sentence(tmp_path):
    np.save(tmp_path / "x.npy", some())
    request = StreamedRequest(str(tmp_path / "x.npy"), tmp_path / "y.npy")
    with pytest.raises(Stopped):
        refine_streamed(request, progress=StopAt(3))
    work = tmp_path / "y.npy.refining"
    for name, sentence in {"plan.json": "did not write", "done.json": r"cannot be read .*start again"}.items():
        text = (work / name).read_text()
        (work / name).write_text(text[: len(text) // 2])
        with pytest.raises(FileError, match=sentence):
            refine_streamed(StreamedRequest(request.vectors, request.out, resume=True))
        (work / name).write_text(text)
    refine_streamed(StreamedRequest(request.vectors, request.out, resume=True))


def test_resuming_nothing_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", some())
    with pytest.raises(FileError, match=r"there is no .*refining to resume from"):
        refine_streamed(StreamedRequest(str(tmp_path / "x.npy"), tmp_path / "y.npy", resume=True))


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        (np.zeros((9, 4), np.float32), "row 0 of the vectors is all zeros"),
        (np.full((9, 4), np.nan, np.float32), "row 0 of the vectors contains NaN"),
        (np.ones(9, np.float32), r"shape \(9,\)"),
    ],
)
def test_vectors_that_cannot_be_refined_leave_nothing_behind(tmp_path, vectors, sentence):
    with pytest.raises(InputError, match=sentence):
        refined(tmp_path, vectors)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


# ---- stores ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where work on what is on a server is kept
    pytest.importorskip(ENGINES[request.param].library, reason=f"{request.param}: its package is not installed")
    return ENGINES[request.param]


KEYS = np.arange(60) * 3 + 1


def few() -> np.ndarray:
    vectors, _ = clusters(0, n_classes=6, per_class=10, noise=0.6)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def assert_refined(found: dict):
    wanted = ContextRefiner().fit_transform(few())
    assert sorted(found) == KEYS.tolist()
    for row, key in enumerate(KEYS.tolist()):
        np.testing.assert_allclose(found[key][0], wanted[row], atol=1e-5)


def test_a_store_is_refined_into_its_twin(engine, tmp_path):
    url = engine.fill(tmp_path, KEYS, few())
    result = refine_streamed(StreamedRequest(url))
    assert_refined(engine.read(tmp_path, f"{NAME}_refined"))
    assert f"{NAME}_refined" in result.written and not list(tmp_path.rglob("*.refining"))
    with pytest.raises(StoreError, match="exists already"):
        refine_streamed(StreamedRequest(url))
    refine_streamed(StreamedRequest(url, overwrite=True))
    assert_refined(engine.read(tmp_path, f"{NAME}_refined"))


def test_a_store_is_resumed_wherever_it_was_interrupted(engine, tmp_path):
    url = engine.fill(tmp_path, KEYS, few())
    for title in ("reading", "refining", "writing"):
        stop = StopAt()
        stop.__class__ = type("StopAtTitle", (StopAt,), {"__call__": _stop_at(title)})
        with pytest.raises(Stopped):
            refine_streamed(StreamedRequest(url, resume=bool(list(tmp_path.rglob("*.refining")))), progress=stop)
        assert engine.read(tmp_path, f"{NAME}_refined") == {}
    refine_streamed(StreamedRequest(url, resume=True))
    assert_refined(engine.read(tmp_path, f"{NAME}_refined"))


def _stop_at(title):
    def call(self, reported, done, total):
        if reported == title:
            raise Stopped

    return call


def test_items_that_are_gone_when_the_twin_is_written_are_told(tmp_path):
    client = pytest.importorskip("qdrant_client").QdrantClient
    url = ENGINES["qdrant"].fill(tmp_path, KEYS, few())
    retrieve = client.retrieve

    def without_one(self, name, ids, **how):
        return [point for point in retrieve(self, name, ids, **how) if point.id != KEYS[5]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "retrieve", without_one)
        result = refine_streamed(StreamedRequest(url))
    assert any("has 59 of the 60 items that were refined" in warning for warning in result.warnings)


def test_vectors_of_another_size_than_the_model_wants_are_refused(engine, tmp_path, short_rehearsals):
    vectors, labels = clusters(1, n_classes=12, per_class=10, dim=16)
    ContextRefiner().fit(vectors, labels).save(tmp_path / "model")
    url = engine.fill(tmp_path, KEYS, few())
    with pytest.raises(InputError, match=r"has 32 dimensions and .*model wants 16"):
        refine_streamed(StreamedRequest(url, model=tmp_path / "model"))
    assert not list(tmp_path.rglob("*.refining")) and engine.read(tmp_path, f"{NAME}_refined") == {}


def test_an_empty_store_is_refused(tmp_path):
    pytest.importorskip("faiss")
    url = ENGINES["faiss"].fill(tmp_path, KEYS[:0], few()[:0])
    with pytest.raises(InputError, match="is empty; at least one item is needed"):
        refine_streamed(StreamedRequest(url))
    assert not list(tmp_path.rglob("*.refining"))


# ---- which way -----------------------------------------------------------------------------------------------------


def test_stores_and_large_files_are_refined_in_stages(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", some())
    path, out = str(tmp_path / "x.npy"), tmp_path / "y.npy"
    assert is_streamed(StreamedRequest("lance://folder/table"), {})
    assert not is_streamed(StreamedRequest(path, out), {}) and is_streamed(StreamedRequest(path, out, resume=True), {})
    monkeypatch.setattr("entourage.runs.streamed.refine._LARGE", 100)
    assert is_streamed(StreamedRequest(path, out), {"--run": None})
    assert not is_streamed(StreamedRequest(path, out), {"--run": "kept"})


@pytest.mark.parametrize(
    ("request_", "others", "sentence"),
    [
        (StreamedRequest("lance://a/b", out="y.npy"), {}, "--out is y.npy with the store"),
        (StreamedRequest("lance://a/b"), {"--run": "kept"}, "--run is kept with the store"),
        (StreamedRequest("foo://a/b"), {}, "the store is 'foo://a/b'; wanted lance://FOLDER/TABLE"),
        (StreamedRequest("x.npy", column="v"), {}, "--column is v but x.npy is a file"),
        (StreamedRequest("x.parquet", search="exact"), {}, "another format than .npy"),
        (StreamedRequest("x.npy", resume=True), {"--context": "g.npy"}, "--resume is True, but vectors with --context"),
    ],
)
def test_options_that_do_not_go_together_are_refused(request_, others, sentence):
    with pytest.raises(InputError, match=sentence):
        is_streamed(request_, others)


def test_the_document_is_what_json_can_hold(tmp_path):
    _, result = refined(tmp_path, some())
    assert json.loads(json.dumps(result.document()))["out"] == str(tmp_path / "y.npy")
