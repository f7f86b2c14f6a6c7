"""Warnings as texts: each once, at once, and only ours."""

import warnings

import pytest

from entourage.errors import EntourageWarning
from entourage.runtime.warnings import collected_warnings


def test_our_warnings_are_heard_once_each_and_told_at_once():
    shown = []
    with collected_warnings(shown.append) as messages:
        for text in ("few items", "one class", "few items"):
            warnings.warn(text, EntourageWarning, stacklevel=1)
            assert shown == messages
    assert messages == ["few items", "one class"]


def test_other_warnings_go_where_they_went_before():
    with pytest.warns(DeprecationWarning, match="old"), collected_warnings() as messages:
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    with pytest.warns(EntourageWarning, match="afterwards"):
        warnings.warn("afterwards", EntourageWarning, stacklevel=1)
    assert messages == []


@pytest.mark.parametrize("shown", [False, True])
def test_what_was_collected_before_an_error_is_not_lost(shown):
    told = []
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always", EntourageWarning)
        with pytest.raises(ValueError, match="no such model"), collected_warnings(told.append if shown else None):
            warnings.warn("few items", EntourageWarning, stacklevel=1)
            raise ValueError("no such model")
    assert told == ["few items"] * shown
    assert [str(each.message) for each in again] == ["few items"] * (not shown)
