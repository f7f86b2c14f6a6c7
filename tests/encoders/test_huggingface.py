"""Vision models as encoders: what they give, what they learn, what stays fixed."""

import numpy as np
import pytest
import torch
from tests.encoders.tiny_models import CONFIGS, MAPS, SIZE, tiny

from entourage.encoders import HuggingFaceEncoder
from entourage.errors import InputError
from entourage.runtime.randomness import seeded_weights


def pictures(size: int = SIZE, count: int = 3) -> torch.Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_resnet_50_from_scratch_has_the_published_size_and_learns(one_thread):
    encoder = seeded_weights(
        0, lambda: HuggingFaceEncoder.from_name("resnet", pretrained=False, dim=512, pooling="max")
    )
    assert sum(weight.numel() for weight in encoder.backbone.parameters()) == 23_508_032
    assert sum(weight.numel() for weight in encoder.projection.parameters()) == 2048 * 512 + 512
    assert encoder.feature_map(pictures(64, 2)).shape == (2, 2048, 2, 2)
    vectors = encoder(pictures(64, 2))
    assert vectors.shape == (2, 512) and encoder.dim == 512
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    vectors.square().mul(torch.arange(512)).sum().backward()
    assert all(weight.grad is not None for weight in encoder.parameters())
    assert (encoder.preprocessing.resize, encoder.preprocessing.crop) == (256, 224)


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_kind_gives_unit_vectors_and_a_map_and_learns_with_all_its_weights(kind):
    encoder = HuggingFaceEncoder(tiny(kind), dim=5)
    vectors = encoder(pictures())
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))
    assert encoder.feature_map(pictures()).shape == (3, *MAPS[kind])
    vectors.square().mul(torch.arange(5)).sum().backward()
    asking = {name: weight for name, weight in encoder.named_parameters() if weight.requires_grad}
    assert [name for name, weight in asking.items() if weight.grad is None] == []


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_map_and_the_vectors_come_from_one_pass(kind, monkeypatch):
    encoder, passes = HuggingFaceEncoder(tiny(kind), dim=5).eval(), []
    wanted = encoder(pictures()), encoder.feature_map(pictures())
    real = encoder.backbone.forward
    monkeypatch.setattr(encoder.backbone, "forward", lambda *args, **named: passes.append(1) or real(*args, **named))
    assert all(map(torch.equal, encoder.with_map(pictures()), wanted))
    assert len(passes) == 1


POOLINGS = [(kind, pooling) for kind in CONFIGS for pooling in ("average", "max", "gem", "own")]
POOLINGS += [(kind, "cls") for kind in ("vit", "dinov2", "dinov2_with_registers", "clip_vision_model")]


@pytest.mark.parametrize(("kind", "pooling"), POOLINGS)
def test_vectors_and_map_are_made_of_one_source_and_of_nothing_else(kind, pooling):
    """Whoever knows the gradient at the source knows that of all weights before it."""
    encoder = HuggingFaceEncoder(tiny(kind), dim=5, pooling=pooling).eval()
    vectors, maps, source = encoder.with_source(pictures())
    assert torch.equal(vectors, encoder(pictures())) and torch.equal(maps, encoder.feature_map(pictures()))
    loss = vectors.square().mul(torch.arange(5)).sum() + maps.pow(3).mean()
    weight = next(weight for weight in encoder.backbone.parameters() if weight.requires_grad)
    at_source, wanted = torch.autograd.grad(loss, [source, weight], retain_graph=True)
    for value in (vectors, maps):
        assert torch.autograd.grad(value.square()[..., 0].sum(), source, retain_graph=True)[0].abs().sum() > 0
    (found,) = torch.autograd.grad(source, weight, at_source)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("pooling", ["average", "max", "gem"])
def test_pooling_is_of_the_feature_map(kind, pooling):
    encoder = HuggingFaceEncoder(tiny(kind), pooling=pooling).eval()
    maps = encoder.feature_map(pictures())
    norm = {"convnext": "layernorm", "clip_vision_model": "post_layernorm"}.get(kind)
    pooled = {
        "average": maps.mean((2, 3)),
        "max": maps.amax((2, 3)),
        "gem": maps.clamp(min=1e-6).pow(3).mean((2, 3)).pow(1 / 3),
    }[pooling]
    pooled = getattr(encoder.backbone, norm)(pooled) if norm else pooled
    torch.testing.assert_close(encoder(pictures()), torch.nn.functional.normalize(pooled, dim=1))
    assert encoder.dim == MAPS[kind][0]


