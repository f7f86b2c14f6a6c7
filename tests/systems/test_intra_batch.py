"""Training by messages within the batch: losses against full forms, learning, resuming, what a run folder keeps."""

import json

import pytest
import torch
from tests.systems.test_baseline import IMAGES, SETTINGS, equal, interrupt_in, map_at_r, state
from torch.nn import functional as F

from entourage.encoders import SmallResNet
from entourage.stores.filenames import CHECKPOINT, LOG
from entourage.systems.encoder_training import encoder_training
from entourage.systems.intra_batch.objective import ClassHead, IntraBatchObjective, LinearClassifier, class_loss
from entourage.systems.intra_batch.saving import load_network
from entourage.systems.intra_batch.settings import IntraBatchSettings
from entourage.systems.intra_batch.training import fit_intra_batch, train_intra_batch

pytestmark = pytest.mark.usefixtures("one_thread")


def settings(**changed) -> IntraBatchSettings:
    return IntraBatchSettings(**(SETTINGS | {"batch_per_class": 4} | changed))


# ---- the loss ----------------------------------------------------------------------------------------------------


def batch(b=8, d=16) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return F.normalize(torch.randn(b, d, generator=draw), dim=1), torch.tensor([3, 3, 7, 7, 0, 0, 3, 7])


def head(n_classes=9) -> ClassHead:
    made = ClassHead(16, n_classes)
    made.weight.data = torch.randn(n_classes, 16, generator=torch.Generator().manual_seed(1))
    return made


def test_cross_entropy_is_smoothed_and_scaled_item_by_item():
    features, codes = batch()
    centred = (features - features.mean(0)) / (features.var(0, unbiased=False) + 1e-5).sqrt()
    total = 0.0
    for row, code in zip(centred, codes.tolist(), strict=True):
        shares = (head().weight @ row / 0.2).log_softmax(0)
        total -= 0.9 * shares[code] + 0.1 * shares.mean()
    value = class_loss(head(), features, codes, temperature=0.2, label_smoothing=0.1)
    torch.testing.assert_close(value, total / 8, atol=1e-5, rtol=1e-5)


def test_the_columns_of_the_batch_are_the_full_form_restricted_to_its_classes():
    features, codes = batch()
    classes = [0, 3, 7]
    few, full = head(), head()
    options = {"temperature": 0.5, "label_smoothing": 0.1}
    restricted = (full(features) / 0.5)[:, classes]
    wanted = F.cross_entropy(restricted, torch.tensor([classes.index(c) for c in codes]), label_smoothing=0.1)
    value = class_loss(few, features, codes, columns="batch", **options)
    torch.testing.assert_close(value, wanted)
    value.backward()
    wanted.backward()
    torch.testing.assert_close(few.weight.grad, full.weight.grad)
    assert not few.weight.grad[[1, 2, 4, 5, 6, 8]].any()


@pytest.mark.parametrize("columns", ["all", "batch"])
def test_the_encoders_classifier_is_a_linear_layer(columns):
    features, codes = batch()
    linear = LinearClassifier(16, 9)
    logits = (features @ linear.weight.T + linear.bias) / 0.5
    classes = list(range(9)) if columns == "all" else [0, 3, 7]
    wanted = F.cross_entropy(logits[:, classes], torch.tensor([classes.index(code) for code in codes]))
    torch.testing.assert_close(class_loss(linear, features, codes, temperature=0.5, columns=columns), wanted)


def objective(**changed) -> IntraBatchObjective:
    torch.manual_seed(0)
    made = IntraBatchObjective(settings(**changed), 16, 9)
    for part in (made.network_head, made.encoder_head):
        part.weight.data.normal_()
    return made


def test_both_losses_are_weighed_and_either_can_be_left_out():
    one, other = objective(dropout=0.0, auxiliary_weight=0.0), objective(dropout=0.0, network_weight=0.0)
    both = objective(dropout=0.0, network_weight=3.0, auxiliary_weight=0.5)
    network, auxiliary = one(*batch()), other(*batch())
    torch.testing.assert_close(both(*batch()), 3 * network + 0.5 * auxiliary)
    network.backward()
    auxiliary.backward()
    assert one.encoder_head.weight.grad is None and one.network_head.weight.grad.any()
    assert other.network_head.weight.grad is None and other.encoder_head.weight.grad.any()


def test_the_network_sees_unit_vectors_and_the_encoders_classifier_what_they_were_before():
    one, other = objective(dropout=0.0, auxiliary_weight=0.0), objective(dropout=0.0, network_weight=0.0)
    features, codes = batch()
    lengths = torch.arange(1.0, 9.0)[:, None]
    torch.testing.assert_close(one(lengths * features, codes), one(features, codes))
    wanted = class_loss(other.encoder_head, lengths * features, codes, temperature=0.2, label_smoothing=0.1)
    torch.testing.assert_close(other(lengths * features, codes), wanted)
    assert not torch.isclose(other(features, codes), wanted)


