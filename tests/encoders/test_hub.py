"""Models found by folder or name, read without torchvision, and refused in one sentence."""

import json
import sys

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tests.encoders.tiny_models import CONFIGS, SIZE, TRANSFORMER, tiny

from entourage.encoders import HuggingFaceEncoder, hub
from entourage.encoders.hub import load_backbone, read_preprocessing
from entourage.errors import FileError, MissingExtra, ModelError


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_folder_is_loaded_as_it_was_saved(kind, tmp_path, capfd):
    model = tiny(kind)
    model.save_pretrained(tmp_path)
    pictures = torch.rand(2, 3, SIZE, SIZE)
    capfd.readouterr()  # saving shows a bar
    loaded = HuggingFaceEncoder.from_name(str(tmp_path)).eval()
    assert torch.equal(loaded(pictures), HuggingFaceEncoder(model).eval()(pictures))
    assert capfd.readouterr() == ("", "")


def test_of_a_model_of_pictures_and_texts_the_picture_side_is_taken(tmp_path):
    text = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    whole = transformers.CLIPModel(transformers.CLIPConfig(vision_config=TRANSFORMER, text_config=text)).eval()
    whole.save_pretrained(tmp_path)
    pictures = torch.rand(2, 3, SIZE, SIZE)
    encoder = HuggingFaceEncoder.from_name(str(tmp_path)).eval()
    own = whole.vision_model(pixel_values=pictures).pooler_output
    torch.testing.assert_close(encoder(pictures), torch.nn.functional.normalize(own, dim=1))
    assert not any("text" in name for name in encoder.state_dict())


def test_weights_saved_in_half_precision_are_used_in_single(tmp_path):
    tiny("vit").half().save_pretrained(tmp_path)
    assert {weight.dtype for weight in HuggingFaceEncoder.from_name(str(tmp_path)).parameters()} == {torch.float32}


def test_random_weights_need_the_configuration_alone(tmp_path):
    CONFIGS["vit"].save_pretrained(tmp_path)
    encoder = HuggingFaceEncoder.from_name(str(tmp_path), pretrained=False, dim=3, size=40)
    assert encoder(torch.rand(1, 3, 40, 40)).shape == (1, 3)
    assert encoder.preprocessing.crop == 40
    assert load_backbone(str(tmp_path), pretrained=False)[1].crop == SIZE


def test_preprocessing_comes_with_the_model(tmp_path):
    tiny("vit").save_pretrained(tmp_path)
    values = {"size": {"height": 48, "width": 40}, "image_mean": [0.5] * 3, "image_std": [0.25] * 3, "resample": 3}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(values))
    preprocessing = HuggingFaceEncoder.from_name(str(tmp_path)).preprocessing
    assert (preprocessing.resize, preprocessing.crop, preprocessing.resample) == ((48, 40), None, "bicubic")
    assert (preprocessing.mean, preprocessing.std) == ((0.5,) * 3, (0.25,) * 3)


# Processors of transformers that need Pillow alone, with settings.
PROCESSORS = {
    "clip": ("clip", "CLIP", {}),
    "clip, other sizes": ("clip", "CLIP", {"size": {"shortest_edge": 96}, "crop_size": {"height": 64, "width": 80}}),
    "convnext": ("convnext", "ConvNext", {"size": {"shortest_edge": 224}}),
    "convnext, large": ("convnext", "ConvNext", {}),
    "siglip": ("siglip", "Siglip", {}),
    "vit": ("vit", "ViT", {}),
    "vit, plain values": ("vit", "ViT", {"do_normalize": False}),
    "vit, -1 to 1": ("vit", "ViT", {"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3}),
    "vit, 0 to 255": ("vit", "ViT", {"do_rescale": False, "image_mean": [99.0] * 3, "image_std": [9.0] * 3}),
}


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("size", [(300, 401), (77, 60)])
def test_pictures_are_prepared_as_transformers_would(name, size):
    kind, prefix, settings = PROCESSORS[name]
    module = pytest.importorskip(f"transformers.models.{kind}.image_processing_pil_{kind}")  # not in every version
    processor = getattr(module, f"{prefix}ImageProcessorPil")(**settings)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8))
    expected = processor(picture, return_tensors="np")["pixel_values"][0]
    prepared = read_preprocessing(json.loads(json.dumps(processor.to_dict(), default=int)))(picture).numpy()
    np.testing.assert_allclose(prepared, expected, atol=2e-4, rtol=1e-5)


