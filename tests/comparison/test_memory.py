"""The memory that a piece of work took at most."""

import os
import subprocess
import sys

import pytest

from entourage.comparison.memory import peak_memory

pytestmark = pytest.mark.usefixtures("one_thread")


MEASURE = """
import numpy as np
from entourage.comparison.memory import peak_memory

with peak_memory() as large:
    np.ones(8_000_000)  # 61 MB, gone at once
with peak_memory() as small:
    np.ones(16)
print(large.mb, small.mb)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system does not measure it")
def test_peak_memory_is_what_the_work_held_at_most():
    """In a process of its own: one that has done other work may give memory back, or use it again, meanwhile."""
    printed = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout
    large, small = map(float, printed.split())
    assert 50 < large < 90
    assert small < 20


def test_peak_memory_is_unknown_where_the_system_does_not_measure_it(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    with peak_memory() as peak:
        pass
    assert peak.mb is None
