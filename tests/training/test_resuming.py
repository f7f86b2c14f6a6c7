"""An interrupted run ends as if it had not been, and from a checkpoint of its own only."""

import os

import pytest
import torch
from tests.training.regression import Crash, equal, fit, model_and_optimizer, weights, weights_after
from torch import nn

from entourage.errors import FileError
from entourage.runtime.randomness import seeded_weights
from entourage.training.loop import fit_model
from entourage.training.schedule import cosine_schedule, step_schedule
from entourage.training.settings import Checkpointing, FitSettings

SCORES = [0.1, 0.5, 0.2, 0.3, 0.6, 0.4, 0.5]


@pytest.mark.parametrize("crash_in", [1, 2, 5])
@pytest.mark.parametrize("scores", [SCORES, [0.9, *SCORES[1:]], None], ids=["best later", "best first", "unscored"])
def test_a_resumed_run_ends_bit_for_bit_as_one_never_interrupted(tmp_path, scores, crash_in):
    unbroken, optimizer = model_and_optimizer()
    wanted = fit(unbroken, optimizer, scores)

    checkpoint = tmp_path / "run.checkpoint"
    with pytest.raises(Crash):
        fit(*model_and_optimizer(), scores, checkpoint=checkpoint, crash_in=crash_in)
    resumed, optimizer = model_and_optimizer(seed=77)  # its own initial weights must not matter
    rest = scores and scores[crash_in:]
    history = fit(resumed, optimizer, rest, checkpoint=checkpoint, resume=True)

    assert equal(weights(resumed), weights(unbroken))
    assert history == wanted


@pytest.mark.parametrize(
    "options",
    [{"schedule": cosine_schedule(6)}, {"schedule": step_schedule([1, 3])}, {"dropout": 0.5}, {"clip": 0.1}],
    ids=["cosine", "step", "dropout", "clipping"],
)
def test_schedules_dropout_and_clipping_resume_where_they_were(tmp_path, options):
    dropout = options.pop("dropout", 0.0)
    unbroken, optimizer = model_and_optimizer(dropout=dropout)
    wanted = fit(unbroken, optimizer, SCORES, **options)
    with pytest.raises(Crash):
        fit(*model_and_optimizer(dropout=dropout), SCORES, checkpoint=tmp_path / "run", crash_in=3, **options)
    torch.rand(7)  # the global state is another one by now
    resumed, optimizer = model_and_optimizer(seed=77, dropout=dropout)
    assert fit(resumed, optimizer, SCORES[3:], checkpoint=tmp_path / "run", resume=True, **options) == wanted
    assert equal(weights(resumed), weights(unbroken))
    plain, optimizer = model_and_optimizer()
    fit(plain, optimizer, SCORES)
    assert not equal(weights(plain), weights(unbroken)), "the option has an effect at all"


def test_dropout_is_drawn_from_the_seed_and_leaves_the_global_state_alone():
    ends = []
    for seed in (0, 0, 1):
        model, optimizer = model_and_optimizer(dropout=0.5)
        before = torch.get_rng_state()
        fit(model, optimizer, epochs=1, seed=seed)
        assert torch.equal(torch.get_rng_state(), before)
        ends.append(weights(model))
    assert equal(ends[0], ends[1]) and not equal(ends[0], ends[2])


OPTIMIZERS = {
    "adam, fused": lambda p: torch.optim.Adam(p, 1e-2, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-2),
    "sgd": lambda p: torch.optim.SGD(p, 1e-2),
    "sgd, momentum": lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-3),
}


