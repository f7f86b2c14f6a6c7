"""Market-1501: 1,501 persons seen by six cameras; queries and gallery are apart.

    Market-1501-v15.09.15/bounding_box_train/0002_c1s1_000451_03.jpg   person 2, camera 1, sequence 1
    Market-1501-v15.09.15/query/
    Market-1501-v15.09.15/bounding_box_test/                           the gallery

Person -1 is junk (parts of bodies, neither right nor wrong) and left out; person 0 are distractors and stay. For each
query the gallery's pictures of the same person by the same camera do not count: that is what `cameras` is for.
"""

import os
import re
from os import PathLike
from pathlib import Path

import numpy as np

from entourage.data.files import ImageFiles
from entourage.data.layout import (
    Archives,
    Count,
    check_counts,
    check_split,
    dataset_folder,
    is_image_name,
    warn_of_shared_classes,
)
from entourage.errors import FileError

__all__ = ["load"]

TITLE = "Market-1501, persons"
# The folder of the gallery holds 19,732 pictures, 3,819 of them junk; class 0 is one of its 751.
EXPECTED = {"train": Count(12_936, 751), "query": Count(3_368, 750), "gallery": Count(15_913, 751)}
FILES = {"train": 12_936, "query": 3_368, "gallery": 19_732}
FOLDERS = ("Market-1501-v15.09.15", "market1501", "Market-1501", "Market1501")
HOME = "https://zheng-lab.cecs.anu.edu.au/Project/project_reid.html"
PUT = "Market-1501-v15.09.15/bounding_box_train/, query/ and bounding_box_test/"
ARCHIVES: Archives = ()

_PLACES = {"train": "bounding_box_train", "query": "query", "gallery": "bounding_box_test"}
_NAME = re.compile(r"(-1|\d+)_c(\d+)s\d+_")
_JUNK = -1


def load(split: str, root: str | PathLike[str] | None = None) -> ImageFiles:
    """Load a split, sorted by file name.

    Parameters
    ----------
    split : str
        train, query or gallery.
    root : path-like, optional
        The folder the dataset is under; default: the one ENTOURAGE_DATA names.

    Returns
    -------
    ImageFiles
        Labels are the numbers of persons, cameras 1..6.
    """
    check_split(split, EXPECTED, "market1501")
    folder = dataset_folder(root, "market1501", FOLDERS, tuple(_PLACES.values()))
    place = folder / _PLACES[split]
    names = _pictures(place)
    if len(names) != FILES[split]:
        raise FileError(f"{place} holds {len(names):,} images; wanted {FILES[split]:,}: complete the download")
    persons, cameras = _persons_and_cameras(place, names)
    kept = persons != _JUNK
    check_counts(place, persons[kept], EXPECTED[split])
    _warn_of_persons_in_both(folder)
    found = np.array([f"{place.name}/{name}" for name in names])
    return ImageFiles(folder, found[kept], persons[kept], cameras=cameras[kept])


def _pictures(place: Path) -> list[str]:
    if not place.is_dir():
        raise FileError(f"the folder {place} is missing; complete the download")
    return sorted(name for name in os.listdir(place) if is_image_name(name))  # Thumbs.db lies among them


def _persons_and_cameras(place: Path, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    found = {name: _NAME.match(name) for name in names}
    odd = next((name for name, match in found.items() if match is None), None)
    if odd is not None:
        raise FileError(f"{place / odd} is not named like 0002_c1s1_000451_03.jpg; wanted person and camera: remove it")
    pairs = [tuple(map(int, match.groups())) for match in found.values() if match]
    numbers = np.array(pairs, np.int64).reshape(-1, 2)
    return numbers[:, 0], numbers[:, 1]


def _warn_of_persons_in_both(folder: Path) -> None:
    persons: dict[str, np.ndarray] = {}
    for split, name in _PLACES.items():
        if (folder / name).is_dir():
            persons[split] = _persons_and_cameras(folder / name, _pictures(folder / name))[0]
    tested = [person for split, found in persons.items() if split != "train" for person in found.tolist()]
    warn_of_shared_classes("market1501", persons.get("train", []), tested)
