"""What precedes the training of an encoder: the sets it learns from and is tested on, and whether they will do."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from entourage import data
from entourage.data.image_set import Items
from entourage.errors import InputError
from entourage.evaluation.exclusions import any_match
from entourage.runtime.progress import Progress
from entourage.systems.settings import EncoderSettings
from entourage.training.sampling import usable_classes
from entourage.values import LabelArray, labels_of

__all__ = ["check_pictures", "load_sets", "with_encoder"]

Settings = TypeVar("Settings", bound=EncoderSettings)


def load_sets(source: str | Path, root: str | Path | None, options: dict) -> tuple[Items, dict[str, Items]]:
    """Load the training set, and the test sets by name: test, or query and gallery.

    Parameters
    ----------
    source : str or path
        A dataset, folder, .csv or file of vectors, as `data.load` takes it.
    root : path or None
        The folder of datasets, or the folder that paths in a .csv are relative to.
    options : dict
        Options of the dataset.

    Returns
    -------
    training : ImageSet or Embeddings
    tests : dict of ImageSet or Embeddings
    """
    data.check_option_names(options)
    names = data.splits(source, root, **options)
    training = data.load(source, "train", root, **options)
    tests: dict[str, Items] = {name: data.load(source, name, root, **options) for name in names if name != "train"}
    queries, gallery = tests[names[1]], tests[names[-1]]
    if not any_match(queries, gallery):
        raise InputError(
            f"no test picture of {source} has another of its class to find, so every score would be 0; "
            "wanted test classes of two pictures or more (by two cameras, or in two sequences, where these are known)"
        )
    _check_enough(source, labels_of(training), np.concatenate([labels_of(queries), labels_of(gallery)]))
    return training, tests


def with_encoder(settings: Settings, items: Items) -> Settings:
    """The settings with the encoder that "auto" stands for, so that the run says which it is."""
    if settings.encoder != "auto":
        return settings
    from entourage.encoders.saving import small_encoder_for

    return replace(settings, encoder=small_encoder_for(items))


def check_pictures(sets: Iterable[Items], workers: int | None, progress: Progress | None) -> None:
    """Refuse the first picture of the image sets that cannot be decoded: now, not after hours of training."""
    from entourage.data.decoding import check_decodable  # here: torch takes seconds

    for images in sets:
        check_decodable(images, workers=workers, progress=progress)


def _check_enough(source: str | Path, trained: LabelArray, tested: LabelArray) -> None:
    """Two classes to learn from, or a sentence that says where the others are."""
    learned, train = len(usable_classes(trained)), len(np.unique(trained))
    total = len({*trained.tolist(), *tested.tolist()})
    if learned < 2:
        raise InputError(
            f"{train} of the {total} classes of {source} are for training, and {learned} of these have two or more "
            "items; wanted two such classes: add items, or raise the share of training classes where the data do not "
            "fix it (--data-option train_share=0.7)"
        )
