"""Encoders by name, and through a folder."""

import json

import pytest
import torch
from PIL import Image
from tests.encoders.tiny_models import CONFIGS, tiny

from entourage.data.preprocessing import Preprocessing
from entourage.encoders import HuggingFaceEncoder, SmallResNet, build_encoder, load_encoder, save_encoder
from entourage.encoders.saving import small_encoder_for
from entourage.errors import CorruptImage, FileError, InputError, ModelError
from entourage.values import Embeddings


@pytest.mark.parametrize(("name", "channels", "side"), [("small", 1, 32), ("small-rgb", 3, 64)])
def test_small_encoders_by_name(name, channels, side):
    encoder = build_encoder(name, dim=8, width=4)
    picture = encoder.preprocessing(Image.new("RGB", (90, 70)))
    assert picture.shape == (channels, side, side)
    assert encoder.eval()(picture[None]).shape == (1, 8)
    assert build_encoder(name, size=20).preprocessing.resize == (20, 20)
    assert build_encoder(name, size=None).preprocessing.resize is None


def test_the_small_encoder_for_grey_pictures_colours_and_vectors():
    class Pictures:
        def __init__(self, *modes):
            self.modes = modes

        def __len__(self):
            return len(self.modes)

        def picture(self, row):
            if self.modes[row] is None:
                raise CorruptImage(f"{row}.png", "cut off")
            return Image.new(self.modes[row], (8, 8))

    assert small_encoder_for(Pictures("L", "1", "L")) == "small"
    assert small_encoder_for(Pictures("L", None, "RGB")) == "small-rgb"
    assert small_encoder_for(Pictures(None, None)) == "small"
    assert small_encoder_for(Embeddings.from_vectors([[1.0, 2.0]])) == "linear"


def test_unknown_options_are_refused_before_anything_is_downloaded(monkeypatch):
    monkeypatch.setattr("entourage.encoders.huggingface.load_backbone", lambda *_, **__: pytest.fail("downloaded"))
    with pytest.raises(InputError, match="unknown option 'colour' of the encoder some/model; wanted one of dim,"):
        build_encoder("some/model", colour=1)


@pytest.mark.parametrize(
    "encoder",
    [
        SmallResNet(dim=8, width=4),
        SmallResNet(dim=8, width=4, in_channels=3, pooling="gem", preprocessing=Preprocessing.small(20, 3)),
    ],
    ids=["grey", "colours"],
)
def test_a_small_encoder_comes_back_as_it_was(encoder, tmp_path):
    pictures = torch.rand(3, encoder.preprocessing.channels, 20, 20)
    encoder.train()(pictures)  # statistics of batch norm that are not the initial ones
    save_encoder(tmp_path / "e", encoder)
    for loaded in (load_encoder(tmp_path / "e"), build_encoder(str(tmp_path / "e"))):
        assert torch.equal(loaded(pictures), encoder.eval()(pictures))
        assert (loaded.preprocessing, loaded.options) == (encoder.preprocessing, encoder.options)
        assert not loaded.training


def test_a_hugging_face_encoder_comes_back_from_its_folder_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for kind in CONFIGS:
        preprocessing = Preprocessing(resize=40, crop=32, resample="bicubic")
        encoder = HuggingFaceEncoder(
            tiny(kind), dim=7, pooling="gem", freeze_batch_norm=True, preprocessing=preprocessing
        )
        save_encoder(tmp_path / kind, encoder)
        loaded, pictures = load_encoder(tmp_path / kind), torch.rand(2, 3, 32, 32)
        assert torch.equal(loaded(pictures), encoder.eval()(pictures))
        assert (loaded.preprocessing, loaded.options) == (encoder.preprocessing, encoder.options)


def test_a_folder_in_the_way_stays_unless_allowed(tmp_path):
    save_encoder(tmp_path / "e", SmallResNet(dim=8, width=4))
    with pytest.raises(FileError, match="exists already"):
        save_encoder(tmp_path / "e", SmallResNet(dim=9, width=4))
    assert load_encoder(tmp_path / "e").dim == 8
    save_encoder(tmp_path / "e", SmallResNet(dim=9, width=4), overwrite=True)
    assert load_encoder(tmp_path / "e").dim == 9


def test_a_saved_encoder_takes_no_options(tmp_path):
    save_encoder(tmp_path / "e", SmallResNet(dim=8, width=4))
    with pytest.raises(InputError, match="options of its own; leave out dim"):
        build_encoder(str(tmp_path / "e"), dim=9)


def test_other_modules_are_not_saved(tmp_path):
    with pytest.raises(InputError, match="the encoder is a Linear; "):
        save_encoder(tmp_path / "e", torch.nn.Linear(2, 2))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "large"}, "its kind is 'large'; wanted one of small, huggingface, vectors, sliced"),
        ({"preprocessing": {"colour": 1}}, "unknown field 'colour' of preprocessing"),
        ({"options": {"dim": 8, "width": 5}}, "cannot be used"),
        ({"system": "context_refiner"}, "wanted encoder"),
    ],
)
def test_a_damaged_folder_is_refused(change, message, tmp_path):
    save_encoder(tmp_path / "e", SmallResNet(dim=8, width=4))
    file = tmp_path / "e" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ModelError, match=message):
        load_encoder(tmp_path / "e")


def test_a_folder_that_is_no_encoder(tmp_path):
    with pytest.raises(FileError, match=r"has no config.json and no model.safetensors"):
        load_encoder(tmp_path)


def test_the_folder_of_a_run_stands_for_its_encoder_and_a_name_like_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.encoders.huggingface.load_backbone", lambda *_, **__: pytest.fail("asked for"))
    (tmp_path / "runs" / "birds").mkdir(parents=True)
    save_encoder(tmp_path / "runs" / "birds" / "encoder", SmallResNet(dim=8, width=4))
    monkeypatch.chdir(tmp_path)
    assert build_encoder("runs/birds").dim == 8
    with pytest.raises(FileError, match=r"there is no folder runs/brids .* \(did you mean runs/birds\?\)"):
        build_encoder("runs/brids")  # which could stand for a model of the hub
    for config in (None, '{"entourage": "0", "system": "context_refiner"}'):  # no model, and one of another kind
        if config:
            (tmp_path / "runs" / "config.json").write_text(config)
        with pytest.raises(FileError, match="runs is a folder without an encoder; wanted a run"):
            build_encoder("runs")
