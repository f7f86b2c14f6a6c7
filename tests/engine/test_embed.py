"""Embedding by tasks gives what one process gives; here without a cluster."""

import pickle
from contextlib import contextmanager

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tests.cli.pictures import CLASSES, PER_CLASS, write_birds
from tests.cli.shop import document, files, run

from entourage.data.preprocessing import Preprocessing
from entourage.encoders import SmallResNet, save_encoder
from entourage.encoders.shards import parts_of
from entourage.engine.cluster import InProcess
from entourage.engine.embed import Pictures, embed_on_ray
from entourage.errors import CorruptImage, FileError

pytestmark = pytest.mark.usefixtures("one_thread")

COUNT = CLASSES * PER_CLASS


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """Pictures and two encoders in the working folder."""
    write_birds(tmp_path / "birds")
    for number in range(2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(number)
            encoder = SmallResNet(dim=5, width=4, in_channels=3, preprocessing=Preprocessing.small(16, 3))
        save_encoder(tmp_path / f"encoder-{number}", encoder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tasks(monkeypatch):
    """Tasks are done in this process; which shards they made."""
    done = []

    class Counting(InProcess):
        def each(self, work, numbers, *given):
            given = pickle.loads(pickle.dumps(given))  # as on their way to a worker
            for number, told in super().each(work, numbers, *given):
                done.append(number)
                yield number, told

    @contextmanager
    def ray_cluster(address, gpus=False):
        yield Counting()

    monkeypatch.setattr("entourage.engine.embed.ray_cluster", ray_cluster)
    return done


def pictures(*models: str) -> Pictures:
    return Pictures.of("birds", "all", models, None, {})


def test_it_is_what_one_process_writes(birds, tasks):
    command = "embed birds --split all --model encoder-0 --model encoder-1 --shard-size 5 --json"
    alone = document(run(f"{command} --out alone.npz"))
    shown = document(run(f"{command} --out there.npz --engine ray"))
    assert shown["protocol"] == alone["protocol"] and tasks == list(range(-(-COUNT // 5)))
    with np.load("alone.npz") as wanted, np.load("there.npz") as found:
        assert sorted(wanted) == sorted(found)
        for name in wanted:
            np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize("engine", ["", "--engine ray"])
def test_a_name_without_an_ending_is_a_folder_that_refine_takes(birds, tasks, engine):
    command = "embed birds --split all --model encoder-0 --shard-size 7 --json"
    document(run(f"{command} --out alone.npz"))
    document(run(f"{command} --out there {engine}"))
    tables = [pq.read_table(file) for file in sorted((birds / "there").glob("*.parquet"))]
    assert [len(table) for table in tables] == [7] * (COUNT // 7) + [COUNT % 7] * bool(COUNT % 7)
    with np.load("alone.npz") as wanted:
        assert [each for table in tables for each in table["id"].to_pylist()] == wanted["ids"].tolist()
        assert [each for table in tables for each in table["label"].to_pylist()] == wanted["labels"].tolist()
        found = np.concatenate([np.stack(table["vector"].to_numpy(zero_copy_only=False)) for table in tables])
        np.testing.assert_array_equal(found, wanted["vectors"])
    refused = run(f"{command} --out there {engine}")
    assert refused.exit_code == 2 and "there exists already; choose another name or allow" in refused.stderr
    document(run(f"{command} --out there {engine} --overwrite"))
    assert run("refine there --out refined --json").exit_code == 0  # and says that there are few of them
    assert sorted(files(birds / "refined")) == sorted(files(birds / "there"))


def test_only_what_is_missing_is_made_when_it_is_resumed(birds, tasks):
    def stop(title, done, total):
        if done > 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_on_ray(pictures("encoder-0"), "v.npz", shard_size=5, progress=stop)
    assert len(files(parts_of("v.npz"))) == 3 and not (birds / "v.npz").exists()  # two shards, and the plan
    tasks.clear()
    embed_on_ray(pictures("encoder-0"), "v.npz", shard_size=5, resume=True)
    assert tasks == list(range(2, -(-COUNT // 5)))
    with pytest.raises(FileError, match=r"v\.npz exists already"):
        embed_on_ray(pictures("encoder-0"), "v.npz", shard_size=5)


def test_a_worker_that_sees_another_encoder_is_refused(birds, tasks, monkeypatch):
    other = pictures("encoder-1").encoders(), pictures("encoder-1").load()[0]
    monkeypatch.setattr("entourage.engine.embed._opened", lambda pictures: other)
    with pytest.raises(FileError, match="all machines must see the same files"):
        embed_on_ray(pictures("encoder-0"), "v.npz")
    assert not parts_of("v.npz").exists()


def test_a_corrupt_picture_is_named_or_refused_as_by_one_process(birds, tasks):
    bad = birds / "birds" / "bird 00" / "1.png"
    bad.write_bytes(b"no picture")
    written = embed_on_ray(pictures("encoder-0"), "v.npz", shard_size=5)
    assert (written.count, written.total, written.corrupt) == (COUNT - 1, COUNT, [str(bad)])
    with pytest.raises(CorruptImage) as refused:
        embed_on_ray(pictures("encoder-0"), "strict.npz", strict=True)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--engine dask", "--engine is dask; wanted ray"),
        ("--ray-address 10.0.0.5:6379", "--ray-address is 10.0.0.5:6379 without a cluster; add --engine ray"),
        ("--engine ray --model nowhere", "there is no folder nowhere"),
        ("--engine ray --resume", "to resume from"),
    ],
    ids=str,
)
def test_the_command_refuses_in_a_sentence_before_a_cluster_is_started(birds, monkeypatch, options, sentence):
    monkeypatch.setattr("entourage.engine.embed.ray_cluster", None)  # whoever started one would fail
    result = run(f"embed birds --split all --model encoder-0 --out v.npz {options}")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and sentence in result.stderr
    assert sorted(path.name for path in birds.iterdir()) == ["birds", "encoder-0", "encoder-1"]
