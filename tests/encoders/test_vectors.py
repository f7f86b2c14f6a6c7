"""Encoders of vectors: what they compute, what they take, and through a folder."""

import numpy as np
import pytest
import torch

from entourage.data.arrays import ImageArray
from entourage.encoders import CallableEncoder, SmallResNet, VectorEncoder, build_encoder, load_encoder, save_encoder
from entourage.encoders.embedding import embed
from entourage.encoders.vectors import check_takes
from entourage.errors import InputError
from entourage.values import Embeddings

ITEMS = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(7, 6)))
PICTURES = ImageArray(np.zeros((3, 8, 8), np.uint8), np.arange(3))


def test_linear_and_mlp_by_name():
    linear, mlp = build_encoder("linear", in_dim=6, dim=4), build_encoder("mlp", in_dim=6, dim=4, hidden=(9, 5))
    x = torch.from_numpy(ITEMS.vectors.copy())
    plain = x @ linear.projection.weight.T + linear.projection.bias
    torch.testing.assert_close(linear(x), plain / plain.norm(dim=1, keepdim=True))
    assert [layer.out_features for layer in mlp.layers if hasattr(layer, "out_features")] == [9, 5]
    assert mlp(x).norm(dim=1).tolist() == pytest.approx([1.0] * 7, abs=1e-5)
    assert build_encoder("mlp", in_dim=6).options["hidden"] == [512]


def test_embeddings_go_through_it_in_any_number_at_once():
    encoder = VectorEncoder(6, 4, hidden=(5,), dropout=0.5)
    wanted = encoder.eval()(torch.from_numpy(ITEMS.vectors.copy())).detach().numpy()
    np.testing.assert_allclose(embed(encoder.train(), ITEMS, at_once=2), wanted, atol=1e-6)


def test_it_comes_back_as_it_was(tmp_path):
    encoder = VectorEncoder(6, 4, hidden=(5,), dropout=0.1)
    save_encoder(tmp_path / "e", encoder)
    loaded = load_encoder(tmp_path / "e")
    assert loaded.options == encoder.options and not loaded.training
    np.testing.assert_array_equal(embed(loaded, ITEMS), embed(encoder, ITEMS))


@pytest.mark.parametrize(
    ("encoder", "items", "said"),
    [
        (SmallResNet(dim=4, width=4), ITEMS, "vectors of 6 dimensions; wanted an encoder of vectors: linear or mlp"),
        (CallableEncoder(lambda items: items), ITEMS, "wanted an encoder of vectors"),
        (VectorEncoder(6), PICTURES, "the items are pictures and the encoder takes vectors of 6"),
        (VectorEncoder(5), ITEMS, "the items are vectors of 6 dimensions and the encoder takes vectors of 5"),
    ],
)
def test_what_does_not_fit_is_refused(encoder, items, said):
    for attempt in (check_takes, embed):
        with pytest.raises(InputError, match=said):
            attempt(encoder, items)


def test_bad_options_are_refused():
    with pytest.raises(InputError, match="the encoder linear takes vectors of in_dim dimensions, which is missing"):
        build_encoder("linear", dim=4)
    with pytest.raises(InputError, match="unknown option 'width' of the encoder mlp"):
        build_encoder("mlp", in_dim=4, width=4)
    with pytest.raises(InputError, match=r"in_dim, dim and hidden are 4, 3 and \(0,\)"):
        VectorEncoder(4, 3, hidden=(0,))
    with pytest.raises(InputError, match="dropout is 1"):
        VectorEncoder(4, 3, dropout=1.0)
