"""Slices of one embedding: each of length 1 on its own, whatever the others do."""

import numpy as np
import pytest
import torch

from entourage.encoders import SlicedEncoder, SmallResNet, VectorEncoder, load_encoder, save_encoder
from entourage.encoders.sliced import unit_slices
from entourage.errors import InputError


def test_every_slice_is_scaled_by_itself_as_in_a_plain_loop():
    encoder = SlicedEncoder(VectorEncoder(5, 12), 4)
    x = torch.randn(6, 5)
    projected, found = encoder.encoder.projected(x), encoder(x)
    for row in range(6):
        for k in range(4):
            part = projected[row, 3 * k : 3 * k + 3]
            torch.testing.assert_close(found[row, 3 * k : 3 * k + 3], part / part.norm() / 2)
            torch.testing.assert_close(unit_slices(projected, 4)[row, k], part / part.norm())
    assert found.norm(dim=1).tolist() == pytest.approx([1.0] * 6, abs=1e-6)


def test_what_one_slice_learns_leaves_the_weights_of_the_others_alone():
    encoder = SlicedEncoder(VectorEncoder(5, 12), 4)
    unit_slices(encoder(torch.randn(6, 5)), 4)[:, 2].square()[:, 0].sum().backward()
    of_rows = encoder.encoder.projection.weight.grad.abs().sum(dim=1)
    assert (of_rows[6:9] > 0).all() and of_rows[[0, 1, 2, 3, 4, 5, 9, 10, 11]].tolist() == [0.0] * 9


@pytest.mark.parametrize("inner", [SmallResNet(dim=8, width=4), VectorEncoder(5, 8)], ids=["pictures", "vectors"])
def test_it_comes_back_as_it_was(inner, tmp_path):
    encoder = SlicedEncoder(inner, 2).eval()
    save_encoder(tmp_path / "e", encoder)
    loaded = load_encoder(tmp_path / "e")
    items = torch.randn(3, 5) if encoder.in_dim else torch.rand(3, 1, 16, 16)
    assert torch.equal(loaded(items), encoder(items))
    assert (loaded.slices, loaded.dim, loaded.in_dim) == (2, 8, encoder.in_dim)
    assert loaded.preprocessing == encoder.preprocessing


def test_dimensions_that_do_not_divide_are_refused():
    with pytest.raises(InputError, match=r"which 3 slices do not divide evenly.*make dim a multiple of 3"):
        SlicedEncoder(VectorEncoder(5, 8), 3)
    with pytest.raises(InputError, match="which 0 slices do not divide"):
        SlicedEncoder(VectorEncoder(5, 8), 0)


def test_the_map_is_the_inner_encoders():
    inner = SmallResNet(dim=8, width=4).eval()
    pictures = torch.rand(2, 1, 16, 16)
    np.testing.assert_array_equal(
        SlicedEncoder(inner, 2).feature_map(pictures).detach(), inner.feature_map(pictures).detach()
    )


def test_vectors_and_map_in_one_pass_are_what_each_gives_alone():
    inner = SmallResNet(dim=8, width=4).eval()
    encoder, pictures = SlicedEncoder(inner, 2), torch.rand(2, 1, 16, 16)
    vectors, maps = encoder.with_map(pictures)
    torch.testing.assert_close(vectors, encoder(pictures))
    assert torch.equal(maps, encoder.feature_map(pictures))
    _, maps, source = encoder.with_source(pictures)
    assert source is maps


@pytest.mark.parametrize(
    "encoder",
    [SmallResNet(dim=8, width=4), VectorEncoder(5, 8), SlicedEncoder(VectorEncoder(5, 8), 2)],
    ids=["small", "vectors", "sliced"],
)
def test_what_is_projected_and_scaled_to_length_1_is_the_embedding(encoder):
    items = torch.rand(3, 1, 16, 16) if isinstance(encoder, SmallResNet) else torch.randn(3, 5)
    encoder.eval()
    torch.testing.assert_close(torch.nn.functional.normalize(encoder.projected(items), dim=1), encoder(items))
