"""The memory that a piece of work took at most."""

import numpy as np
import pytest

from entourage.compare.memory import peak_memory

pytestmark = pytest.mark.usefixtures("one_thread")


def test_peak_memory_is_what_the_work_held_at_most():
    with peak_memory() as peak:
        np.ones(8_000_000)  # 61 MB, gone at once
    assert peak.mb is None or 50 < peak.mb < 90


def test_peak_memory_is_unknown_where_the_system_does_not_tell(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    with peak_memory() as peak:
        pass
    assert peak.mb is None
