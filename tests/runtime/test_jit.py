"""Compiled functions: what they say, and where they cannot be kept."""

import os
import subprocess
import sys

import numba

from entourage.runtime.jit import compiled


def test_a_function_is_compiled_where_no_cache_can_be_written(monkeypatch):
    def refuse(*args, cache=False, **kwargs):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: ("compiled", kwargs)

    monkeypatch.setattr(numba, "njit", refuse)
    assert compiled(lambda: None) == ("compiled", {"nogil": True})
    assert compiled(fastmath=True)(lambda: None) == ("compiled", {"nogil": True, "fastmath": True})


def test_what_is_compiled_computes_the_same():
    @compiled
    def double(x):
        return 2 * x

    assert double(21) == double.py_func(21) == 42


REFINE = """
import logging
import numpy as np
import torch
from entourage.refiner.paper.attention import CrossAttention
from entourage.runtime.progress import terminal_progress
logging.basicConfig(level="INFO", format="%(name)s %(message)s")
with terminal_progress():
    block = CrossAttention(4)
    block.refined(torch.ones(3, 4), block.offer(torch.ones(3, 4)), torch.zeros(3, 2, dtype=torch.int64))
"""


def test_only_the_first_call_compiles_and_it_says_so(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", REFINE], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    lines = first.stderr.splitlines()
    functions = [line for line in lines if line.startswith("entourage compiling ")]
    assert 1 <= lines.count("compiling, once") < len(functions)  # not for each of them, but again where it takes long
    assert "entourage compiling entourage.refiner.gathering._attend, once" in lines
    assert second.stderr == ""