def test_the_encoders_classifier_may_be_of_the_networks_kind():
    made = objective(network_weight=0.0, auxiliary_head="neck")
    features, codes = batch()
    unit = features / features.norm(dim=1, keepdim=True)
    wanted = class_loss(made.encoder_head, unit, codes, temperature=0.2, label_smoothing=0.1)
    torch.testing.assert_close(made(3 * features, codes), wanted)
    assert isinstance(made.encoder_head, ClassHead)


def test_without_messages_the_network_sees_every_item_alone():
    made = objective(dropout=0.0, auxiliary_weight=0.0, messages=False)
    features, codes = batch()
    unit = features / features.norm(dim=1, keepdim=True)
    alone = torch.cat([made.network(row[None]) for row in unit])
    wanted = class_loss(made.network_head, alone, codes, temperature=0.2, label_smoothing=0.1)
    torch.testing.assert_close(made(features, codes), wanted)
    assert not torch.isclose(objective(dropout=0.0, auxiliary_weight=0.0)(features, codes), wanted)


def test_the_neck_has_no_shift_to_learn():
    learned = {name for name, weight in ClassHead(16, 9).named_parameters() if weight.requires_grad}
    assert learned == {"weight", "neck.weight"}


def test_what_dropout_leaves_out_is_decided_by_seed_and_number_of_batches():
    made, same, other = objective(), objective(), objective(seed=1)
    torch.manual_seed(1)
    first = made(*batch()).item()
    torch.manual_seed(2)
    assert same(*batch()).item() == first != other(*batch()).item()
    assert made(*batch()).item() != first and made.draws == 2
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    made(*batch())
    assert torch.equal(torch.rand(1), expected)  # nobody else's numbers are touched


def test_one_picture_left_of_a_batch_has_nothing_to_say():
    features, codes = batch()
    features.requires_grad_()
    value = objective()(features[:1], codes[:1])
    value.backward()
    assert value == 0 and not features.grad.any()


# ---- training ----------------------------------------------------------------------------------------------------


def test_a_batch_goes_through_the_encoder_once():
    """Unit vectors, and what they were before, come of one pass."""
    passes = []
    chosen = settings(epochs=1, validation_share=0.0)
    with encoder_training(IMAGES, chosen) as training:
        n_batches = len(training.batches(1))

    class Counted(SmallResNet):
        def feature_map(self, pictures):
            passes.append(self.training)
            return super().feature_map(pictures)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("entourage.encoders.saving.SmallResNet", Counted)
        train_intra_batch(IMAGES, chosen)
    assert passes == [True] * n_batches


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"network_weight": 0.0},
        {"auxiliary_weight": 0.0, "steps": 2},
        {"class_columns": "batch"},
        {"messages": False, "auxiliary_head": "neck"},
    ],
    ids=["both", "cross-entropy alone", "network alone", "columns of the batch", "controls"],
)
def test_the_classes_it_learns_from_come_apart(changed):
    chosen = settings(epochs=12, learning_rate=5e-3, validation_share=0.0, **changed)
    untrained, _, _ = train_intra_batch(IMAGES, settings(epochs=0))
    encoder, history, _ = train_intra_batch(IMAGES, chosen)
    assert map_at_r(encoder) > map_at_r(untrained) + 0.1
    assert history.curve[-1]["loss"] < history.curve[1]["loss"]


def test_the_network_of_the_best_epoch_is_left_in_the_run_folder(tmp_path):
    (_, history, _), trained = fit_intra_batch(IMAGES, settings(heads=4, refit=False), run_folder=tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [CHECKPOINT, LOG, "network"]
    loaded = load_network(tmp_path / "run")
    assert equal(loaded.network.state_dict(), trained.network.state_dict())
    assert equal(loaded.head.state_dict(), trained.head.state_dict())
    assert loaded.network.options["heads"] == 4 and loaded.batch == (4, 4)
    assert len(loaded.classes) == 8 and set(loaded.classes) < {str(label) for label in range(12)}
    assert history.epoch == 3


@pytest.mark.parametrize("changed", [{"network_weight": 0.0}, {"messages": False}])
def test_without_a_network_that_hears_others_none_is_left(tmp_path, changed):
    train_intra_batch(IMAGES, settings(**changed, epochs=1), run_folder=tmp_path / "run")
    assert not (tmp_path / "run" / "network").exists()


def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(tmp_path):
    chosen = settings(scheduler="cosine")
    (unbroken, wanted, _), network = fit_intra_batch(IMAGES, chosen)
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_intra_batch(IMAGES, chosen, run_folder=folder, progress=interrupt_in(2))
    (encoder, history, _), same = fit_intra_batch(IMAGES, chosen, run_folder=folder, resume=True)
    assert history == wanted and equal(state(encoder), state(unbroken))
    assert equal(same.network.state_dict(), network.network.state_dict())
    rates = json.loads((folder / LOG).read_text().splitlines()[-1])["learning_rates"]
    assert len(rates) == 2 and rates[0] == rates[1]  # encoder and network learn at one rate
