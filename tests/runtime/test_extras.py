"""Optional libraries: what is missing is named with the line that installs it."""

import sys

import pytest

from entourage.errors import MissingExtra
from entourage.runtime.extras import as_missing_extra, needs_training, require


@pytest.mark.parametrize(("library", "extra"), [("torch", "train"), ("transformers", "images")])
def test_a_library_that_is_not_installed_is_refused_with_its_extra(monkeypatch, library, extra):
    require(library, "this")
    monkeypatch.setitem(sys.modules, library, None)  # what Python says of a library that is not installed
    with pytest.raises(MissingExtra, match=rf"^this needs .*pip install 'entourage\[{extra}\]'$"):
        require(library, "this")


def test_an_import_that_failed_names_the_extra_or_stays_what_it_is():
    of_torch = ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
    assert str(as_missing_extra(of_torch, "this")).endswith("'entourage[train]'")
    assert as_missing_extra(ModuleNotFoundError("no", name="torchvision"), "this") is None
    with pytest.raises(MissingExtra, match="learning needs"), needs_training("learning"):
        raise of_torch
    with pytest.raises(ModuleNotFoundError, match=r"^no$"), needs_training("learning"):
        raise ModuleNotFoundError("no", name="torchvision")