def test_sizes_as_older_files_write_them():
    old = read_preprocessing({"size": 224, "crop_size": 224, "do_center_crop": True})
    assert (old.resize, old.crop) == (224, 224)
    assert read_preprocessing({"size": 224}).resize == (224, 224)
    assert read_preprocessing({"size": 224, "do_resize": False, "do_center_crop": True}).resize is None


# ---- what cannot be loaded ---------------------------------------------------------------------------------------


def test_a_name_that_is_nowhere_is_one_sentence(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileError, match="the model 'nobody/nothing' was not found: there is no such folder") as caught:
        HuggingFaceEncoder.from_name("nobody/nothing")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("check the name and the connection, or give a folder")


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    asked = []

    def unreachable(self, name, **options):
        asked.append(name)
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    with pytest.raises(FileError, match="was not found"):
        HuggingFaceEncoder.from_name("nobody/nothing")
    assert asked == ["nobody/nothing"]


@pytest.mark.parametrize("name", ["/no/such/folder", "not a name!"])
def test_a_name_that_cannot_be_one_is_refused_without_asking(name):
    with pytest.raises(FileError, match="was not found: there is no such folder"):
        HuggingFaceEncoder.from_name(name)


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(FileError, match="cannot be loaded as a Hugging Face model"):
        HuggingFaceEncoder.from_name(str(tmp_path))


def test_a_folder_without_weights(tmp_path):
    CONFIGS["vit"].save_pretrained(tmp_path)
    with pytest.raises(FileError, match=r"wanted a folder with config.json and model.safetensors") as caught:
        HuggingFaceEncoder.from_name(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_pickled_weights_are_not_read(tmp_path):
    CONFIGS["vit"].save_pretrained(tmp_path)
    torch.save(tiny("vit").state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(FileError, match=r"and model.safetensors, as save_pretrained"):
        HuggingFaceEncoder.from_name(str(tmp_path))


def test_truncated_weights(tmp_path):
    tiny("vit").save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(FileError, match="cannot be loaded as a Hugging Face model"):
        HuggingFaceEncoder.from_name(str(tmp_path))


def test_weights_that_are_missing_are_not_drawn_at_random(tmp_path):
    from safetensors.torch import load_file, save_file

    tiny("vit").save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    lost = next(name for name in weights if "cls_token" in name)
    pooler = [name for name in weights if name.startswith("pooler")]
    kept = {name: value for name, value in weights.items() if name not in pooler}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert HuggingFaceEncoder.from_name(str(tmp_path)).dim == 16  # the pooler is not used
    with pytest.raises(ModelError, match=r"lacks 2 of its weights, pooler.dense.bias among them"):
        HuggingFaceEncoder.from_name(str(tmp_path), pooling="own")
    del kept[lost]
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=rf"lacks 1 of its weights, {lost} among them"):
        HuggingFaceEncoder.from_name(str(tmp_path))


def test_without_transformers_the_pip_line_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        MissingExtra, match=r"no folder .*, and a Hugging Face model needs .* pip install 'entourage\[images\]'"
    ):
        hub.load_backbone("microsoft/resnet-50")


@pytest.mark.parametrize("change", [{"num_attention_heads": -1}, {"hidden_dropout_prob": float("nan")}], ids=str)
def test_a_config_that_only_fails_when_it_is_used_is_one_sentence(tmp_path, change):
    tiny("vit").save_pretrained(tmp_path / "vit")
    config = json.loads((tmp_path / "vit" / "config.json").read_text())
    (tmp_path / "vit" / "config.json").write_text(json.dumps(config | change))
    encoder = HuggingFaceEncoder.from_name(str(tmp_path / "vit"))
    with pytest.raises(ModelError, match=r"ViTModel cannot be applied to pictures of shape \(1, 3, .*\); check"):
        encoder(torch.zeros(1, 3, *[encoder.backbone.config.image_size] * 2))
