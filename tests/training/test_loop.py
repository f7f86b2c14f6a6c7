"""The fit loop: which epoch is kept, when it stops, what a step is."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.training.regression import equal, fit, model_and_optimizer, weights, weights_after
from torch import nn

from entourage.errors import InputError
from entourage.runtime.randomness import seeded_weights
from entourage.training.loop import fit_model
from entourage.training.schedule import step_schedule
from entourage.training.settings import Checkpointing, FitSettings

# ---- the epoch kept ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([0.1, 0.2, 0.7, 0.4, 0.6], 2),
        ([0.1, 0.2, 0.3, 0.4, 0.5], 4),
        ([0.9, 0.2, 0.3, 0.4, 0.5], 0),  # training made it worse: the initial weights stay
        ([0.1, 0.5, 0.5, 0.5, 0.4], 1),  # the first of equals
    ],
)
def test_the_model_ends_with_the_weights_of_its_best_epoch(scores, best):
    model, optimizer = model_and_optimizer()
    history = fit(model, optimizer, scores, epochs=4)
    assert history.best_epoch == best
    assert history.best_score == scores[best]
    assert [point["score"] for point in history.curve] == scores
    assert equal(weights(model), weights_after(best))
    assert not model.training


def test_without_evaluation_the_last_epoch_is_kept():
    model, optimizer = model_and_optimizer()
    history = fit(model, optimizer, epochs=3)
    assert (history.best_epoch, history.epoch, history.best_score) == (3, 3, None)
    assert equal(weights(model), weights_after(3))


def test_the_curve_starts_before_training_and_the_loss_falls():
    model, optimizer = model_and_optimizer()
    curve = fit(model, optimizer, epochs=20).curve
    assert [point["epoch"] for point in curve] == list(range(21))
    assert curve[0]["loss"] is None
    assert curve[20]["loss"] < 0.5 * curve[1]["loss"]


@pytest.mark.parametrize(
    ("scores", "patience", "last"),
    [
        ([0.1, 0.5, 0.4, 0.4, 0.9], 2, 3),  # epochs 2 and 3 are no better than 1; 0.9 is never seen
        ([0.1, 0.5, 0.4, 0.6, 0.5, 0.5], 2, 5),  # epoch 3 starts the count anew
        ([0.5, 0.4], 1, 1),
        ([0.5, 0.5, 0.5, 0.5], 3, 3),  # equal is not better
    ],
)
def test_it_stops_after_so_many_epochs_without_a_better_one(scores, patience, last):
    model, optimizer = model_and_optimizer()
    history = fit(model, optimizer, scores, patience=patience, epochs=50)
    assert history.epoch == last


@pytest.mark.parametrize(
    ("scores", "last"),
    [
        ([0.1, 0.5, 0.4, 0.4, 0.4, 0.4, 0.4, 0.9], 6),  # the best, 1, came before 4: two more than 4
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.5, 0.5, 0.9], 7),  # the best is 5: two more than that
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.4, 0.4, 0.9], 6),  # the best is 4 itself
    ],
)
def test_patience_counts_from_a_given_epoch_unless_the_best_is_later(scores, last):
    history = fit(*model_and_optimizer(), scores, patience=2, patience_from=4, epochs=50)
    assert history.epoch == last


def test_evaluation_sees_the_model_in_evaluation_mode_and_training_in_training_mode():
    model, optimizer = model_and_optimizer()
    modes = {"evaluate": set(), "loss": set()}

    def loss(x):
        modes["loss"].add(model.training)
        return model(x).square().mean()

    def evaluate():
        modes["evaluate"].add(model.training)
        return 0.0

    fit_model(
        model,
        optimizer,
        FitSettings(epochs=2, patience=9),
        batches=lambda epoch: [torch.ones(2, 4)],
        loss=loss,
        evaluate=evaluate,
    )
    assert modes == {"evaluate": {False}, "loss": {True}}


def test_progress_names_the_epoch_and_the_best_score():
    seen = []
    fit(*model_and_optimizer(), [0.25, 0.5, 0.4], epochs=2, progress=lambda *call: seen.append(call))
    assert seen[0] == ("training (epoch 1/2, best score 25.0 %)", 1, 6)
    assert seen[-2] == ("training (epoch 2/2, best score 50.0 %)", 6, 6)
    assert seen[-1] == ("training (kept epoch 1, score 50.0 %)", 6, 6)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_loss_that_is_not_finite_ends_the_run_with_a_reason(value):
    model, optimizer = model_and_optimizer()
    with pytest.raises(InputError, match=rf"became {value} in epoch 1 of 2; lower the learning rate"):
        fit_model(
            model,
            optimizer,
            FitSettings(epochs=2, patience=1),
            batches=lambda epoch: [torch.ones(2, 4)],
            loss=lambda x: model(x).mean() * 0 + value,
        )


# ---- evaluation every few epochs ---------------------------------------------------------------------------------


def test_evaluation_every_few_epochs_counts_the_first_and_the_last():
    history = fit(*model_and_optimizer(), [0.1, 0.3, 0.2, 0.4], epochs=7, evaluate_every=3)
    assert [point["score"] for point in history.curve] == [0.1, None, None, 0.3, None, None, 0.2, 0.4]
    assert history.best_epoch == 7


def test_an_epoch_without_a_score_is_neither_kept_nor_a_reason_to_stop():
    model, optimizer = model_and_optimizer()
    history = fit(model, optimizer, [0.5, 0.4, 0.3], epochs=50, evaluate_every=4, patience=2)
    assert (history.best_epoch, history.epoch) == (0, 4)
    assert equal(weights(model), weights_after(0))


# ---- steps -------------------------------------------------------------------------------------------------------


def test_the_schedule_scales_every_rate_and_the_optimizer_gets_its_own_back():
    model = seeded_weights(0, lambda: nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)))
    groups = [{"params": model[0].parameters()}, {"params": model[1].parameters(), "lr": 0.2}]
    optimizer, seen = torch.optim.SGD(groups, 0.1), []

    def loss(x):
        seen.append([group["lr"] for group in optimizer.param_groups])
        return model(x).square().mean()

    settings = FitSettings(epochs=3, schedule=step_schedule([1, 2], 0.5))
    fit_model(model, optimizer, settings, batches=lambda epoch: [torch.ones(2, 4)], loss=loss)
    assert seen == [[0.1, 0.2], [0.05, 0.1], [0.025, 0.05]]
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.2]


def test_gradients_are_clipped_to_a_common_norm():
    model = nn.Linear(4, 1, bias=False)
    before = model.weight.detach().clone()
    options = {"batches": lambda epoch: [torch.full((1, 4), 100.0)], "loss": lambda x: model(x).sum()}
    fit_model(model, torch.optim.SGD(model.parameters(), 1.0), FitSettings(epochs=1, clip=0.5), **options)
    assert (model.weight - before).norm().item() == pytest.approx(0.5, rel=1e-4)


def test_batches_that_come_one_by_one_are_not_gathered_first_if_their_number_is_known():
    alive = []

    class Stream:
        def __len__(self):
            return 3

        def __iter__(self):
            for _ in range(3):
                alive.append("made")
                yield torch.ones(2, 4)

    model, optimizer = model_and_optimizer()

    def loss(x):
        alive.append("used")
        return model(x).square().mean()

    fit_model(model, optimizer, FitSettings(epochs=1), batches=lambda epoch: Stream(), loss=loss)
    assert alive == ["made", "used"] * 3


def test_a_gradient_that_is_not_finite_leaves_the_last_good_checkpoint(tmp_path):
    """The loss is finite to the end of epoch 2, whose last step has an infinite gradient."""
    model, optimizer = model_and_optimizer()
    kept = Checkpointing(tmp_path / "run.checkpoint")

    def loss(batch):
        epoch, x = batch
        value = model(x).square().mean()
        return value + (value - value.detach()).abs().sqrt() if epoch == 2 else value

    options = {"batches": lambda epoch: [(epoch, torch.ones(2, 4))], "loss": loss}
    with pytest.raises(InputError, match="sum of the weights became nan in epoch 2 of 3; lower the learning"):
        fit_model(model, optimizer, FitSettings(epochs=3), checkpointing=kept, **options)
    again, optimizer = model_and_optimizer()
    options["loss"] = lambda batch: again(batch[1]).square().mean()
    resumed = Checkpointing(kept.path, resume=True)
    assert fit_model(again, optimizer, FitSettings(epochs=1), checkpointing=resumed, **options).epoch == 1
    assert all(value.isfinite().all() for value in weights(again))


def test_a_loss_that_is_not_finite_leaves_the_last_good_checkpoint(tmp_path):
    checkpoint, unbroken = tmp_path / "run.checkpoint", tmp_path / "unbroken"
    fit(*model_and_optimizer(), epochs=2, checkpoint=unbroken)
    model, optimizer = model_and_optimizer()

    def loss(batch):
        epoch, x = batch
        wanted = x[:, 0] * x[:, 1]
        return (model(x)[:, 0] - wanted).square().mean() * (float("nan") if epoch == 3 else 1)

    def batches(epoch):
        generator = torch.Generator().manual_seed(epoch)
        return [(epoch, torch.randn(16, 4, generator=generator)) for _ in range(3)]

    with pytest.raises(InputError, match="loss became nan in epoch 3 of 6"):
        fit_model(
            model,
            optimizer,
            FitSettings(epochs=6),
            batches=batches,
            loss=loss,
            checkpointing=Checkpointing(checkpoint),
        )
    assert checkpoint.read_bytes() == unbroken.read_bytes()


# ---- seeds -------------------------------------------------------------------------------------------------------


def test_seeded_weights_depend_on_the_seed_and_leave_the_global_state_alone():
    before = torch.get_rng_state()
    first, again, other = (weights(model_and_optimizer(seed)[0]) for seed in (0, 0, 1))
    assert equal(first, again) and not equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_four_fits_in_threads_end_as_each_does_alone():
    """Dropout draws from the state of the whole process: a seeded epoch has it for itself."""

    def run(seed):
        model, optimizer = model_and_optimizer(seed, dropout=0.5)
        fit(model, optimizer, epochs=8, seed=seed)
        return weights(model)

    alone = [run(seed) for seed in range(4)]
    before = torch.get_rng_state()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, range(4)))
    assert all(equal(one, other) for one, other in zip(together, alone, strict=True))
    assert torch.equal(torch.get_rng_state(), before)
