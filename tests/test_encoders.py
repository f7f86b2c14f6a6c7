import numpy as np
import torch

from entourage.encoders import SmallResNet, as_pictures, embed
from entourage.training import seeded


def test_pictures_become_unit_vectors_whatever_the_batch():
    pixels = np.random.default_rng(0).integers(0, 256, (7, 32, 32), dtype=np.uint8)
    encoder = seeded(0, lambda: SmallResNet(dim=24, width=8))
    vectors = embed(encoder, pixels, at_once=3)
    assert vectors.shape == (7, 24)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors, embed(encoder, pixels, at_once=7), atol=1e-6)


def test_odd_sizes_are_accepted():
    pixels = np.zeros((2, 35, 29), np.uint8)
    assert embed(SmallResNet(dim=5, width=4), pixels).shape == (2, 5)


def test_pixels_are_scaled_to_the_unit_interval():
    pictures = as_pictures(np.array([[[0, 255]]], np.uint8))
    assert pictures.dtype == torch.float32
    assert pictures.tolist() == [[[0.0, 1.0]]]


def test_gradients_reach_every_weight():
    encoder = SmallResNet(dim=6, width=4)
    encoder(torch.rand(3, 16, 16)).square().mul(torch.rand(6)).sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in encoder.parameters())
