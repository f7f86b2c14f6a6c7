"""The message-passing network against torch's own blocks and against the equations, item by item."""

import math

import pytest
import torch
from torch import nn

from entourage.errors import InputError
from entourage.systems.intra_batch.network import MessagePassing, Messages, Step

pytestmark = pytest.mark.usefixtures("one_thread")

SIZE, DIM = 7, 12


def group(*shape, seed=0) -> torch.Tensor:
    return torch.randn(*shape, SIZE, DIM, generator=torch.Generator().manual_seed(seed))


def as_torch(messages: Messages) -> nn.MultiheadAttention:
    theirs = nn.MultiheadAttention(DIM, messages.heads, batch_first=True)
    parts = (messages.query, messages.key, messages.value)
    theirs.in_proj_weight.data = torch.cat([part.weight for part in parts]).data
    theirs.in_proj_bias.data = torch.cat([part.bias for part in parts]).data
    theirs.out_proj.load_state_dict(messages.out.state_dict())
    return theirs.eval()


def shaken(module: nn.Module) -> nn.Module:
    """Biases too are not 0, and norms not 1: otherwise they would not be compared."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return module.eval()


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_messages_are_those_of_torchs_multi_head_attention(heads):
    messages, receivers, senders = shaken(Messages(DIM, heads)), group(3)[:, :2], group(3, seed=1)
    wanted, _ = as_torch(messages)(receivers, senders, senders, need_weights=False)
    torch.testing.assert_close(messages(receivers, senders), wanted, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(messages(receivers[0], senders[0]), wanted[0], atol=1e-5, rtol=1e-5)


def test_messages_are_those_of_the_equations():
    messages, h = shaken(Messages(DIM, 3)), group()
    width, mixed = DIM // 3, torch.zeros(SIZE, DIM)
    for head in range(3):
        own = slice(head * width, (head + 1) * width)
        query, key, value = (part(h)[:, own] for part in (messages.query, messages.key, messages.value))
        for i in range(SIZE):
            scores = torch.stack([query[i] @ key[j] / math.sqrt(width) for j in range(SIZE)])
            weights = scores.exp() / scores.exp().sum()
            mixed[i, own] = sum(weights[j] * value[j] for j in range(SIZE))
    torch.testing.assert_close(messages(h, h), messages.out(mixed), atol=1e-5, rtol=1e-5)


def test_a_step_is_torchs_encoder_layer():
    step = shaken(Step(DIM, 2, feed_forward=4))
    theirs = nn.TransformerEncoderLayer(DIM, 2, 4 * DIM, batch_first=True)
    theirs.self_attn = as_torch(step.messages)
    for name, part in {
        "linear1": step.feed_forward[0],
        "linear2": step.feed_forward[3],
        "norm1": step.after_messages,
        "norm2": step.after_feed_forward,
    }.items():
        getattr(theirs, name).load_state_dict(part.state_dict())
    h = group(3)
    torch.testing.assert_close(step(h), theirs.eval()(h), atol=1e-5, rtol=1e-5)


def test_the_network_is_its_steps_one_after_the_other_and_groups_do_not_meet():
    network, h = shaken(MessagePassing(DIM, steps=3, heads=2)), group(4)
    first, second, third = network.steps
    assert torch.equal(network(h[1]), third(second(first(h[1]))))
    torch.testing.assert_close(network(h)[1], network(h[1]), atol=1e-6, rtol=1e-5)


def test_the_order_of_a_group_does_not_matter():
    network, h, order = shaken(MessagePassing(DIM, 2)), group(), torch.randperm(SIZE)
    torch.testing.assert_close(network(h[order]), network(h)[order], atol=1e-5, rtol=1e-5)


def test_dropout_is_for_training_alone():
    network, h = MessagePassing(DIM, dropout=0.5), group()
    assert not torch.equal(network(h), network(h))
    assert torch.equal(network.eval()(h), network(h))


def test_attention_weights_are_dropped_too():
    messages, h = Messages(DIM, heads=2, dropout=0.5), group()
    assert not torch.equal(messages(h, h), messages(h, h))
    assert torch.equal(messages.eval()(h, h), messages(h, h))


def test_heads_that_do_not_divide_the_dimensions_are_refused():
    with pytest.raises(InputError, match="12 dimensions, which 5 heads do not divide evenly"):
        MessagePassing(DIM, heads=5)
