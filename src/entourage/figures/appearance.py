"""How the items of a set look in a figure: as pictures, as texts, or, where neither is known, by their ids."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from entourage.errors import CorruptImage, InputError
from entourage.values import LabelArray

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Appearance", "Items", "same_label"]


class Items(Protocol):
    """Items that can be shown: Embeddings and image sets; they may also have `picture`, `cameras` and `sequences`."""

    @property
    def ids(self) -> LabelArray:
        """(N,) integers or texts, unique."""

    @property
    def labels(self) -> LabelArray | None:
        """(N,) integers or texts, or None where unknown."""


@dataclass(frozen=True, eq=False)
class Appearance:
    """How N items are shown; those that have both a picture and a text are shown as pictures.

    Examples
    --------
    >>> import numpy as np
    >>> shown = Appearance(np.array([7, 8]), labels=np.array(["cat", "dog"]))
    >>> shown.kind, shown.name(1), Appearance(np.array([7, 8])).name(1)
    ('ids', 'dog', '8')
    """

    ids: LabelArray
    """(N,) integers or texts, unique."""
    labels: LabelArray | None = None
    """(N,) integers or texts, or None where unknown."""
    picture: "Callable[[int], Image] | None" = None
    """Gives the picture of a row as a PIL image; None if there are no pictures."""
    texts: Sequence[str] | None = None
    """N texts, or None if there are none."""
    cameras: LabelArray | None = None
    """(N,) where known; items of the query's label and camera are shown as neither right nor wrong."""
    sequences: LabelArray | None = None
    """(N,) where known; items of the query's sequence are shown as neither right nor wrong."""

    def __post_init__(self) -> None:
        for name in ("labels", "texts", "cameras", "sequences"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.ids):
                raise InputError(
                    f"{len(values)} {name} for {len(self.ids)} ids; wanted one of each per item, in the same order"
                )

    @classmethod
    def of(cls, items: Items, *, texts: Sequence[str] | None = None) -> "Appearance":
        """Take what is known of items.

        Parameters
        ----------
        items : image set or Embeddings
            N items; those of an image set have pictures.
        texts : sequence of N str, optional

        Returns
        -------
        Appearance
        """
        picture, cameras, sequences = (getattr(items, name, None) for name in ("picture", "cameras", "sequences"))
        return cls(items.ids, items.labels, picture, texts, cameras, sequences)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def kind(self) -> str:
        """What the items are shown as: "pictures", "texts" or "ids"."""
        return "pictures" if self.picture else "texts" if self.texts is not None else "ids"

    def name(self, row: int) -> str:
        """The name of an item: its label if known, else its id."""
        return str((self.ids if self.labels is None else self.labels)[row])

    def text(self, row: int) -> str:
        """What is shown in place of a picture: the text of an item if there is one, else its id."""
        return str(self.ids[row] if self.texts is None else self.texts[row])

    def thumbnail(self, row: int, side: int = 160) -> "Image | None":
        """The picture of an item, no side longer than `side` pixels; None if it has none or if its file is damaged."""
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
    """Whether a gallery item counts as right for a query, as scores count it.

    Parameters
    ----------
    query, row
        The query: row `row` of the items `query`.
    gallery, other
        The gallery item: row `other` of the items `gallery`.

    Returns
    -------
    bool or None
        None where a label is unknown, and for items that scores leave out (see `evaluation.exclusions`): items of the
        query's own sequence, and items of its label from its own camera.
    """
    right = _same(query.labels, row, gallery.labels, other)
    by_camera = right and _same(query.cameras, row, gallery.cameras, other)
    return None if by_camera or _same(query.sequences, row, gallery.sequences, other) else right


def _same(left: LabelArray | None, row: int, right: LabelArray | None, other: int) -> bool | None:
    """Whether two values are equal, compared as `values.shared_codes` does: 9 equals "9". None where one is unknown."""
    if left is None or right is None:
        return None
    if left.dtype.kind != right.dtype.kind:
        return str(left[row]) == str(right[other])
    return bool(left[row] == right[other])
