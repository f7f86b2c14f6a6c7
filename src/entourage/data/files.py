"""Pictures on disk, decoded when they are asked for.

Only names are held: 100,000 pictures take some tens of megabytes, whatever their size.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from entourage.errors import CorruptImage, InputError
from entourage.values import check_unique, checked_column, set_frozen

__all__ = ["ImageFiles"]


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """An image set of files: names (N,) relative to root, labels (N,), ids (N,) text, unique (default: the names).

    Pictures to be embedded alone may have no labels: None. boxes (N, 4) integers left, top, right, bottom crop each
    picture after it has been turned upright; four zeros leave it whole. cameras and sequences, (N,) each, tell which
    items are left out of a ranking (see evaluation.exclusions).
    """

    root: Path
    names: np.ndarray
    labels: np.ndarray | None
    ids: np.ndarray | None = None
    boxes: np.ndarray | None = None
    cameras: np.ndarray | None = None
    sequences: np.ndarray | None = None

    def __post_init__(self):
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
        return self.root / str(self.names[row])

    @property
    def paths(self) -> list[Path]:
        """Where every picture lies, (N,)."""
        return [self.root / name for name in self.names.tolist()]

    def picture(self, row: int):
        """One picture as a PIL image, decoded now: upright, cropped to its box, grey (L) or in colour (RGB).

        Raises CorruptImage if the file is missing, truncated or no image.
        """
        box = None if self.boxes is None or not self.boxes[row].any() else self.boxes[row].tolist()
        return _decode(self.path(row), box)

    def take(self, rows) -> "ImageFiles":
        """The given rows, in the given order."""
        arrays = (self.names, self.labels, self.ids, self.boxes, self.cameras, self.sequences)
        return ImageFiles(self.root, *(None if array is None else array[rows] for array in arrays))


def _decode(path: Path, box: list[int] | None):
    from PIL import Image

    try:
        with Image.open(path) as file:
            file.load()
            picture = _grey_or_colour(_upright(file))
    except FileNotFoundError:
        raise CorruptImage(path, "there is no such file") from None
    except Exception as error:  # decoders of damaged files raise anything from SyntaxError to struct.error
        raise CorruptImage(path, _reason(path, error)) from error
    return picture if box is None else _cropped(picture, box, path)


def _upright(picture):
    """A copy, turned as its EXIF data say; where those are damaged, the picture may still be good."""
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(picture)
    except Exception:  # whatever a damaged header leads to
        return picture.copy()


def _grey_or_colour(picture):
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


def _cropped(picture, box: list[int], path: Path):
    left, top, right, bottom = box
    width, height = picture.size
    if left >= width or top >= height:
        raise CorruptImage(path, f"its box {tuple(box)} lies outside its {width} x {height} pixels")
    return picture.crop((left, top, min(right, width), min(bottom, height)))


def _reason(path: Path, error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if path.is_dir():
        return "it is a folder"
    if path.exists() and not path.stat().st_size:
        return "it is empty"
    if isinstance(error, UnidentifiedImageError):
        return "it is no image, or of no known format"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _checked_boxes(boxes, ids: np.ndarray) -> np.ndarray:
    boxes = np.asarray(boxes)
    if boxes.shape != (len(ids), 4) or boxes.dtype.kind not in "iu":
        raise InputError(
            f"boxes are {boxes.dtype} of shape {boxes.shape}; wanted integers (N, 4) as left, top, right, bottom"
        )
    left, top, right, bottom = boxes.T
    bad = np.flatnonzero(boxes.any(axis=1) & ((boxes.min(axis=1, initial=0) < 0) | (left >= right) | (top >= bottom)))
    if bad.size:
        raise InputError(
            f"the box of {ids[bad[0]]} is {boxes[bad[0]].tolist()}; wanted 0 ≤ left < right and "
            "0 ≤ top < bottom, in pixels"
        )
    return boxes
