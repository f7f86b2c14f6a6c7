"""Numbers drawn from a seed: the same every time, in any thread, with the caller's random state left alone."""

import ast
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import torch
from torch import nn

import entourage
from entourage.runtime.randomness import generator, seeded_weights, torch_generator, torch_randomness

ROOT = Path(entourage.__file__).parent
OWN = {"default_rng", "SeedSequence", "RandomState", "manual_seed", "fork_rng", "set_rng_state"}


def names_used(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in nodes}


def test_no_other_module_seeds_anything_itself():
    found = {str(path.relative_to(ROOT)): names_used(path) & OWN for path in ROOT.rglob("*.py")}
    assert {path for path, names in found.items() if names} == {"runtime/drawing.py", "runtime/randomness.py"}


def test_the_module_loads_no_torch():
    code = "import sys, entourage.runtime.randomness as r; r.generator(0).random(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("seed", [0, 5, 2**31, np.int64(3)])
def test_a_seed_alone_draws_what_numpy_draws_from_it(seed):
    assert generator(seed).random() == np.random.default_rng(seed).random()
    assert generator(seed, 7).random() == np.random.default_rng([seed, 7]).random()


def test_streams_of_one_seed_differ_in_torch_too():
    draws = [torch.rand(3, generator=torch_generator(0, *stream)).tolist() for stream in ((), (1,), (2,), (1, 1))]
    assert len({tuple(draw) for draw in draws}) == 4
    assert torch.equal(
        torch.rand(3, generator=torch_generator(9)), torch.rand(3, generator=torch.Generator().manual_seed(9))
    )


def test_the_global_state_is_what_it_was_also_after_an_error():
    torch.manual_seed(42)
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), torch_randomness(0, 3):
        torch.rand(5)
        raise ZeroDivisionError
    seeded_weights(1, lambda: nn.Linear(3, 3))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_block_inside_a_block_goes_back_to_the_outer_one():
    with torch_randomness(0, 1):
        wanted = torch.rand(4)
    with torch_randomness(0, 1):
        first = torch.rand(2)
        with torch_randomness(5):
            torch.rand(3)
        assert torch.equal(torch.cat([first, torch.rand(2)]), wanted[:4])


def in_four_threads(work) -> list:
    """What work(number) gives for 0..3, all started at the same moment."""
    together = Barrier(4)

    def begin(number):
        together.wait()
        return work(number)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(begin, range(4)))


def test_weights_and_dropout_in_four_threads_are_those_of_one_alone():
    dropout = nn.Dropout(0.5)

    def work(number):
        layers = [seeded_weights(number, lambda: nn.Linear(64, 64)).weight.detach() for _ in range(20)]
        kept = []
        for epoch in range(20):
            with torch_randomness(number, epoch):
                kept += [dropout(torch.ones(50)) for _ in range(3)]
        return torch.cat([torch.stack(layers).flatten(), torch.cat(kept)])

    alone = [work(number) for number in range(4)]
    before = torch.get_rng_state()
    assert all(torch.equal(one, other) for one, other in zip(in_four_threads(work), alone, strict=True))
    assert torch.equal(torch.get_rng_state(), before)
