"""What the library does behind `entourage train`: the table of systems, separate galleries, which encoder a run is."""

import json
import os

import numpy as np
import pytest
from PIL import Image

from entourage import runs
from entourage.encoders import SmallResNet, save_encoder
from entourage.errors import EntourageWarning, InputError
from entourage.runs import SYSTEMS, encoder_of, train_run
from entourage.settings import TrainSettings
from entourage.training import History

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = TrainSettings(
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


def test_queries_are_searched_in_their_gallery_and_the_protocol_says_what_is_not_done(people, tmp_path):
    with pytest.warns(EntourageWarning, match="4") as given:
        run = train_run(people, tmp_path / "run", settings=SETTINGS, nmi=False)
    protocol = json.loads((tmp_path / "run" / "metrics.json").read_text())["protocol"]
    assert (protocol["queries"], protocol["gallery"], protocol["gallery_is"]) == (4, 12, "a separate set")
    assert protocol["data"] == f"{people}, query in gallery: 1 of 4 classes were trained on too"
    assert protocol["same_sequence"].startswith("counted as found") and "same_camera" not in protocol
    assert sorted({str(each.message) for each in given}) == sorted(run.warnings)


def test_a_system_of_the_table_is_called_with_its_own_settings(people, tmp_path, monkeypatch):
    calls = []

    def train(images, settings, *, run_folder, resume, strict, corrupt, progress):
        calls.append((len(images), settings, resume, strict))
        (run_folder / "log.jsonl").write_text('{"epoch": 0}\n')
        return SmallResNet(dim=3, width=4), History([{"epoch": 0, "loss": None, "score": None}])

    monkeypatch.setattr(runs, "trivial", train, raising=False)
    monkeypatch.setitem(SYSTEMS, "trivial", runs.System(TrainSettings, "entourage.runs:trivial"))
    run = train_run(people, tmp_path / "run", system="trivial", strict=True, nmi=False)
    assert calls == [(20, TrainSettings(), False, True)]
    assert run.protocol["system"] == "trivial" and run.protocol["epoch_kept"] == "0 of 0: the last"
    assert encoder_of(tmp_path / "run").dim == 3
    with pytest.raises(InputError, match=r"the system is 'none'; wanted one of baseline,.* trivial"):
        train_run(people, tmp_path / "other", system="none")


def test_a_failure_after_the_first_epoch_can_be_resumed_unless_it_would_fail_again(people, tmp_path, monkeypatch):
    def failing(error):
        def train(images, settings, *, run_folder, **options):
            (run_folder / "log.jsonl").write_text('{"epoch": 0}\n{"epoch": 1}\n')
            raise error

        return train

    monkeypatch.setitem(SYSTEMS, "failing", runs.System(TrainSettings, "entourage.runs:failing"))
    (tmp_path / ".run.partial.replaced").mkdir()
    (tmp_path / ".run.partial.replaced" / "config.json").write_text("left by a crash")
    kept = {}
    for error in (OSError("the disk is full"), InputError("the loss became nan")):
        monkeypatch.setattr(runs, "failing", failing(error), raising=False)
        with pytest.raises(type(error)):
            train_run(people, tmp_path / "run", system="failing", overwrite=True)
        kept[type(error)] = (tmp_path / "run.partial" / "log.jsonl").exists()
    assert kept == {OSError: True, InputError: True}  # the second failed, but the first is there again
    assert not (tmp_path / ".run.partial.replaced").exists()
    with pytest.raises(InputError):
        train_run(people, tmp_path / "new", system="failing")
    assert "new.partial" not in os.listdir(tmp_path)


def test_among_several_processes_only_the_first_writes(people, tmp_path, monkeypatch):
    def train(images, settings, *, run_folder, **options):
        return SmallResNet(dim=3, width=4), History()

    monkeypatch.setattr(runs, "second", train, raising=False)
    monkeypatch.setitem(SYSTEMS, "second", runs.System(TrainSettings, "entourage.runs:second"))
    monkeypatch.setenv("RANK", "1")
    before = os.listdir(tmp_path)
    assert train_run(people, tmp_path / "run", system="second") is None
    assert os.listdir(tmp_path) == before


def test_a_model_is_a_run_a_saved_encoder_or_a_name(tmp_path):
    save_encoder(tmp_path / "saved", SmallResNet(dim=3, width=4))
    (tmp_path / "run").mkdir()
    save_encoder(tmp_path / "run" / "encoder", SmallResNet(dim=5, width=4))
    assert [encoder_of(tmp_path / name).dim for name in ("saved", "run")] == [3, 5]
    assert not encoder_of(tmp_path / "run").training
    with pytest.raises(InputError, match="has learned nothing yet"):
        encoder_of("small-rgb")
