from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from entourage.baselines import LinearHead, SelfAttention, fit_linear_head
from entourage.errors import InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.refiner.paper.attention import CrossAttention
from entourage.training.losses import multi_similarity
from entourage.training.sampling import class_balanced_batches
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def noisy_axes():
    """Classes told apart in eight dimensions, under strong noise in eight others: noisy_axes(classes, seed)."""

    def make(n_classes=30, seed=0):
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(n_classes), 8)
        signal = rng.normal(size=(n_classes, 8))[labels] + 0.3 * rng.normal(size=(len(labels), 8))
        return Embeddings.from_vectors(np.hstack([signal, 1.5 * rng.normal(size=signal.shape)]), labels=labels)

    return make


def test_the_linear_head_equals_a_plain_loop_of_steps(clusters):
    training = clusters(60)
    vectors, labels = torch.tensor(training.vectors), torch.tensor(training.labels)
    weight = torch.eye(8, requires_grad=True)
    optimizer = torch.optim.Adam([weight], 1e-2)
    for epoch in (1, 2, 3):
        for rows in class_balanced_batches(training.labels, 64, 2, seed=5, epoch=epoch):
            loss = multi_similarity(F.normalize(vectors[rows] @ weight, dim=1), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    learned = fit_linear_head(training, epochs=3, learning_rate=1e-2, seed=5)
    np.testing.assert_allclose(learned, weight.detach().numpy(), atol=1e-4)
    moved = LinearHead(3, 1e-2, random_state=5).fit(training).transform(training).vectors
    np.testing.assert_allclose(moved, F.normalize(vectors @ weight, dim=1).detach(), atol=1e-4)


def test_without_steps_worth_the_name_the_head_is_the_identity(clusters):
    items = clusters(48)
    moved = LinearHead(epochs=1, learning_rate=0).fit(items).transform(items)
    np.testing.assert_array_equal(moved.vectors, items.vectors)


def test_self_attention_equals_blocks_that_attend_to_the_item_itself(clusters):
    items = clusters(48)
    method = SelfAttention(n_blocks=3, epochs=1).fit(items)
    with torch.no_grad():
        start = e = torch.tensor(items.vectors)
        for block in method.network_.blocks:
            assert isinstance(block, CrossAttention)
            update, weights = block(e, *block.prepare(start[:, None]))
            assert (weights == 1).all()
            torch.testing.assert_close(update, block.value(start))  # all that one thing to look at can give
            e = F.normalize(e + update, dim=1)
    np.testing.assert_allclose(method.transform(items).vectors, e.numpy(), atol=1e-6)


def test_self_attention_keeps_its_best_epoch_on_held_out_classes(noisy_axes):
    method = SelfAttention(n_blocks=1, epochs=4, learning_rate=1e-3).fit(noisy_axes())
    scores = [point["score"] for point in method.history_.curve]
    assert len(scores) == 5
    assert method.history_.best_epoch == int(np.argmax(scores))


def test_with_too_few_classes_to_hold_out_the_last_epoch_is_kept(clusters):
    assert SelfAttention(n_blocks=1, epochs=2).fit(clusters(30, n_classes=3)).history_.best_epoch == 2


@pytest.mark.parametrize(
    "method", [LinearHead(epochs=20, learning_rate=3e-2), SelfAttention(n_blocks=1, epochs=20, learning_rate=1e-2)]
)
def test_training_helps_on_classes_never_seen(method, noisy_axes):
    unseen = noisy_axes(seed=1)
    raw = mean_average_precision_at_r(unseen)
    learned = mean_average_precision_at_r(method.fit(noisy_axes()).transform(unseen))
    assert learned > raw + 0.1


@pytest.mark.parametrize("make", [partial(LinearHead, epochs=1), partial(SelfAttention, n_blocks=1, epochs=1)])
def test_the_seed_decides_what_is_learned(make, clusters):
    items = clusters(48)
    first, again, other = (make(random_state=seed).fit(items).transform(items).vectors for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    with pytest.raises(InputError, match="random_state is -1; wanted a whole number"):
        make(random_state=-1).fit(items)
