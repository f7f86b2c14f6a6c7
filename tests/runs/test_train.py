"""What the library does behind `entourage train`: the table of systems, separate galleries, which encoder a run is."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tests.data.pictures import write_pictures

from entourage import data
from entourage.data.layout import Count
from entourage.data.sets import market1501
from entourage.encoders import SmallResNet, save_encoder
from entourage.encoders.embedding import embed
from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import evaluate_embeddings
from entourage.runs import train as runs
from entourage.runs.encoders import encoder_of
from entourage.runs.train import TrainRequest, train_run
from entourage.runtime.config import to_dict
from entourage.systems import SYSTEMS, System
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.trained import TrainedEncoder
from entourage.training.history import History
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = BaselineSettings(
    dim=4, image_size=8, encoder_options={"width": 4}, batch_classes=3, batch_per_class=2, epochs=1, workers=1
)


@pytest.fixture
def people(tmp_path):
    """A table with queries and gallery apart, a sequence for every picture, and one class on both sides."""
    rng, lines = np.random.default_rng(0), ["label,path,split,is_query,is_gallery,sequence"]
    for person in range(9):
        for shot in range(4):
            name = f"{person}-{shot}.png"
            Image.fromarray(rng.integers(0, 255, (8, 8)).astype(np.uint8)).save(tmp_path / name)
            if person < 5:
                lines.append(f"{person},{name},train,,,{shot}")
            else:
                lines.append(f"{4 if person == 8 else person},{name},validation,{shot == 0},{shot > 0},{shot}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "people.csv"


def test_queries_are_searched_in_their_gallery_but_for_their_own_sequence(people, tmp_path):
    with pytest.warns(EntourageWarning, match="4") as given:
        run = train_run(TrainRequest(people, tmp_path / "run", settings=SETTINGS, nmi=False))
    protocol = json.loads((tmp_path / "run" / "metrics.json").read_text())["protocol"]
    assert (protocol["queries"], protocol["gallery"], protocol["gallery_is"]) == (4, 12, "a separate set")
    assert protocol["data"] == f"{people}, query in gallery: 1 of 4 classes were trained on too"
    assert protocol["same_sequence"] == "items of the query's own sequence left out" and "same_camera" not in protocol
    assert "map-trapezoid" in run.scores.metrics
    assert sorted({str(each.message) for each in given}) == sorted(run.warnings)


def test_that_nothing_was_learned_is_kept_with_the_scores(people, tmp_path, monkeypatch):
    scores = iter([0.5, 0.4])
    monkeypatch.setattr("entourage.systems.encoder_training.EncoderTraining.score", lambda self: next(scores))
    with pytest.warns(EntourageWarning, match=r"no epoch \(of 1\) did better") as given:
        run = train_run(TrainRequest(people, tmp_path / "run", settings=SETTINGS, nmi=False))
    assert sorted(str(each.message) for each in given) == sorted(run.warnings)  # each once
    assert run.protocol["epoch_kept"] == "0 of 1: best MAP@R of held-out training classes, 50.00 %"
    assert run.protocol["trained_on"] == "20 pictures of 5 classes, 2 of them held out to choose the epoch"


def test_the_protocol_says_what_was_asked_for_in_vain(people, tmp_path):
    few = "\n".join(line for line in people.read_text().splitlines() if not line.startswith(("3,", "4,")))
    people.write_text(few + "\n")
    run = train_run(TrainRequest(people, tmp_path / "run", settings=replace(SETTINGS, batch_classes=8), nmi=False))
    assert run.protocol["trained_on"] == (
        "12 pictures of 3 classes, too few to hold some out for choosing the epoch; "
        "batches of 3 classes, as there are fewer than the 8 asked for"
    )


def test_one_class_that_trains_is_told_from_those_that_test(tmp_path):
    for label in "abc":
        write_pictures(tmp_path / "birds", [f"{label}/{shot}.png" for shot in range(3)])
    with pytest.raises(InputError, match=r"1 of the 3 classes of .*birds are for training, and 1 of these"):
        train_run(TrainRequest(tmp_path / "birds", tmp_path / "run", settings=SETTINGS))
    train_run(
        TrainRequest(
            tmp_path / "birds", tmp_path / "run", settings=SETTINGS, data_options={"train_share": 0.7}, nmi=False
        )
    )


def test_a_table_in_which_every_match_is_of_the_querys_own_sequence_is_refused_before_training(people, tmp_path):
    lines = people.read_text().splitlines()
    people.write_text("\n".join([lines[0], *(line.rsplit(",", 1)[0] + ",0" for line in lines[1:])]) + "\n")
    with pytest.raises(InputError, match="in two sequences, where these are known"):
        train_run(TrainRequest(people, tmp_path / "run", settings=SETTINGS))
    assert not (tmp_path / "run.partial").exists()


def test_persons_are_searched_without_what_their_own_camera_saw(tmp_path, monkeypatch):
    """A miniature of Market-1501: by another camera every person looks like noise, by the same one as in the query."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "Market-1501-v15.09.15"
    for place in ("bounding_box_train", "query", "bounding_box_test"):
        (folder / place).mkdir(parents=True)
    for person in range(1, 13):
        trains = person < 7
        for camera in (1, 2):
            picture = rng.integers(0, 255, (16, 8, 3)).astype(np.uint8)
            for shot, place in enumerate(["train"] * 2 if trains else ["query", "test"] if camera == 1 else ["test"]):
                where = folder / (place if place == "query" else f"bounding_box_{place}")
                Image.fromarray(picture).save(where / f"{person:04}_c{camera}s1_{shot:06}_00.jpg")
    counts = {"train": Count(24, 6), "query": Count(6, 6), "gallery": Count(12, 6)}
    monkeypatch.setattr(market1501, "EXPECTED", counts)
    monkeypatch.setattr(market1501, "FILES", {split: count.images for split, count in counts.items()})
    chosen = replace(SETTINGS, encoder="small-rgb", validation_share=0.0)
    run = train_run(TrainRequest("market1501", tmp_path / "run", root=tmp_path, settings=chosen, nmi=False))
    assert run.protocol["same_camera"] == "items of the query's label by its own camera left out"
    assert run.scores.metrics["recall@1"] < 1  # the same picture stands first, and does not count
    assert {"recall@5", "map", "map-trapezoid"} <= set(run.scores.metrics)
    encoder = encoder_of(tmp_path / "run")
    items = [data.load("market1501", split, tmp_path) for split in ("query", "gallery")]
    queries, gallery = (Embeddings.from_vectors(embed(encoder, each), each.ids, each.labels) for each in items)
    assert evaluate_embeddings(queries, gallery, nmi=False).metrics["recall@1"] == 1  # without the rule