@pytest.mark.parametrize("optimizer_of", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_a_convolution_in_channels_last_with_a_loss_of_its_own_resumes_alike(tmp_path, optimizer_of):
    """Optimiser states come back in the layout of their weights; a fused optimiser would mix them up otherwise."""

    def run(crash_in=None, checkpointing=None):
        model = seeded_weights(0, lambda: nn.ModuleDict({"encoder": nn.Conv2d(3, 5, 3), "loss": nn.Linear(5, 1)}))
        model["encoder"].to(memory_format=torch.channels_last)

        def batches(epoch):
            if epoch == crash_in:
                raise Crash
            return [torch.randn(4, 3, 6, 6, generator=torch.Generator().manual_seed(epoch + 10 * i)) for i in range(2)]

        fit_model(
            model,
            optimizer_of(model.parameters()),
            FitSettings(epochs=5),
            batches=batches,
            loss=lambda x: model["loss"](model["encoder"](x).mean(dim=(2, 3))).square().mean(),
            checkpointing=checkpointing,
        )
        return weights(model)

    wanted = run()
    with pytest.raises(Crash):
        run(crash_in=3, checkpointing=Checkpointing(tmp_path / "run"))
    assert equal(run(checkpointing=Checkpointing(tmp_path / "run", resume=True)), wanted)


def test_a_finished_run_is_resumed_to_itself_without_training(tmp_path):
    checkpoint = tmp_path / "run.checkpoint"
    model, optimizer = model_and_optimizer()
    wanted = fit(model, optimizer, SCORES, checkpoint=checkpoint)
    again, optimizer = model_and_optimizer(seed=77)
    assert fit(again, optimizer, [], checkpoint=checkpoint, resume=True, crash_in=7) == wanted
    assert equal(weights(again), weights(model))


def test_without_resume_an_old_checkpoint_is_replaced_not_read(tmp_path):
    checkpoint = tmp_path / "run.checkpoint"
    fit(*model_and_optimizer(), epochs=1, checkpoint=checkpoint, fingerprint="something old")
    model, optimizer = model_and_optimizer()
    fit(model, optimizer, epochs=2, checkpoint=checkpoint)
    assert equal(weights(model), weights_after(2))
    assert fit(*model_and_optimizer(), epochs=2, checkpoint=checkpoint, resume=True).epoch == 2


@pytest.mark.parametrize("content", [b"years of work", b"\0" * 99])
def test_a_file_of_another_program_is_no_checkpoint_and_is_never_replaced(tmp_path, content):
    (tmp_path / "run.checkpoint").write_bytes(content)
    with pytest.raises(FileError, match=r"run\.checkpoint is not what Entourage writes .*never replaced"):
        fit(*model_and_optimizer(), epochs=1, checkpoint=tmp_path / "run.checkpoint")
    assert (tmp_path / "run.checkpoint").read_bytes() == content


def test_a_checkpoint_cut_short_is_replaced(tmp_path):
    fit(*model_and_optimizer(), epochs=1, checkpoint=tmp_path / "run.checkpoint")
    for length in (0, 100):
        os.truncate(tmp_path / "run.checkpoint", length)
        fit(*model_and_optimizer(), epochs=1, checkpoint=tmp_path / "run.checkpoint")


def test_resuming_without_a_checkpoint_starts_from_the_beginning(tmp_path):
    model, optimizer = model_and_optimizer()
    fit(model, optimizer, epochs=2, checkpoint=tmp_path / "new", resume=True)
    assert equal(weights(model), weights_after(2))


def test_a_checkpoint_of_other_data_or_settings_is_refused(tmp_path):
    checkpoint = tmp_path / "run.checkpoint"
    fit(*model_and_optimizer(), epochs=1, checkpoint=checkpoint, fingerprint="these")
    with pytest.raises(FileError, match="other data or settings"):
        fit(*model_and_optimizer(), epochs=2, checkpoint=checkpoint, fingerprint="those", resume=True)


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b"\0" * len(b)])
def test_a_damaged_checkpoint_is_refused_with_the_remedy(tmp_path, damage):
    checkpoint = tmp_path / "run.checkpoint"
    fit(*model_and_optimizer(), epochs=1, checkpoint=checkpoint)
    checkpoint.write_bytes(damage(checkpoint.read_bytes()))
    with pytest.raises(FileError, match="delete it and start again"):
        fit(*model_and_optimizer(), epochs=2, checkpoint=checkpoint, resume=True)


def test_no_temporary_file_is_left_beside_the_checkpoint(tmp_path):
    fit(*model_and_optimizer(), epochs=2, checkpoint=tmp_path / "run.checkpoint")
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]
