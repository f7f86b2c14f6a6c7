import pytest
import torch

from entourage.encoders.pooling import GeneralisedMean, pooling_layer

MAPS = torch.tensor([[[[1.0, 2.0], [3.0, 6.0]]]])  # (1, 1, 2, 2)


@pytest.mark.parametrize(
    ("name", "value"), [("average", 3.0), ("max", 6.0), ("average+max", 9.0), ("gem", (252 / 4) ** (1 / 3))]
)
def test_values_by_hand(name, value):
    torch.testing.assert_close(pooling_layer(name)(MAPS), torch.tensor([[value]]))


def test_the_generalised_mean_goes_from_average_to_maximum():
    torch.testing.assert_close(GeneralisedMean(1.0)(MAPS), torch.tensor([[3.0]]))
    torch.testing.assert_close(GeneralisedMean(40.0)(MAPS), torch.tensor([[6.0]]), atol=0.3, rtol=0)


def test_the_power_learns_and_negative_values_do_no_harm():
    layer = GeneralisedMean()
    layer(MAPS - 2).sum().backward()
    assert torch.isfinite(layer.p.grad) and layer.p.grad != 0