def test_a_system_of_the_table_is_called_with_its_own_settings(people, tmp_path, monkeypatch):
    calls = []

    def train(images, settings, *, run_folder, resume, strict, progress):
        calls.append((len(images), settings, resume, strict))
        (run_folder / "log.jsonl").write_text('{"epoch": 0}\n')
        return TrainedEncoder(SmallResNet(dim=3, width=4), History([{"epoch": 0, "loss": None, "score": None}]), [])

    monkeypatch.setattr(runs, "trivial", train, raising=False)
    monkeypatch.setitem(SYSTEMS, "trivial", System(BaselineSettings, "entourage.runs.train:trivial"))
    run = train_run(TrainRequest(people, tmp_path / "run", system="trivial", strict=True, nmi=False))
    assert calls == [(20, BaselineSettings(encoder="small"), False, True)]  # which fits grey pictures
    assert run.protocol["system"] == "trivial" and run.protocol["epoch_kept"] == "0 of 0: the last"
    assert encoder_of(tmp_path / "run").dim == 3
    with pytest.raises(InputError, match=r"the system is 'none'; wanted one of baseline, .*trivial"):
        train_run(TrainRequest(people, tmp_path / "other", system="none"))


def test_a_failure_after_the_first_epoch_can_be_resumed_unless_it_would_fail_again(people, tmp_path, monkeypatch):
    def failing(error):
        def train(images, settings, *, run_folder, **options):
            (run_folder / "log.jsonl").write_text('{"epoch": 0}\n{"epoch": 1}\n')
            raise error

        return train

    monkeypatch.setitem(SYSTEMS, "failing", System(BaselineSettings, "entourage.runs.train:failing"))
    (tmp_path / ".run.partial.entourage" / "old").mkdir(parents=True)
    (tmp_path / ".run.partial.entourage" / "old" / "config.json").write_text('{"entourage": "left by a crash"}')
    kept = {}
    for error in (OSError("the disk is full"), InputError("the loss became nan")):
        monkeypatch.setattr(runs, "failing", failing(error), raising=False)
        with pytest.raises(type(error)):
            train_run(TrainRequest(people, tmp_path / "run", system="failing", overwrite=True))
        kept[type(error)] = (tmp_path / "run.partial" / "log.jsonl").exists()
    assert kept == {OSError: True, InputError: True}  # the second failed, but the first is there again
    assert os.listdir(tmp_path / "run.partial") and not (tmp_path / ".run.partial.entourage").exists()
    with pytest.raises(InputError):
        train_run(TrainRequest(people, tmp_path / "new", system="failing"))
    assert "new.partial" not in os.listdir(tmp_path)


