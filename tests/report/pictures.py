"""Pictures to show beside vectors."""

from pathlib import Path

from PIL import Image


def draw_colours(folder: Path, classes: int, per_class: int) -> Path:
    """A folder a class, with pictures of one colour: `class 0/00.png` and so on."""
    for code in range(classes):
        (folder / f"class {code}").mkdir()
        for shot in range(per_class):
            Image.new("RGB", (24, 16), (40 * code, 20 * shot, 90)).save(folder / f"class {code}" / f"{shot:02}.png")
    return folder
