"""The memory that a piece of work took at most."""

import os

import numpy as np
import pytest

from entourage.compare.memory import peak_memory

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system does not measure it")
def test_peak_memory_is_what_the_work_held_at_most():
    with peak_memory() as peak:
        np.ones(8_000_000)  # 61 MB, gone at once
    assert 50 < peak.mb < 90
    with peak_memory() as peak:
        np.ones(16)
    assert peak.mb < 20


def test_peak_memory_is_unknown_where_the_system_does_not_measure_it(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    with peak_memory() as peak:
        pass
    assert peak.mb is None
