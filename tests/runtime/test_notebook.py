"""Progress in a notebook: bars of tqdm where a kernel runs and can draw them, lines elsewhere."""

import sys
from types import SimpleNamespace

import pytest

from entourage.runtime import notebook, progress
from entourage.runtime.notebook import notebook_bars, notebook_shows_bars


class ZMQInteractiveShell:
    """What a kernel's shell is called."""


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    monkeypatch.setattr(notebook, "is_installed", lambda library: True)


@pytest.fixture
def bars(monkeypatch):
    """The bars that were made, drawn as text."""
    tqdm = pytest.importorskip("tqdm")
    made = []

    class Bar(tqdm.tqdm):
        def __init__(self, **options):
            super().__init__(**options, file=open("/dev/null", "w"))  # noqa: SIM115
            made.append(self)

        def close(self):
            if not self.disable:
                self.fp.close()
            self.disable = True

    monkeypatch.setitem(sys.modules, "tqdm.notebook", SimpleNamespace(tqdm=Bar))
    return made


def test_bars_are_for_kernels_that_can_draw_them(kernel, monkeypatch):
    assert notebook_shows_bars()
    monkeypatch.setattr(notebook, "is_installed", lambda library: library != "ipywidgets")
    assert not notebook_shows_bars()


def test_a_program_that_is_no_notebook_shows_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not notebook_shows_bars()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not notebook_shows_bars()


def test_there_is_a_bar_for_each_kind_of_work_and_more_of_a_kind_begins_anew(bars):
    with notebook_bars() as show:
        for done in range(4):
            show("searching", done, 3)
        show("refining (step 1)", 1, 2)
        show("refining (step 2)", 2, 2)
        assert [(bar.desc, bar.n, bar.total) for bar in bars] == [("searching: ", 3, 3), ("refining (step 2): ", 2, 2)]
        show("searching", 1, 5)
        assert (bars[0].n, bars[0].total) == (1, 5)
    assert all(bar.disable for bar in bars)


def test_in_a_notebook_progress_is_shown_as_bars(kernel, bars, monkeypatch, capsys):
    monkeypatch.setattr(progress, "standard_error_is_a_terminal", lambda: False)
    with progress.terminal_progress() as show:
        show("searching", 1, 2)
    assert [bar.n for bar in bars] == [1]
    assert capsys.readouterr().err == ""
