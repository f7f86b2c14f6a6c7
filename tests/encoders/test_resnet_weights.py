"""Weights in the form of torchvision's ResNet: the net of transformers with them is the same function."""

import json

import pytest
import torch
from safetensors.torch import save_file
from tests.encoders.torchvision_net import net

from entourage.data.preprocessing import Preprocessing
from entourage.encoders import HuggingFaceEncoder, build_encoder, load_encoder, save_encoder
from entourage.encoders.resnet_weights import is_resnet_weights, resnet_of
from entourage.errors import FileError, ModelError

PICTURES = torch.rand(2, 3, 65, 48, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("bottleneck", [True, False])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_file_gives_the_same_feature_map(tmp_path, bottleneck, suffix):
    theirs, file = net(bottleneck), tmp_path / f"resnet{suffix}"
    (save_file if suffix == ".safetensors" else torch.save)(theirs.state_dict(), file)
    encoder = build_encoder(str(file), dim=16, pooling="max").eval()
    assert encoder.preprocessing == Preprocessing() and encoder.backbone.config.downsample_in_bottleneck is False
    with torch.no_grad():
        torch.testing.assert_close(encoder.feature_map(PICTURES), theirs(PICTURES))


def test_it_is_saved_like_any_other(tmp_path):
    torch.save(net().state_dict(), tmp_path / "net.pth")
    encoder = HuggingFaceEncoder.from_name(str(tmp_path / "net.pth"), dim=4, size=32).eval()
    save_encoder(tmp_path / "saved", encoder)
    with torch.no_grad():
        torch.testing.assert_close(load_encoder(tmp_path / "saved")(PICTURES), encoder(PICTURES))


def test_a_folder_of_timm_has_its_own_preprocessing(tmp_path):
    save_file(net().state_dict(), tmp_path / "model.safetensors")
    described = {
        "crop_pct": 0.95,
        "input_size": [3, 64, 64],
        "interpolation": "bicubic",
        "mean": [0.5] * 3,
        "std": [0.5] * 3,
    }
    config = {"architecture": "resnet50", "pretrained_cfg": described}
    (tmp_path / "config.json").write_text(json.dumps(config))
    encoder = build_encoder(str(tmp_path))
    prepared = Preprocessing(resize=67, crop=64, mean=(0.5,) * 3, std=(0.5,) * 3, resample="bicubic")
    assert encoder.preprocessing == prepared
    with torch.no_grad():
        torch.testing.assert_close(encoder.eval().feature_map(PICTURES), net()(PICTURES))


def test_a_model_of_timm_on_the_hub_is_asked_for_by_its_two_files(tmp_path, monkeypatch):
    save_file(net().state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "resnet50"}))
    asked = []

    def download(name, file, **options):
        asked.append((name, file))
        return str(tmp_path / file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr("entourage.encoders.hub._only_local", lambda name: True)
    encoder = build_encoder("timm/resnet50.tv_in1k", dim=8)
    assert asked == [("timm/resnet50.tv_in1k", file) for file in ("config.json", "model.safetensors")]
    assert (encoder.preprocessing.resize, encoder.preprocessing.crop) == (256, 224)


def test_the_counters_that_older_files_lack_are_not_missed():
    weights = {name: value for name, value in net().state_dict().items() if "num_batches" not in name}
    with torch.no_grad():
        torch.testing.assert_close(resnet_of(weights).eval()(pixel_values=PICTURES).last_hidden_state, net()(PICTURES))


def test_what_is_no_resnet_is_refused_by_the_first_weight_that_does_not_fit():
    weights = net().state_dict()
    with pytest.raises(ModelError, match=r"holds a, .*wanted the weights of torchvision's ResNet"):
        resnet_of({"a": torch.ones(1)})
    with pytest.raises(ModelError, match=r"layer1\.0\.se\.weight, which such a net lacks"):
        resnet_of(weights | {"layer1.0.se.weight": torch.ones(3)})
    with pytest.raises(ModelError, match=r"normalization\.bias, which is missing"):
        resnet_of({name: value for name, value in weights.items() if name != "layer2.0.bn2.bias"})
    with pytest.raises(ModelError, match="of another shape"):
        resnet_of(weights | {"layer2.0.conv2.weight": torch.ones(16, 8, 3, 3)})  # in groups, as in ResNeXt


def test_a_file_that_is_no_state_dict_is_refused(tmp_path):
    (tmp_path / "broken.pth").write_bytes(b"no weights")
    with pytest.raises(FileError, match=r"broken.pth cannot be read"):
        build_encoder(str(tmp_path / "broken.pth"))
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(FileError, match="holds a list, not tensors by name"):
        build_encoder(str(tmp_path / "list.pth"))


class Runs:
    """What would run code when it is unpickled."""

    def __reduce__(self):
        return print, ("run",)


def test_nothing_in_a_file_is_run(tmp_path, capsys):
    torch.save({"conv1.weight": Runs()}, tmp_path / "bad.pth")
    with pytest.raises(FileError, match=r"bad.pth cannot be read"):
        build_encoder(str(tmp_path / "bad.pth"))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("timm/resnet50.tv_in1k", True),
        ("timm/resnet18", True),
        ("timm/resnetv2_50x1_bit", False),
        ("nothing.pth", False),
    ],
)
def test_only_plain_resnets_are_taken_for_such(name, wanted):
    assert is_resnet_weights(name) is wanted
