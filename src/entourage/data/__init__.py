"""Datasets by name, one module each; a module offers load(split, **options) -> Images."""

from importlib import import_module

from entourage.errors import InputError
from entourage.values import Images

__all__ = ["DATASETS", "load"]

DATASETS = {"glyphs": "entourage.data.glyphs"}


def load(name: str, split: str, **options) -> Images:
    """The named dataset's split; the options are those of its module.

    >>> len(load("glyphs", "test", per_class=2, max_classes=3))
    6
    """
    if name not in DATASETS:
        raise InputError(f"dataset is {name!r}; known are: {', '.join(sorted(DATASETS))}: use one of them")
    return import_module(DATASETS[name]).load(split, **options)
