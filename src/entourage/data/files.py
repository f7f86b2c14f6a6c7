"""Pictures on disk, decoded when they are asked for.

Only names are held: 100,000 pictures take some tens of megabytes, whatever their size.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.errors import CorruptImage, FileError, InputError
from entourage.runtime.extras import require
from entourage.stores.reading import regular
from entourage.values import brief, check_unique, checked_column, set_frozen

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["ImageFiles"]


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """An image set of files on disk."""

    root: Path
    """The folder that names start from."""
    names: np.ndarray
    """(N,) paths relative to the root."""
    labels: np.ndarray | None
    """(N,) the class of each, integers or text; None for pictures that are only embedded."""
    ids: np.ndarray = None  # type: ignore[assignment]  # an array once it is built
    """(N,) text, unique; by default the names."""
    boxes: np.ndarray | None = None
    """(N, 4) integers left, top, right, bottom: each picture is cropped to its box after it has been turned upright;
    four zeros leave it whole."""
    cameras: np.ndarray | None = None
    """(N,) which camera took each picture: one of the same label by the query's camera does not count as found."""
    sequences: np.ndarray | None = None
    """(N,) which sequence each picture belongs to, frames of one video for instance: a query does not find its own."""

    __repr__ = brief

    def __post_init__(self) -> None:
        count = len(self.names)
        names = checked_column(self.names, "names", count, "image").astype(str, copy=False)
        ids = names if self.ids is None else checked_column(self.ids, "ids", count, "image").astype(str, copy=False)
        check_unique(ids)
        known = {name: getattr(self, name) for name in ("labels", "cameras", "sequences")}
        columns = {
            name: None if values is None else checked_column(values, name, count, "image")
            for name, values in known.items()
        }
        boxes = None if self.boxes is None else _checked_boxes(self.boxes, ids)
        set_frozen(self, root=Path(self.root), names=names, ids=ids, boxes=boxes, **columns)

    def __len__(self) -> int:
        return len(self.names)

    def path(self, row: int) -> Path:
        """Where one picture lies."""
        return self.root / str(self.names[row])

    @property
    def paths(self) -> list[Path]:
        """Where every picture lies, in order."""
        return [self.root / name for name in self.names.tolist()]

    def picture(self, row: int) -> "Image":
        """Decode one picture.

        Parameters
        ----------
        row : int
            From 0 to N - 1.

        Returns
        -------
        PIL.Image.Image
            Upright, cropped to its box, grey (mode L) or in colour (RGB).

        Raises
        ------
        CorruptImage
            If the file is missing, truncated or no image.
        """
        box = None if self.boxes is None or not self.boxes[row].any() else self.boxes[row].tolist()
        return _decode(self.path(row), box)

    def take(self, rows: Any) -> "ImageFiles":
        """The given rows (n,), in the given order, with all that is known of them."""
        optional = {name: getattr(self, name) for name in ("labels", "boxes", "cameras", "sequences")}
        taken: dict[str, Any] = {name: None if values is None else values[rows] for name, values in optional.items()}
        return replace(self, names=self.names[rows], ids=self.ids[rows], **taken)


def _decode(path: Path, box: list[int] | None) -> "Image":
    require("PIL", "reading a picture")
    from PIL import Image

    try:
        regular(path)  # to open a pipe would wait for whoever writes into it
        with Image.open(path) as file:
            file.load()
            picture = _grey_or_colour(_upright(file))
    except Exception as error:  # decoders of damaged files raise anything from SyntaxError to struct.error
        raise CorruptImage(path, _reason(path, error)) from error
    return picture if box is None else _cropped(picture, box, path)


def _upright(picture: "Image") -> "Image":
    """A copy, turned as its EXIF data say; where those are damaged, the picture may still be good."""
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(picture)
    except Exception:  # whatever a damaged header leads to
        return picture.copy()


def _grey_or_colour(picture: "Image") -> "Image":
    """Every mode Pillow knows as L or RGB; what is transparent lies on white."""
    from PIL import Image

    if picture.mode in ("L", "RGB"):
        return picture
    if picture.mode.startswith("I"):  # 16 bits a pixel, which convert() would cut off at 255
        values = np.asarray(picture, np.float64)
        return Image.fromarray((values / max(values.max(), 65535) * 255).clip(0, 255).astype(np.uint8))
    if picture.has_transparency_data:
        colours = picture.convert("RGBA")
        white = Image.new("RGBA", colours.size, "white")
        return Image.alpha_composite(white, colours).convert("RGB")
    return picture.convert("L" if picture.mode == "1" else "RGB")


def _cropped(picture: "Image", box: list[int], path: Path) -> "Image":
    left, top, right, bottom = box
    width, height = picture.size
    if left >= width or top >= height:
        raise CorruptImage(path, f"its box {tuple(box)} lies outside its {width} x {height} pixels")
    return picture.crop((left, top, min(right, width), min(bottom, height)))


def _reason(path: Path, error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if not path.exists():
        return "there is no such file"
    if isinstance(error, FileError):
        return "it is a folder" if path.is_dir() else "it is no regular file"
    if path.exists() and not path.stat().st_size:
        return "it is empty"
    if isinstance(error, UnidentifiedImageError):
        return "it is not an image, or its format is unknown"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _checked_boxes(values: ArrayLike, ids: np.ndarray) -> np.ndarray:
    boxes = np.asarray(values)
    if boxes.shape != (len(ids), 4) or boxes.dtype.kind not in "iu":
        raise InputError(
            f"the boxes are {boxes.dtype} of shape {boxes.shape}; wanted integers of shape ({len(ids)}, 4): left, top, "
            "right, bottom of each image"
        )
    left, top, right, bottom = boxes.T
    bad = np.flatnonzero(boxes.any(axis=1) & ((boxes.min(axis=1, initial=0) < 0) | (left >= right) | (top >= bottom)))
    if bad.size:
        raise InputError(
            f"the box of {ids[bad[0]]} is {boxes[bad[0]].tolist()}; wanted 0 ≤ left < right and "
            "0 ≤ top < bottom, in pixels"
        )
    return boxes
