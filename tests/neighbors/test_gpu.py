"""The search that runs on a graphics card, here on the processor: the same neighbours as the other."""

import numpy as np
import pytest
import torch

from entourage.neighbors import cpu, gpu, index, search
from entourage.runtime import devices
from entourage.values import Embeddings


def items_of(n: int, d: int, values=(-1.0, 1.0)) -> Embeddings:
    """Similarities that are exact in float32, most of them tied."""
    return Embeddings.from_vectors(np.random.default_rng(0).choice(values, size=(n, d)))


@pytest.mark.parametrize("tile_values", [1, 1000, 2**26])
@pytest.mark.parametrize("k", [1, 5, 20, 79])
def test_torch_finds_what_the_processor_finds(monkeypatch, k, tile_values):
    monkeypatch.setattr(gpu, "_TILE_VALUES", tile_values)
    vectors = np.unique(items_of(200, 16).vectors, axis=0)[:80]
    hidden = np.where(np.arange(80) % 4, np.arange(80), -1)
    wanted = next(iter(cpu.best_of_gallery(vectors, vectors, hidden, k, 80, 80)))
    found = list(gpu.best_of_gallery(vectors, torch.from_numpy(vectors), hidden, k))
    np.testing.assert_array_equal(np.concatenate([rows for _, rows, _ in found]), wanted[1])
    np.testing.assert_array_equal(np.concatenate([similarities for *_, similarities in found]), wanted[2])


@pytest.mark.parametrize("k", [1, 7, 59])
@pytest.mark.parametrize("dim", [4, 16])  # with copies, and without
def test_a_machine_with_a_card_searches_there(monkeypatch, dim, k):
    items, used = items_of(60, dim), []
    wanted = search(items, k=k)

    def card():
        used.append(devices.graphics_card())
        return torch.device("cpu")

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(index, "graphics_card", card)
    seen = []
    found = search(items, k=k, progress=lambda *call: seen.append(call))
    assert [device.type for device in used] == ["cuda"] and seen[-1] == ("searching neighbours", 60, 60)
    np.testing.assert_array_equal(found.rows, wanted.rows)
