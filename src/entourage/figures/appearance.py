"""How the items of a set look in a figure: as pictures, as texts, or, where neither is known, by their ids."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from entourage.errors import CorruptImage, InputError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Appearance", "same_label"]


@dataclass(frozen=True, eq=False)
class Appearance:
    """N items: ids (N,); labels (N,) where known; picture(row), a PIL image, or texts (N,), or neither.

    Items that have both a picture and a text are shown as pictures. cameras and sequences, (N,) each where known, say
    which items scores leave out (see shots.py).

    >>> shown = Appearance(np.array([7, 8]), labels=np.array(["cat", "dog"]))
    >>> shown.kind, shown.name(1), Appearance(np.array([7, 8])).name(1)
    ('ids', 'dog', '8')
    """

    ids: np.ndarray
    labels: np.ndarray | None = None
    picture: "Callable[[int], Image] | None" = None
    texts: Sequence[str] | None = None
    cameras: np.ndarray | None = None
    sequences: np.ndarray | None = None

    def __post_init__(self):
        for name in ("labels", "texts", "cameras", "sequences"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.ids):
                raise InputError(f"there are {len(values)} {name} for {len(self.ids)} ids; wanted one of each per item")

    @classmethod
    def of(cls, items, *, texts: Sequence[str] | None = None) -> "Appearance":
        """From an image set (ids, labels, picture) or from Embeddings (ids, labels), with cameras and sequences."""
        picture, *shots = (getattr(items, name, None) for name in ("picture", "cameras", "sequences"))
        return cls(items.ids, items.labels, picture, texts, *shots)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def kind(self) -> str:
        """What the items are shown as: "pictures", "texts" or "ids"."""
        return "pictures" if self.picture else "texts" if self.texts is not None else "ids"

    def name(self, row: int) -> str:
        """What an item is called: its label if known, else its id."""
        return str((self.ids if self.labels is None else self.labels)[row])

    def text(self, row: int) -> str:
        """What stands for an item without a picture: its text if there is one, else its id."""
        return str(self.ids[row] if self.texts is None else self.texts[row])

    def thumbnail(self, row: int, side: int = 160) -> "Image | None":
        """The picture of an item, no side longer than `side` pixels; None if it has none or its file is damaged."""
        if self.picture is None:
            return None
        try:
            picture = self.picture(row)
        except CorruptImage:  # one bad file must not cost the whole figure: its id is shown
            return None
        picture = picture if picture.mode in ("L", "RGB") else _on_white(picture)
        if max(picture.size) <= side:
            return picture
        small = picture.copy()
        small.thumbnail((side, side))
        return small


def _on_white(picture: "Image") -> "Image":
    """In colours; what is transparent is as white as the paper, where it would become black."""
    from PIL import Image

    seen = picture.convert("RGBA")
    paper = Image.new("RGBA", seen.size, "white")
    paper.alpha_composite(seen)
    return paper.convert("RGB")


def same_label(query: Appearance, row: int, gallery: Appearance, other: int) -> bool | None:
    """Whether an item of the gallery is right for a query, as scores count it; None where a label is unknown, and for
    items that scores leave out: those of the query's own sequence, and right ones by its own camera.
    """
    right = _same(query.labels, row, gallery.labels, other)
    by_camera = right and _same(query.cameras, row, gallery.cameras, other)
    return None if by_camera or _same(query.sequences, row, gallery.sequences, other) else right


def _same(left: np.ndarray | None, row: int, right: np.ndarray | None, other: int) -> bool | None:
    """As values.shared_codes compares two columns: numbers match their text form. None where one is unknown."""
    if left is None or right is None:
        return None
    if left.dtype.kind != right.dtype.kind:
        return str(left[row]) == str(right[other])
    return bool(left[row] == right[other])