def test_stopped_while_torch_loads_nothing_is_left_and_nothing_waits_for_torch(people, tmp_path):
    script = """
import sys
from entourage.runs import train as runs
from entourage.runtime.config import to_dict
from entourage.systems import SYSTEMS, System
from entourage.systems.baseline.settings import BaselineSettings

def stopped(*images, **options):
    raise KeyboardInterrupt

runs.stopped = stopped
SYSTEMS["stopped"] = System(BaselineSettings, "entourage.runs.train:stopped")
try:
    settings = BaselineSettings(encoder="small")
    runs.train_run(runs.TrainRequest(sys.argv[1], sys.argv[2], system="stopped", settings=settings))
except KeyboardInterrupt:
    print("torch" in sys.modules)
"""
    line = [sys.executable, "-W", "ignore", "-c", script, str(people), str(tmp_path / "run")]
    outcome = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert (outcome.stdout, outcome.stderr) == ("False\n", "")
    assert "run.partial" not in os.listdir(tmp_path)


def test_a_run_that_has_no_checkpoint_yet_is_resumed_with_its_own_settings_only(people, tmp_path, monkeypatch):
    monkeypatch.setitem(SYSTEMS, "killed", System(BaselineSettings, "entourage.runs.train:killed"))
    (tmp_path / "run.partial").mkdir()
    config = {"entourage": "0", "system": "killed", "settings": to_dict(replace(SETTINGS, encoder="small"))}
    (tmp_path / "run.partial" / "config.json").write_text(json.dumps(config))
    trained = []
    monkeypatch.setattr(runs, "killed", lambda images, settings, **_: trained.append(settings) or 1 / 0, raising=False)
    run = {"system": "killed", "resume": True}
    with pytest.raises(InputError, match=r"dim is 5 but .*run\.partial was begun with 4; resume with the same"):
        train_run(TrainRequest(people, tmp_path / "run", settings=replace(SETTINGS, dim=5), **run))
    with pytest.raises(ZeroDivisionError):
        train_run(TrainRequest(people, tmp_path / "run", settings=replace(SETTINGS, workers=2), **run))
    assert [settings.dim for settings in trained] == [4]
    assert json.loads((tmp_path / "run.partial" / "config.json").read_text()) == config


def test_among_several_processes_only_the_first_writes(people, tmp_path, monkeypatch):
    def train(images, settings, *, run_folder, **options):
        return TrainedEncoder(SmallResNet(dim=3, width=4), History(), [])

    monkeypatch.setattr(runs, "second", train, raising=False)
    monkeypatch.setitem(SYSTEMS, "second", System(BaselineSettings, "entourage.runs.train:second"))
    for name, value in {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    before = os.listdir(tmp_path)
    assert train_run(TrainRequest(people, tmp_path / "run", system="second")) is None
    assert os.listdir(tmp_path) == before


def test_a_model_is_a_run_a_saved_encoder_or_a_name(tmp_path):
    save_encoder(tmp_path / "saved", SmallResNet(dim=3, width=4))
    (tmp_path / "run").mkdir()
    save_encoder(tmp_path / "run" / "encoder", SmallResNet(dim=5, width=4))
    assert [encoder_of(tmp_path / name).dim for name in ("saved", "run")] == [3, 5]
    assert not encoder_of(tmp_path / "run").training
    with pytest.raises(InputError, match="an untrained encoder"):
        encoder_of("small-rgb")
