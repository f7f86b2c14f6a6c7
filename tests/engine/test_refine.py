"""Refining by partition gives what one process gives, however the vectors are cut; here without a cluster."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from tests.engine.folders import fill, read, some
from tests.refiner.samples import clusters

from entourage import ContextRefiner
from entourage.engine.cluster import InProcess
from entourage.engine.parts import Parts
from entourage.engine.refine import Job, refine_by_tasks
from entourage.errors import FileError, InputError, StoreError
from entourage.runs.streamed.refine import StreamedRequest, refine_streamed

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in ("edges", "partitions", "steps"):
        monkeypatch.setattr(f"entourage.engine.{module}._ROWS", 50)


def by_tasks(request, partitions=7, cluster=None):
    return refine_by_tasks(InProcess() if cluster is None else cluster, Job.of(request, partitions))


def refined(folder, vectors, *, partitions=7, n_files=3, **options):
    request = StreamedRequest(str(fill(folder / "x", vectors, n_files)), folder / "y", **options)
    result = by_tasks(request, partitions)
    names, found = read(folder / "y")
    assert names == read(folder / "x")[0]  # nothing lost, nothing twice, in the same order
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith("model")) == ["x", "y"]
    return found, result


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"neighbors": 5},
        {"neighbors": 30},
        {"steps": 2},
        {"steps": 0},
        {"partitions": 1},
        {"partitions": 20, "n_files": 1},
        {"n_files": 11},
    ],
    ids=str,
)
def test_it_is_what_one_process_gives(tmp_path, options):
    found, result = refined(tmp_path, some(), **options)
    wanted = ContextRefiner(options.get("neighbors")).fit_transform(some(), steps=options.get("steps"))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert result.protocol["distinct_items"] == 480 - 29 - 1 - 19 and ", exact," in result.protocol["neighbors"]


def test_a_set_without_copies_is_what_one_process_gives(tmp_path):
    found, result = refined(tmp_path, some(copies=False))
    np.testing.assert_allclose(found, ContextRefiner().fit_transform(some(copies=False)), atol=1e-5)
    assert result.protocol["distinct_items"] == 480


@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_a_few_vectors_are_what_one_process_gives(tmp_path, count):
    vectors = some(copies=False)[:count]
    found, _ = refined(tmp_path, vectors, n_files=1, partitions=3)
    np.testing.assert_allclose(found, ContextRefiner().fit_transform(vectors), atol=1e-5)


def test_nothing_but_copies_stays_as_it_is(tmp_path):
    vectors = np.repeat(some()[:1], 40, axis=0)
    found, _ = refined(tmp_path, vectors)
    np.testing.assert_allclose(found, ContextRefiner().fit_transform(vectors), atol=1e-5)


def test_half_precision_is_what_one_process_gives_from_the_same_folder(tmp_path):
    found, _ = refined(tmp_path, some(dtype=np.float16))
    refine_streamed(StreamedRequest(str(tmp_path / "x"), tmp_path / "alone"))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, read(tmp_path / "alone")[1], atol=1e-3)  # of which a half has three digits
    assert (found == read(tmp_path / "alone")[1]).mean() > 0.99  # the last digit may be rounded otherwise


def test_a_fitted_model_refines_as_one_process(tmp_path, short_rehearsals):
    vectors, labels = clusters(1, n_classes=12, per_class=10)
    refiner = ContextRefiner().fit(vectors, labels)
    refiner.save(tmp_path / "model")
    found, result = refined(tmp_path, some(), model=tmp_path / "model")
    np.testing.assert_allclose(found, refiner.transform(some(), context=some()), atol=1e-5)
    refine_streamed(StreamedRequest(str(tmp_path / "x"), tmp_path / "y2", model=tmp_path / "model"))
    np.testing.assert_allclose(found, read(tmp_path / "y2")[1], atol=1e-5)
    assert result.protocol["model"] == str(tmp_path / "model")


def test_what_is_told_is_what_one_process_tells(tmp_path):
    _, result = refined(tmp_path, some())
    alone = refine_streamed(StreamedRequest(str(tmp_path / "x"), tmp_path / "alone"))
    assert result.metrics == pytest.approx(alone.metrics, abs=1e-5)
    assert {key: value for key, value in alone.protocol.items() if result.protocol[key] != value}.keys() == {"context"}
    assert result.protocol["engine"] == "ray: 3 shards, 7 partitions, 1 workers"


# ---- some partitions alone ---------------------------------------------------------------------------------------


def lists_found(folder, vectors, searched, monkeypatch):
    """The lists of all items as rows, and the protocol."""
    from entourage.engine import copies
    from entourage.engine.parts import Partitions

    kept = {}

    def watch(cluster, partitions: Partitions, *given):
        for number in partitions.numbers:
            rows = partitions.kept("rows", number)
            found = partitions.kept("found_all", number)
            others = partitions.at("rows", found.ravel()).reshape(found.shape)
            kept.update(zip(rows.tolist(), others.tolist(), strict=True))
        return copies.graph_of(cluster, partitions, *given)

    monkeypatch.setattr("entourage.engine.refine.graph_of", watch)
    _, result = refined(folder, vectors, partitions=12, search=searched)
    return np.array([kept[row] for row in range(len(vectors))]), result.protocol["neighbors"]


@pytest.mark.parametrize("searched", ["1", "3", "12"])
def test_the_recall_that_is_told_is_the_recall(tmp_path, monkeypatch, searched):
    from entourage import search

    vectors = some(1200, copies=False)
    found, told = lists_found(tmp_path, vectors, searched, monkeypatch)
    wanted = search(vectors, k=found.shape[1]).rows
    recall = (found[:, :, None] == wanted[:, None, :]).any(axis=2).mean()
    if searched == "12":
        assert "exact" in told and recall == 1
    else:
        assert float(told.split("recall ")[1].split()[0]) == pytest.approx(recall, abs=0.05) and recall < 0.99


def test_as_few_partitions_are_searched_as_reach_the_recall(tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.engine.refine.EXACT_UNTIL", 10)
    _, result = refined(tmp_path, some(1200, copies=False), partitions=12)
    told = result.protocol["neighbors"]
    assert "nearest of 12 partitions" in told and 0.95 <= float(told.split("recall ")[1].split()[0]) < 1


# ---- interrupted -------------------------------------------------------------------------------------------------


class Stopped(BaseException):
    """As a kill of the process that hands out tasks."""


class StopsAt(InProcess):
    """Stops at a task, by its number among all. What goes to a task, and comes back, is sent as to another machine."""

    def __init__(self, moment=None):
        self.moment, self.tasks, self.told = moment, [], []

    def each(self, work, numbers, *given):
        for number in numbers:
            self.tasks.append(work.__name__)
            if len(self.tasks) == self.moment:
                raise Stopped
            there, *sent = pickle.loads(pickle.dumps((work, number, *given)))
            back = pickle.dumps(there(*sent))
            self.told.append(len(back))
            yield number, pickle.loads(back)


def test_interrupted_at_any_task_it_is_resumed_and_ends_the_same(tmp_path):
    source = fill(tmp_path / "x", some(240))
    whole, watched = StreamedRequest(str(source), tmp_path / "whole"), StopsAt()
    by_tasks(whole, 4, watched)
    assert len(set(watched.tasks)) >= 14
    for moment in np.linspace(1, len(watched.tasks), 10).astype(int).tolist():
        out = tmp_path / f"y{moment}"
        with pytest.raises(Stopped):
            by_tasks(StreamedRequest(str(source), out), 4, StopsAt(moment))
        assert not out.exists()
        again = StopsAt()
        by_tasks(StreamedRequest(str(source), out, resume=True), 4, again)
        assert [*map(np.ndarray.tolist, read(out)[1])] == [*map(np.ndarray.tolist, read(tmp_path / "whole")[1])]
        assert read(out)[0] == read(source)[0]
    assert not list(tmp_path.glob("*.refining"))


def test_a_task_that_is_done_twice_changes_nothing(tmp_path):
    class Twice(InProcess):
        """As Ray may, where a machine is lost that goes on by itself."""

        def each(self, work, numbers, *given):
            for number in numbers:
                first = work(number, *given)
                for done in given[0].folder.glob(f"*_{number}.json"):
                    done.unlink()
                yield number, first
                work(number, *given)

    source = fill(tmp_path / "x", some(240))
    by_tasks(StreamedRequest(str(source), tmp_path / "y"), 4)
    by_tasks(StreamedRequest(str(source), tmp_path / "twice"), 4, Twice())
    np.testing.assert_array_equal(read(tmp_path / "twice")[1], read(tmp_path / "y")[1])


def test_what_a_task_says_it_has_done_is_on_the_disk(tmp_path, monkeypatch):
    on_disk, once = {}, Parts.once

    def to_disk(path):
        on_disk[path.stat().st_ino] = path.is_dir() or path.read_bytes()

    def checked(parts, stage, number, work):
        told = once(parts, stage, number, work)
        for path in parts.folder.iterdir():
            assert on_disk.get(path.stat().st_ino) == path.read_bytes(), f"{path.name} when {stage} is done"
        return told

    for module in ("parts", "steps"):
        monkeypatch.setattr(f"entourage.engine.{module}.to_disk", to_disk)
    monkeypatch.setattr(Parts, "once", checked)
    by_tasks(StreamedRequest(str(fill(tmp_path / "x", some(240))), tmp_path / "y"), 4)
    assert len(on_disk) > 50


class Watched(InProcess):
    """Watches the memory of whoever hands out tasks: what is taken, and what of it is kept, while none of them runs."""

    def __init__(self):
        self.most = self.held = self._before = 0

    def each(self, work, numbers, *given):
        for number in numbers:
            self.look()
            back = pickle.dumps(work(number, *given))
            self.begin()
            yield number, pickle.loads(back)

    def begin(self):
        tracemalloc.reset_peak()
        self._before = tracemalloc.get_traced_memory()[0]

    def look(self):
        now, most = tracemalloc.get_traced_memory()
        self.most = max(self.most, self.held + most - self._before)
        self.held += now - self._before


def taken_by_the_driver(folder, count: int, partitions: int) -> int:
    """The most bytes that it had at any moment."""
    folder.mkdir()
    request = StreamedRequest(str(fill(folder / "x", some(count))), folder / "y")
    watched = Watched()
    tracemalloc.start()
    try:
        watched.begin()
        by_tasks(request, partitions, watched)
        watched.look()
    finally:
        tracemalloc.stop()
    return watched.most


def test_memory_of_the_driver_does_not_grow_with_the_data(tmp_path):
    by_tasks(StreamedRequest(str(fill(tmp_path / "x", some(240))), tmp_path / "y"), 4)  # whatever is loaded once
    few, many = (taken_by_the_driver(tmp_path / f"{count}", count, 4) for count in (480, 1440))
    assert many - few < (1440 - 480) * 32, (few, many)  # a quarter of the vectors, or four numbers an item


def test_what_comes_back_does_not_grow_with_the_data(tmp_path):
    told = []
    for count in (480, 4800):
        watched = StopsAt()
        by_tasks(StreamedRequest(str(fill(tmp_path / f"x{count}", some(count))), tmp_path / f"y{count}"), 4, watched)
        told.append(max(watched.told))
    assert told[1] <= 1.1 * told[0] < 5000  # bytes


# ---- refused -----------------------------------------------------------------------------------------------------


def test_work_of_other_settings_is_never_mixed_in(tmp_path):
    source = fill(tmp_path / "x", some(240))
    request = StreamedRequest(str(source), tmp_path / "y")
    with pytest.raises(Stopped):
        by_tasks(request, 4, StopsAt(20))
    with pytest.raises(FileError, match="holds an interrupted refinement; resume it"):
        by_tasks(request, 4)
    with pytest.raises(FileError, match="of another partitions: 4, not 5"):
        by_tasks(StreamedRequest(str(source), tmp_path / "y", resume=True), 5)
    by_tasks(StreamedRequest(str(source), tmp_path / "y", overwrite=True), 5)


def test_a_model_that_was_fitted_again_is_never_mixed_in(tmp_path, short_rehearsals):
    request = StreamedRequest(str(fill(tmp_path / "x", some(240))), tmp_path / "y", model=tmp_path / "model")
    vectors, labels = clusters(1, n_classes=12, per_class=10)
    refiner = ContextRefiner().fit(vectors, labels)
    refiner.save(request.model)
    with pytest.raises(Stopped):
        by_tasks(request, 4, StopsAt(20))
    refiner.network_ = replace(refiner.network_, sharpness=2 * refiner.network_.sharpness)
    refiner.save(request.model, overwrite=True)
    with pytest.raises(FileError, match="holds the refinement of another fit of the model"):
        by_tasks(replace(request, resume=True), 4)


def test_an_output_that_is_there_stays(tmp_path):
    request = StreamedRequest(str(fill(tmp_path / "x", some(240))), tmp_path / "y")
    by_tasks(request)
    with pytest.raises(StoreError, match="y exists already; allow overwriting"):
        by_tasks(request)
    by_tasks(StreamedRequest(request.vectors, request.out, overwrite=True))


def test_vectors_that_cannot_be_refined_are_named_and_leave_nothing(tmp_path):
    vectors = some(240)
    vectors[200] = 0
    request = StreamedRequest(str(fill(tmp_path / "x", vectors)), tmp_path / "y")
    with pytest.raises(InputError, match=r"002\.parquet: row \d+ of the vectors is all zeros"):
        by_tasks(request)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"out": None}, "there is no --out"),
        ({"vectors": "x/000.parquet"}, "is no folder; wanted a folder of .parquet files"),
        ({"search": "HNSW16"}, "--search is HNSW16 with --engine ray; wanted exact, or how many partitions"),
        ({"search": "0"}, "--search is 0"),
        ({"column": "name"}, "holds no vectors in 'name'"),
        ({"column": "other"}, "has no 'other'"),
        ({"steps": 9}, "steps is 9; wanted 0"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_in_a_sentence(tmp_path, options, sentence):
    fill(tmp_path / "x", some(240))
    options = {"vectors": "x", "out": tmp_path / "y"} | options
    request = StreamedRequest(**options | {"vectors": str(tmp_path / options["vectors"])})
    with pytest.raises((InputError, StoreError), match=sentence):
        by_tasks(request)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
