"""In-Shop Clothes Retrieval (DeepFashion): 52,712 photographs of 7,982 garments; queries and gallery are apart.

    Eval/list_eval_partition.txt   52712
                                   image_name                                          item_id     evaluation_status
                                   img/WOMEN/Dresses/id_00000002/02_1_front.jpg        id_00000002 train

The pictures lie under img/, Img/img/ or img_highres/, though the list always says img/.
"""

from os import PathLike
from pathlib import Path

import numpy as np

from entourage.data.files import ImageFiles
from entourage.data.layout import (
    Archives,
    Count,
    check_counts,
    check_present,
    check_split,
    dataset_folder,
    first_existing,
    read_columns,
    read_text,
    warn_of_shared_classes,
)
from entourage.errors import FileError

__all__ = ["load"]

TITLE = "In-Shop Clothes Retrieval (DeepFashion)"
EXPECTED = {"train": Count(25_882, 3_997), "query": Count(14_218, 3_985), "gallery": Count(12_612, 3_985)}
FOLDERS = ("in_shop", "In-shop Clothes Retrieval Benchmark", "In-shop", "inshop", "DeepFashion_InShop")
HOME = "https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html"
PUT = "in_shop/list_eval_partition.txt (or in_shop/Eval/) and in_shop/img/WOMEN/... (or Img/img/, img_highres/)"
ARCHIVES: Archives = ()

_LISTS = ("list_eval_partition.txt", "Eval/list_eval_partition.txt", "Anno/list_eval_partition.txt")
_PICTURES = ("img", "Img/img", "img_highres", "Img/img_highres")
_HEADER = 2  # the count, then the names of the columns


def load(split: str, root: str | PathLike[str] | None = None) -> ImageFiles:
    """Load a split, in the order of the list.

    Parameters
    ----------
    split : str
        train, query or gallery.
    root : path-like, optional
        The folder the dataset is under; default: the one ENTOURAGE_DATA names.

    Returns
    -------
    ImageFiles
        Labels are item ids such as "id_00000002".
    """
    check_split(split, EXPECTED, "in_shop")
    folder = dataset_folder(root, "in_shop", FOLDERS, _LISTS)
    path = first_existing(folder, _LISTS, "the list of images")
    rows = read_columns(path, ("image_name", "item_id", "evaluation_status"), header=_HEADER)
    _check_announced(path, len(rows))
    names, items, status = np.array(rows, dtype=str).reshape(-1, 3).T
    chosen = status == split
    check_counts(f"{path}, {split},", items[chosen], EXPECTED[split])
    warn_of_shared_classes("in_shop", items[status == "train"], items[status != "train"])
    pictures = first_existing(folder, _PICTURES, f"{len(rows):,} images").relative_to(folder).as_posix()
    found = np.array([f"{pictures}/{name.removeprefix('img/')}" for name in names[chosen]])
    check_present(folder, found.tolist())
    return ImageFiles(folder, found, items[chosen])


def _check_announced(path: Path, seen: int) -> None:
    """The first line says how many follow."""
    announced = read_text(path).split(maxsplit=1)[:1]
    if announced != [str(seen)]:
        raise FileError(
            f"{path} announces {''.join(announced) or 'nothing'} images in its first line and names {seen}; "
            "it is incomplete, download it again"
        )
