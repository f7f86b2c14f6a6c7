"""The network at inference against itself, run on one whole group after the other."""

import numpy as np
import pytest
import torch
from tests.refiner.samples import clusters
from torch.nn import functional as F

from entourage.errors import InputError, ModelError
from entourage.systems.intra_batch import inference
from entourage.systems.intra_batch.contexts import CONTEXTS, Contexts, find_contexts
from entourage.systems.intra_batch.inference import refine_by_messages, refine_in_contexts
from entourage.systems.intra_batch.network import MessagePassing
from entourage.systems.intra_batch.objective import ClassHead
from entourage.systems.intra_batch.saving import TrainedNetwork, load_network, save_network
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

DIM = 16


def network(steps=1, heads=2) -> MessagePassing:
    torch.manual_seed(steps)
    return MessagePassing(DIM, steps, heads)


def items(**options) -> Embeddings:
    vectors, labels = clusters(0, n_classes=10, per_class=6, dim=DIM, **options)
    return Embeddings.from_vectors(vectors, ids=[f"item {row}" for row in range(60)], labels=labels)


def group_by_group(trained, vectors, contexts) -> np.ndarray:
    """Whole groups in which every item stands once."""
    refined = []
    for row, group in enumerate(contexts.groups[contexts.group_of].tolist()):
        group = list(dict.fromkeys(group))
        with torch.no_grad():
            outputs = trained.eval()(torch.from_numpy(vectors[group]))
        refined.append(F.normalize(outputs[group.index(row)], dim=0).numpy())
    return np.array(refined)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("by", ["reciprocal", "nearest", "kmeans"])
def test_batches_of_groups_give_what_each_group_gives_alone(steps, by, monkeypatch):
    monkeypatch.setattr(inference, "_VALUES_AT_ONCE", 11 * 5 * DIM)  # several blocks, the last not full
    e, trained = items(), network(steps)
    contexts = find_contexts(e, by, size=None if by == "kmeans" else 5, k1=6, batch=(3, 4))
    refined = refine_in_contexts(trained, e.vectors, contexts)
    np.testing.assert_allclose(refined, group_by_group(trained, e.vectors, contexts), atol=2e-6)


def test_an_item_that_stands_in_a_group_twice_counts_once():
    e, trained = items(), network(2)
    once = Contexts(np.arange(60).reshape(20, 3), np.arange(60) // 3)
    twice = Contexts(np.hstack([once.groups[:, [2]], once.groups, once.groups[:, [1, 1]]]), once.group_of)
    first, second = (refine_in_contexts(trained, e.vectors, contexts) for contexts in (once, twice))
    np.testing.assert_allclose(first, second, atol=2e-6)


def test_items_are_worked_on_once_and_only_anchors_take_the_last_step():
    """Rows that go through each product: N = 60 in groups of 5, not 300, but for what lies between two steps."""
    rows: dict[tuple, int] = {}

    def count(name):
        def hook(module, inputs, output):
            rows[name] = rows.get(name, 0) + output.shape[:-1].numel()

        return hook

    e, trained = items(), network(2)
    for number, step in enumerate(trained.steps):
        for part in ("query", "key", "value", "out"):
            getattr(step.messages, part).register_forward_hook(count((number, part)))
        step.feed_forward.register_forward_hook(count((number, "feed_forward")))
    refine_in_contexts(trained, e.vectors, find_contexts(e, size=5, k1=6))
    first = {"query": 60, "key": 60, "value": 60, "out": 300, "feed_forward": 300}
    last = {"query": 60, "key": 300, "value": 300, "out": 60, "feed_forward": 60}
    assert rows == {(n, part): value for n, wanted in enumerate((first, last)) for part, value in wanted.items()}


@pytest.mark.parametrize("by", ["reciprocal", "nearest", "kmeans"])
def test_the_place_of_the_anchor_in_its_group_does_not_matter(by):
    e, trained = items(), network(2)
    contexts = find_contexts(e, by)
    shuffled = np.random.default_rng(0).permuted(contexts.groups, axis=1)
    assert not np.array_equal(shuffled[:, 0], contexts.groups[:, 0])
    first, second = (
        refine_in_contexts(trained, e.vectors, Contexts(groups, contexts.group_of))
        for groups in (contexts.groups, shuffled)
    )
    np.testing.assert_allclose(first, second, atol=2e-6)


def test_the_order_of_the_items_does_not_matter():
    e, trained = items(), TrainedNetwork(network(), ClassHead(DIM, 3), [], 1.0, (3, 4))
    order = np.random.default_rng(0).permutation(60)
    refined, reordered = refine_by_messages(trained, e), refine_by_messages(trained, e.take(order))
    np.testing.assert_allclose(reordered.vectors, refined.vectors[order], atol=2e-6)
    assert reordered.ids.tolist() == e.ids[order].tolist()


@pytest.mark.parametrize("by", CONTEXTS)
def test_by_every_context_ids_and_labels_stay_and_vectors_are_units(by):
    e, seen = items(), []
    trained = TrainedNetwork(network(), ClassHead(DIM, 3), [], 1.0, (3, 4))
    refined = refine_by_messages(trained, e, by, progress=lambda *step: seen.append(step))
    assert refined.ids.tolist() == e.ids.tolist() and refined.labels.tolist() == e.labels.tolist()
    np.testing.assert_allclose(np.linalg.norm(refined.vectors, axis=1), 1, atol=1e-5)
    assert not np.allclose(refined.vectors, e.vectors, atol=0.05)
    assert seen[-1][1] == seen[-1][2]


def test_a_network_is_saved_and_loaded(tmp_path):
    trained = TrainedNetwork(network(2, 4), ClassHead(DIM, 3), ["a", "b", "c"], 0.3, (5, 6))
    save_network(tmp_path / "network", trained)
    loaded = load_network(tmp_path)
    assert (loaded.classes, loaded.temperature, loaded.batch) == (["a", "b", "c"], 0.3, (5, 6))
    h = torch.randn(5, DIM)
    assert torch.equal(loaded.network(h), trained.network.eval()(h))
    assert torch.equal(loaded.head(h), trained.head.eval()(h))


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (np.eye(DIM), {}, r"the items are a ndarray; wanted Embeddings: Embeddings\.from_vectors\(items\)"),
        (items(), {"sise": 3}, "unknown option 'sise' of contexts; wanted one of size, k1, batch"),
        (items(), {"size": "3"}, "size is '3'; wanted a whole number, or nothing"),
    ],
)
def test_what_are_no_items_and_no_options_is_refused(given, options, said):
    trained = TrainedNetwork(network(), ClassHead(DIM, 3), [], 1.0, (3, 4))
    with pytest.raises(InputError, match=said):
        refine_by_messages(trained, given, **options)


def test_vectors_of_another_encoder_and_folders_without_a_network_are_refused(tmp_path):
    trained = TrainedNetwork(network(), ClassHead(DIM, 3), [], 1.0, (3, 4))
    with pytest.raises(ModelError, match="have 3 dimensions but the network was trained on 16"):
        refine_by_messages(trained, Embeddings.from_vectors(np.eye(3)))
    with pytest.raises(
        ModelError, match="has no network in it; wanted a run of `entourage train --system intra-batch`"
    ):
        load_network(tmp_path)
    save_network(tmp_path / "network", trained)
    (tmp_path / "network" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cannot be used"):
        load_network(tmp_path)
