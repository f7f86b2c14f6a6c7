"""What torch draws inside a block: what its global state would have given, with the global state left alone."""

from threading import Event, Thread

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from entourage.runtime.drawing import DrawingFrom, DrawingWhereNeeded, _device

ONES = torch.ones(6)
DRAWING = {
    "linear": lambda: nn.Linear(5, 5).weight.detach(),
    "convolution": lambda: nn.Conv2d(2, 3, 3).weight.detach(),
    "embedding": lambda: nn.Embedding(4, 3).weight.detach(),
    "transformer": lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5)(torch.ones(2, 3, 4)).detach(),
    "recurrent": lambda: nn.GRU(3, 4, 2, dropout=0.5)(torch.ones(2, 3))[0].detach(),
    "truncated": lambda: nn.init.trunc_normal_(torch.empty(4)),
    "orthogonal": lambda: nn.init.orthogonal_(torch.empty(3, 3)),
    "rand": lambda: torch.rand(3),
    "randn": lambda: torch.randn(3),
    "randint": lambda: torch.randint(9, (4,)),
    "randint from": lambda: torch.randint(2, 9, (4,)),
    "randperm": lambda: torch.randperm(7),
    "rand_like": lambda: torch.rand_like(ONES),
    "randn_like": lambda: torch.randn_like(ONES),
    "randint_like": lambda: torch.randint_like(ONES, 5),
    "bernoulli": lambda: torch.bernoulli(ONES / 2),
    "multinomial": lambda: torch.multinomial(ONES, 3),
    "normal": lambda: torch.normal(0.0, 1.0, (3,)),
    "normal of tensors": lambda: torch.normal(ONES, ONES),
    "poisson": lambda: torch.poisson(ONES),
    "exponential": lambda: torch.empty(3).exponential_(),
    "in place": lambda: torch.empty(3).random_(5),
    "dropout": lambda: F.dropout(ONES),
    "dropout of channels": lambda: nn.Dropout2d(0.5)(torch.ones(1, 5, 2, 2)),
    "alpha dropout": lambda: nn.AlphaDropout(0.3)(ONES),
    "attention": lambda: F.scaled_dot_product_attention(*torch.ones(3, 1, 2, 3, 4), dropout_p=0.5),
    "gumbel": lambda: F.gumbel_softmax(ONES),
    "rrelu": lambda: F.rrelu(-ONES, training=True),
    "pooling": lambda: F.fractional_max_pool2d(torch.arange(1e4).view(1, 100, 100), 2, output_size=37),
}
both_blocks = pytest.mark.parametrize("block", [DrawingFrom, DrawingWhereNeeded])


@both_blocks
@pytest.mark.parametrize("draw", DRAWING.values(), ids=DRAWING)
def test_a_block_draws_what_a_seeded_process_would(block, draw):
    with torch.random.fork_rng():
        torch.manual_seed(7)
        wanted = [draw(), draw()]
    before = torch.get_rng_state()
    with block(7):
        drawn = [draw(), draw()]
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(drawn, wanted, strict=True))
    assert not torch.equal(*drawn)


@both_blocks
def test_a_generator_of_the_callers_own_is_left_to_it(block):
    generator = torch.Generator().manual_seed(3)
    with block(7):
        drawn = torch.rand(4, generator=generator)
    assert torch.equal(drawn, torch.rand(4, generator=torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("outer", [DrawingFrom, DrawingWhereNeeded])
@pytest.mark.parametrize("inner", [DrawingFrom, DrawingWhereNeeded])
def test_a_block_inside_a_block_draws_its_own_and_the_outer_goes_on(outer, inner):
    with outer(1):
        whole = torch.rand(4)
    with inner(2):
        own = torch.rand(3)
    with outer(1):
        first = torch.rand(2)
        with inner(2):
            assert torch.equal(torch.rand(3), own)
        assert torch.equal(torch.cat([first, torch.rand(2)]), whole)


def test_a_block_entered_again_goes_on():
    with DrawingWhereNeeded(1):
        whole = torch.rand(4)
    block = DrawingWhereNeeded(1)
    with block:
        first = torch.rand(2)
    torch.rand(5)
    with block:
        assert torch.equal(torch.cat([first, torch.rand(2)]), whole)


def test_other_threads_draw_as_they_would_have():
    with torch.random.fork_rng():
        torch.manual_seed(5)
        wanted = torch.rand(200)
        torch.manual_seed(5)
        drawn, inside, done = [], Event(), Event()

        def draw_without_a_block():
            inside.wait()
            drawn.extend(torch.rand(1) for _ in range(200))
            done.set()

        thread = Thread(target=draw_without_a_block)
        thread.start()
        with DrawingWhereNeeded(1):
            inside.set()
            while not done.is_set():
                F.dropout(ONES)
        thread.join()
        assert torch.equal(torch.cat(drawn), wanted)


def test_gradients_and_devices_are_those_of_torch():
    layer, x = nn.Linear(6, 2), ONES.clone().requires_grad_()
    with DrawingWhereNeeded(1):
        layer(F.dropout(x)).sum().backward()
    kept = x.grad != 0
    assert kept.any() and not kept.all()


def test_names_of_one_device_share_a_generator():
    for block in (DrawingFrom, DrawingWhereNeeded):
        with block(1):
            whole = torch.rand(4)
        with block(1):
            assert torch.equal(torch.cat([torch.rand(2, device="cpu:0"), torch.rand(2)]), whole)


def test_a_card_without_a_number_is_the_current_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    drawn_on = {name: _device((), {"device": torch.device(name)}) for name in ("cuda", "cuda:1", "cuda:0", "mps")}
    wanted = {"cuda": "cuda:1", "cuda:1": "cuda:1", "cuda:0": "cuda:0", "mps": "mps:0"}
    assert {name: str(device) for name, device in drawn_on.items()} == wanted
