"""Learned query expansion against plain loops, and that it learns."""

import numpy as np
import pytest
import torch

from entourage.baselines import AttentionExpansion, GraphExpansion
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def unit(vector):
    return vector / np.linalg.norm(vector)


def nearest(items, i, k):
    similarity = items.vectors @ items.vectors[i]
    return sorted((j for j in range(len(items)) if j != i), key=lambda j: (-similarity[j], items.ids[j]))[:k]


def expanded_in_loops(hop, items, vectors, k):
    """One aggregator over all items: encoder, cosines of its outputs, weighted sum of the vectors."""
    moved = []
    for i in range(len(items)):
        x = np.stack([vectors[i], *(vectors[j] for j in nearest(items, i, k))])
        with torch.no_grad():
            encoded = hop.project(torch.tensor(x)[None]) + hop.places[: len(x)]
            for layer in hop.layers:
                encoded = layer(encoded)
        t = encoded[0].numpy().astype(np.float64)
        total = x[0].astype(np.float64)
        for j in range(1, len(x)):
            total = total + unit(t[0]) @ unit(t[j]) * x[j]
        moved.append(unit(total))
    return np.array(moved, np.float32)


@pytest.mark.parametrize(("method", "hops"), [(AttentionExpansion, 1), (GraphExpansion, 2)])
@pytest.mark.parametrize("k", [5, 99])
def test_expansion_equals_loops_of_its_equations(method, hops, k, clusters):
    items = clusters(30)
    fitted = method(k=k, width=16, epochs=1).fit(clusters(48, seed=1))
    assert len(fitted.network_.hops) == hops
    wanted = items.vectors
    for hop in fitted.network_.hops:
        wanted = expanded_in_loops(hop, items, wanted, min(k, 29))
    np.testing.assert_allclose(fitted._moved(items).vectors, wanted, atol=2e-5)


def test_what_is_trained_is_what_is_applied(clusters):
    """The forward pass of a batch, which gathers neighbours of neighbours, gives what hop after hop gives."""
    items = clusters(30)
    method = GraphExpansion(k=4, width=16, epochs=1).fit(items)
    rows = torch.tensor([nearest(items, i, 4) for i in range(30)])
    with torch.no_grad():
        expanded, logits = method.network_(torch.tensor(items.vectors), rows, torch.tensor([3, 17]))
    np.testing.assert_allclose(expanded.numpy(), method._moved(items).vectors[[3, 17]], atol=1e-5)
    assert logits.shape == (2, 4)


@pytest.mark.parametrize(("method", "k"), [(AttentionExpansion, 8), (GraphExpansion, 4)])
def test_it_learns_to_expand_classes_it_was_not_trained_on(method, k):
    """Half of the axes say nothing, so that neighbours are often wrong; the others tell which."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(60), 8)
    signal = rng.normal(size=(60, 8))[labels] + 0.5 * rng.normal(size=(480, 8))
    items = Embeddings.from_vectors(np.hstack([signal, 1.2 * rng.normal(size=(480, 8))]), labels=labels)
    learned = method(k=k, width=32, layers=1, epochs=20, patience=20, learning_rate=3e-3).fit(items)
    scores = [point["score"] for point in learned.history_.curve]  # on held-out classes
    assert learned.history_.best_epoch == int(np.argmax(scores))
    assert max(scores) > scores[0] + 0.03


def test_a_seed_decides(clusters):
    items = clusters(48)
    first, again, other = (AttentionExpansion(width=16, epochs=2, random_state=s).fit(items) for s in (3, 3, 4))
    np.testing.assert_array_equal(first.transform(items).vectors, again.transform(items).vectors)
    assert not np.array_equal(first.transform(items).vectors, other.transform(items).vectors)


def test_an_item_alone_stays_as_it_is(clusters):
    method = AttentionExpansion(width=16, epochs=1).fit(clusters(48))
    alone = Embeddings.from_vectors(np.eye(8)[:1])
    np.testing.assert_array_equal(method._moved(alone).vectors, alone.vectors)