@pytest.mark.parametrize("kind", ["convnext", "resnet", "dinov2", "dinov2_with_registers", "clip_vision_model"])
def test_the_default_without_projection_is_what_the_model_itself_gives(kind):
    model = tiny(kind)
    own = model(pixel_values=pictures()).pooler_output.flatten(1)
    torch.testing.assert_close(HuggingFaceEncoder(model).eval()(pictures()), torch.nn.functional.normalize(own, dim=1))


def test_a_models_own_pooling_can_be_asked_for():
    model = tiny("siglip_vision_model")
    encoder = HuggingFaceEncoder(model, pooling="own").eval()
    own = torch.nn.functional.normalize(model(pixel_values=pictures()).pooler_output, dim=1)
    torch.testing.assert_close(encoder(pictures()), own)
    assert all(weight.requires_grad for weight in model.head.parameters())


@pytest.mark.parametrize("kind", ["dinov2_with_registers", "clip_vision_model", "vit"])
def test_patch_tokens_stand_in_their_places(kind):
    """A change in the lower right corner moves the map there most, whatever tokens come before the patches."""
    encoder = HuggingFaceEncoder(tiny(kind)).eval()
    changed = pictures(count=1).clone()
    changed[..., 24:, 16:24] = 0.0  # the patch in row 3, column 2
    moved = (encoder.feature_map(changed) - encoder.feature_map(pictures(count=1))).norm(dim=1)[0]
    assert np.unravel_index(moved.argmax().item(), (4, 4)) == (3, 2)


@pytest.mark.parametrize("kind", ["vit", "dinov2", "clip_vision_model"])
def test_another_picture_size_than_the_model_was_made_for(kind):
    encoder = HuggingFaceEncoder(tiny(kind)).eval()
    assert encoder.feature_map(torch.rand(2, 3, 48, 64)).shape == (2, 16, 6, 8)


def test_frozen_batch_norm_neither_learns_nor_counts():
    encoder = HuggingFaceEncoder(tiny("resnet"), dim=4, freeze_batch_norm=True).train()
    norms = [module for module in encoder.backbone.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    before = [module.running_mean.clone() for module in norms]
    encoder(pictures()).square().mul(torch.arange(4)).sum().backward()
    assert norms and not any(module.training for module in norms)
    assert all(torch.equal(module.running_mean, mean) for module, mean in zip(norms, before, strict=True))
    assert all(weight.grad is None for module in norms for weight in module.parameters())
    assert encoder.backbone.embedder.embedder.convolution.weight.grad is not None


def test_batch_norm_counts_where_it_is_not_frozen():
    encoder = HuggingFaceEncoder(tiny("resnet")).train()
    before = {name: value.clone() for name, value in encoder.named_buffers() if name.endswith("running_mean")}
    encoder(pictures())
    assert before and not any(torch.equal(encoder.get_buffer(name), value) for name, value in before.items())


def test_a_frozen_backbone_leaves_the_head_to_learn():
    encoder = HuggingFaceEncoder(tiny("vit"), dim=4, freeze_backbone=True).train()
    encoder(pictures()).square().mul(torch.arange(4)).sum().backward()
    assert not encoder.backbone.training and encoder.training
    assert {name for name, weight in encoder.named_parameters() if weight.requires_grad} == {
        "projection.weight",
        "projection.bias",
    }
    assert encoder.projection.weight.grad.abs().sum() > 0


def test_pooling_that_cannot_be_is_refused():
    with pytest.raises(InputError, match="pooling is 'cls', but ResNetModel has no class token; use average"):
        HuggingFaceEncoder(tiny("resnet"), pooling="cls")
    with pytest.raises(
        InputError, match=r"pooling is 'median'; wanted one of average, max, average\+max, gem, cls, own"
    ):
        HuggingFaceEncoder(tiny("resnet"), pooling="median")


def test_a_projection_to_nothing_is_refused():
    with pytest.raises(InputError, match="dim is 0; wanted 1 or more"):
        HuggingFaceEncoder(tiny("resnet"), dim=0)


def test_pictures_too_small_for_a_map_are_refused():
    with pytest.raises(
        InputError, match="do not make a map of 0 x 0 places; use pictures whose sides are multiples of 8"
    ):
        HuggingFaceEncoder(tiny("dinov2"))._map(torch.rand(1, 2, 16), torch.rand(1, 3, 4, 4))


def test_it_can_move_to_another_device():
    encoder = HuggingFaceEncoder(tiny("vit"), dim=4).to("meta")
    assert encoder(pictures().to("meta")).device.type == "meta"
