"""Small pictures and files for the tests of datasets."""

from pathlib import Path

import numpy as np
from PIL import Image


def write_picture(path: Path, value: int = 0, size: tuple[int, int] = (8, 6), mode: str = "RGB") -> Path:
    """One flat picture; its value tells it from others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode == "L" else (value, value, value)).save(path, quality=100)
    return path


def write_pictures(folder: Path, names) -> None:
    for value, name in enumerate(names):
        write_picture(folder / name, value)


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def value_of(picture) -> int:
    return round(float(np.asarray(picture.convert("L")).mean()))
