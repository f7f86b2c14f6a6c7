"""How much memory there is to be used, wherever it is told."""

import pytest

from entourage.runtime import memory

TOLD = """MemTotal:       16000000 kB
MemFree:          100000 kB
MemAvailable:   12000000 kB
"""


def test_files_that_are_kept_in_memory_count_as_free(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text(TOLD)
    monkeypatch.setattr(memory, "_TOLD", tmp_path / "meminfo")
    assert memory.free_memory() == 12_000_000 * 1024


@pytest.mark.parametrize("told", [None, "", "MemFree: 1 kB\n", "MemAvailable: many\n", "no colon\n"])
def test_where_that_is_not_told_free_pages_are_counted(tmp_path, monkeypatch, told):
    if told is not None:
        (tmp_path / "meminfo").write_text(told)
    monkeypatch.setattr(memory, "_TOLD", tmp_path / "meminfo")
    monkeypatch.setattr(memory.os, "sysconf", {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert memory.free_memory() == 40960


def test_where_nothing_is_told_there_is_little(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_TOLD", tmp_path / "nothing")
    monkeypatch.delattr(memory.os, "sysconf", raising=False)
    assert memory.free_memory() == 2**31
