import numpy as np
import pytest
import torch

from entourage.encoders import SmallResNet
from entourage.errors import InputError


@pytest.mark.parametrize("pooling", ["average", "max", "gem"])
def test_gradients_reach_every_weight(pooling):
    encoder = SmallResNet(dim=6, width=4, pooling=pooling)
    encoder(torch.rand(3, 16, 16)).square().mul(torch.rand(6)).sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in encoder.parameters())


def test_grey_pictures_come_with_or_without_their_channel():
    encoder, pictures = SmallResNet(dim=6, width=4).eval(), torch.rand(3, 16, 16)
    assert torch.equal(encoder(pictures), encoder(pictures[:, None]))


def test_colours_give_unit_vectors_and_a_map():
    encoder, pictures = SmallResNet(dim=6, width=4, in_channels=3).eval(), torch.rand(2, 3, 20, 32)
    vectors = encoder(pictures).detach()
    assert vectors.shape == (2, encoder.dim)
    np.testing.assert_allclose(vectors.norm(dim=1), 1, atol=1e-6)
    assert encoder.feature_map(pictures).shape == (2, 16, 3, 4)
    assert encoder.preprocessing.channels == 3


@pytest.mark.parametrize(("last_stride", "side"), [(2, 4), (1, 8)])
def test_the_map_and_the_vectors_come_from_one_pass(last_stride, side):
    encoder, pictures = SmallResNet(dim=6, width=4, last_stride=last_stride).eval(), torch.rand(2, 32, 32)
    vectors, maps = encoder.with_map(pictures)
    assert maps.shape == (2, 16, side, side)
    assert torch.equal(maps, encoder.feature_map(pictures)) and torch.equal(vectors, encoder(pictures))


def test_the_names_of_the_weights_stay():
    """Encoders saved by an earlier version are loaded by these names."""
    names = {name.split(".")[0] for name in SmallResNet(dim=6, width=4).state_dict()}
    assert names == {"stem", "stages", "projection"}


def test_a_projection_to_nothing_is_refused():
    with pytest.raises(InputError, match="dim is 0 and width is 32; wanted 1 or more"):
        SmallResNet(dim=0)


def test_an_unknown_stride_is_refused():
    with pytest.raises(InputError, match="last_stride is 4; wanted 2, or 1"):
        SmallResNet(last_stride=4)


def test_an_unknown_pooling_is_refused():
    with pytest.raises(InputError, match=r"pooling is 'median'; wanted one of average, max, average\+max, gem$"):
        SmallResNet(pooling="median")
