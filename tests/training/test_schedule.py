"""Learning rates over the epochs."""

import pytest
import torch

from entourage.errors import InputError
from entourage.training.schedule import build_schedule, cosine_schedule, step_schedule


def rates(scheduler_of, epochs: int) -> list[float]:
    """What torch's own scheduler gives, epoch by epoch."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)
    scheduler = scheduler_of(optimizer)
    found = []
    for _ in range(epochs):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def test_cosine_is_that_of_torch():
    wanted = rates(lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7), 7)
    assert [cosine_schedule(7)(epoch) for epoch in range(1, 8)] == pytest.approx(wanted)


def test_steps_are_those_of_torch():
    wanted = rates(lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 5], 0.5), 7)
    assert [step_schedule([2, 5], 0.5)(epoch) for epoch in range(1, 8)] == pytest.approx(wanted)


def test_schedules_by_name():
    assert build_schedule("constant", 5) is None
    assert build_schedule("cosine", 5)(3) == cosine_schedule(5)(3)
    assert build_schedule("step", 5, [2])(3) == pytest.approx(0.1)
    assert build_schedule("step", 5, [2], 0.5)(3) == pytest.approx(0.5)


def test_rates_grow_linearly_before_a_schedule_goes_on_as_it_would():
    constant, steps = build_schedule("constant", 9, warmup=4), build_schedule("step", 9, [2, 6], warmup=4)
    assert [constant(epoch) for epoch in range(1, 7)] == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    assert [steps(epoch) for epoch in (1, 3, 5, 7)] == pytest.approx([0.25, 0.075, 0.1, 0.01])


@pytest.mark.parametrize(
    ("name", "after", "said"),
    [
        ("linear", (), "'linear'; wanted one of constant, cosine, step"),
        ("step", (), "without step_after"),
        ("cosine", (3,), r"step_after is \[3\]; wanted step_after for .step. only"),
    ],
)
def test_what_is_no_schedule_is_refused(name, after, said):
    with pytest.raises(InputError, match=said):
        build_schedule(name, 5, after)
