"""Datasets in miniature, in their genuine layouts, and a tiny ResNet of Hugging Face to train on them."""

from pathlib import Path

import numpy as np
from PIL import Image
from tests.encoders.tiny_models import tiny

from entourage.data.layout import Count
from entourage.data.sets import cub, in_shop, market1501, sop

CLASSES, EACH = 4, 6
_COLOURS = np.random.default_rng(0).integers(30, 225, (40, 3))


def _picture(path: Path, number: int, shot: int) -> None:
    """A picture of the class with that number: its colour, with some noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng([number, shot]).normal(0, 25, (40, 40, 3))
    Image.fromarray(np.clip(_COLOURS[number] + noise, 0, 255).astype(np.uint8)).save(path)


def write_cub(root: Path, monkeypatch) -> None:
    counts = {"train": Count(CLASSES * EACH, CLASSES), "test": Count(CLASSES * EACH, CLASSES)}
    monkeypatch.setattr(cub, "EXPECTED", counts)
    folder, names, labels = root / "CUB_200_2011", [], []
    for number, label in enumerate([*range(1, CLASSES + 1), *range(101, CLASSES + 101)]):
        for shot in range(EACH):
            names.append(f"{label:03}.Bird/{shot}.jpg")
            labels.append(label)
            _picture(folder / "images" / names[-1], number, shot)
    (folder / "images.txt").write_text("".join(f"{n} {name}\n" for n, name in enumerate(names, 1)))
    (folder / "image_class_labels.txt").write_text("".join(f"{n} {label}\n" for n, label in enumerate(labels, 1)))


def write_sop(root: Path, monkeypatch) -> None:
    monkeypatch.setattr(sop, "EXPECTED", {name: Count(CLASSES * EACH, CLASSES) for name in ("train", "test")})
    folder = root / "Stanford_Online_Products"
    for part, split in enumerate(("train", "test")):
        lines = ["image_id class_id super_class_id path"]
        for number in range(part * CLASSES, (part + 1) * CLASSES):
            for shot in range(EACH):
                name = f"mug_final/{number}_{shot}.JPG"
                _picture(folder / name, number, shot)
                lines.append(f"{len(lines)} {number + 1} 1 {name}")
        (folder / f"Ebay_{split}.txt").write_text("\n".join(lines) + "\n")


def write_in_shop(root: Path, monkeypatch) -> None:
    counts = {"train": Count(CLASSES * EACH, CLASSES), "query": Count(CLASSES * 2, CLASSES)}
    monkeypatch.setattr(in_shop, "EXPECTED", counts | {"gallery": Count(CLASSES * 11, CLASSES)})  # recall@40 is wanted
    folder, lines = root / "in_shop", []
    for number in range(2 * CLASSES):
        for shot in range(EACH if number < CLASSES else 13):
            name = f"WOMEN/Dresses/id_{number:08}/{shot:02}_front.jpg"
            _picture(folder / "img" / name, number, shot)
            split = "train" if number < CLASSES else "query" if shot < 2 else "gallery"
            lines.append(f"img/{name} id_{number:08} {split}")
    head = f"{len(lines)}\nimage_name item_id evaluation_status\n"
    (folder / "list_eval_partition.txt").write_text(head + "\n".join(lines) + "\n")


def write_market(root: Path, monkeypatch) -> None:
    sizes = {"train": CLASSES * EACH, "query": CLASSES * 2, "gallery": CLASSES * (EACH - 2)}
    monkeypatch.setattr(market1501, "EXPECTED", {name: Count(size, CLASSES) for name, size in sizes.items()})
    monkeypatch.setattr(market1501, "FILES", sizes)
    folder = root / "Market-1501-v15.09.15"
    for number in range(2 * CLASSES):
        for shot in range(EACH):
            place = "bounding_box_train" if number < CLASSES else "query" if shot < 2 else "bounding_box_test"
            _picture(folder / place / f"{number + 1:04}_c{shot + 1}s1_{shot:06}_00.jpg", number, shot)


def tiny_resnet(folder: Path) -> str:
    """Saved as a folder that `encoder` names."""
    tiny("resnet").save_pretrained(folder)
    return str(folder)
