"""Stanford Online Products: 120,053 photographs of 22,634 products on sale; the lists say which train and test.

Stanford_Online_Products/Ebay_train.txt   image_id class_id super_class_id path
Stanford_Online_Products/Ebay_test.txt    59552 11319 1 bicycle_final/111085122871_0.JPG
Stanford_Online_Products/bicycle_final/...
"""

from os import PathLike

import numpy as np

from entourage.data.download import Archive
from entourage.data.files import ImageFiles
from entourage.data.layout import (
    Count,
    check_counts,
    check_present,
    check_split,
    dataset_folder,
    read_columns,
    warn_of_shared_classes,
    whole_numbers,
)

__all__ = ["load"]

TITLE = "Stanford Online Products"
EXPECTED = {"train": Count(59_551, 11_318), "test": Count(60_502, 11_316)}
FOLDERS = ("Stanford_Online_Products", "sop", "SOP")
HOME = "https://cvgl.stanford.edu/projects/lifted_struct/"
# The host is the one chainercv downloads from (its issue 643: the same file as the FTP address of the project page, but
# by HTTP); size and SHA-256 are those tensorflow_datasets records (url_checksums/stanford_online_products.txt).
ARCHIVES = (
    Archive(
        "http://ftp.cs.stanford.edu/cs/cvgl/Stanford_Online_Products.zip",
        size=3_083_860_082,
        checksum="sha256:b04fa78210e69fab050ce73939550e1cd0f96890bdd98ec9fee732c3b756ef48",
        folder="Stanford_Online_Products",
        to="Stanford_Online_Products",
    ),
)

_COLUMNS = ("image_id", "class_id", "super_class_id", "path")


def load(split: str, root: str | PathLike[str] | None = None) -> ImageFiles:
    """Load a split, in the order of its list.

    Parameters
    ----------
    split : str
        train or test.
    root : path-like, optional
        The folder the dataset is under; default: the one ENTOURAGE_DATA names.

    Returns
    -------
    ImageFiles
        Labels are the class ids.
    """
    check_split(split, EXPECTED, "sop")
    folder = dataset_folder(root, "sop", FOLDERS, ("Ebay_train.txt", "Ebay_test.txt"))
    names, labels = {}, {}
    for each in EXPECTED:
        path = folder / f"Ebay_{each}.txt"
        rows = read_columns(path, _COLUMNS, header=1)
        names[each] = np.array([row[3] for row in rows], dtype=str)
        labels[each] = whole_numbers(path, (row[1] for row in rows))
    check_counts(folder / f"Ebay_{split}.txt", labels[split], EXPECTED[split])
    warn_of_shared_classes("sop", labels["train"], labels["test"])
    check_present(folder, names[split].tolist())
    return ImageFiles(folder, names[split], labels[split])
