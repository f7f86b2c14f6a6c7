"""Where the picture or the text of an item comes from, so that figures can show it instead of an id.

Pictures stay where they are and are loaded again when they are drawn; texts are kept in the run folder.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from entourage import data
from entourage.data.image_set import ImageSet
from entourage.errors import CorruptImage, EntourageError, EntourageWarning, InputError
from entourage.runs.matching import counts, places_of
from entourage.values import Embeddings

if TYPE_CHECKING:
    from PIL.Image import Image

    from entourage.figures.appearance import Appearance

__all__ = ["Media", "PictureSource", "appearance_of", "files_of", "load_pictures"]


@dataclass(frozen=True)
class PictureSource:
    """An image set as `data.load` takes it."""

    source: str
    """A dataset by name, a folder or a .csv."""
    root: str | None = None
    """The folder of datasets, or the folder that paths in a .csv are relative to."""
    split: str = "test"
    """The name of a split, or several separated by commas."""
    options: dict = field(default_factory=dict)
    """Options of the dataset."""

    @classmethod
    def located(
        cls, source: str, root: Path | None = None, split: str = "test", options: dict | None = None
    ) -> "PictureSource":
        """A source that is found from any working directory: paths are made absolute, names of datasets stay."""
        absolute = source if source in data.DATASETS else str(Path(source).absolute())
        return cls(absolute, None if root is None else str(root.absolute()), split, options or {})

    def load(self) -> list[ImageSet]:
        """Load an image set for each split."""
        sets: list[ImageSet] = []
        for split in self.split.split(","):
            images = data.load(self.source, split.strip(), self.root, **self.options)
            if isinstance(images, Embeddings):
                raise InputError(
                    f"{self.source} holds vectors; wanted pictures to show: name a folder, a .csv or a dataset"
                )
            sets.append(images)
        return sets


@dataclass(frozen=True)
class Media:
    """What stands for the items in figures: pictures, or texts; ids where neither is known."""

    pictures: PictureSource | None = None
    """Where the pictures of the items and of the gallery are."""
    texts: Sequence[str] | None = None
    """A text for each item."""
    context_texts: Sequence[str] | None = None
    """A text for each item of the gallery."""

    def __post_init__(self) -> None:
        if self.pictures is not None and self.texts is not None:
            raise InputError("pictures and texts are both given; wanted one of them to show: leave the other out")
        if self.context_texts is not None and self.texts is None:
            raise InputError("context_texts are given without texts; wanted those of the items, too: give texts")


def appearance_of(
    items: Embeddings, place: int, sets: list[ImageSet] | None, texts: Sequence[str] | None
) -> "Appearance":
    """Choose how items are shown: by pictures, texts or ids.

    Parameters
    ----------
    items : Embeddings
        N items; items with ids of their own are matched with pictures by id, others by position.
    place : int
        0 for the items, 1 for their gallery: which of the sets holds their pictures.
    sets : list of ImageSet, optional
        Image sets to take pictures from.
    texts : sequence of N str, optional
        A text for each item.

    Returns
    -------
    Appearance
        How each of the N items is shown.
    """
    from entourage.figures.appearance import Appearance

    picture = None if sets is None else _picture_of(items, place, sets)
    return Appearance(items.ids, items.labels, picture, texts, items.cameras, items.sequences)


def load_pictures(source: PictureSource) -> list[ImageSet] | None:
    """Load the image sets; None and a warning where they no longer exist."""
    try:
        return source.load()
    except (EntourageError, OSError) as error:
        warnings.warn(
            f"the pictures of {source.source} cannot be loaded again, and ids are shown instead: {error}",
            EntourageWarning,
            stacklevel=2,
        )
        return None


def files_of(sets: Iterable[object]) -> list[Path]:
    """Return the files of all pictures of image sets; those in memory have none."""
    return [path for images in sets for path in getattr(images, "paths", ())]


def _picture_of(items: Embeddings, place: int, sets: list[ImageSet]) -> "Callable[[int], Image] | None":
    """A function of a row that gives its picture, or raises CorruptImage; None where no item has one."""
    found = places_of(items, place, sets)
    if found is None:
        text = f"there are {counts(sets)} pictures for {len(items)} items, and no ids in common; ids are shown"
        warnings.warn(text, EntourageWarning, stacklevel=4)
        return None
    missing = [row for row, each in enumerate(found) if each is None]
    if missing:
        text = (
            f"{len(missing)} of {len(items)} items have no picture, the first is {items.ids[missing[0]]}; ids are shown"
        )
        warnings.warn(text, EntourageWarning, stacklevel=4)

    def picture(row: int) -> "Image":
        known = found[row]
        if known is None:
            raise CorruptImage(items.ids[row], "there is no picture of this id")
        images, place = known
        return images.picture(place)

    return picture
