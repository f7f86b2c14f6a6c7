"""The table of datasets: by name or by path, what there is of them, and how it is got."""

import hashlib
import io
import re
import subprocess
import sys
import zipfile
from importlib import import_module

import numpy as np
import pytest
from tests.data.pictures import write_pictures, write_text
from tests.data.server import serving

from entourage import data
from entourage.data import download as downloading
from entourage.data.download import Archive
from entourage.data.layout import Count
from entourage.data.sets import glyphs, omniglot
from entourage.errors import FileError, InputError

PLAIN = [f"{label}/{n}.png" for label in "abcd" for n in range(2)]
ORIGINAL = {"images_background": ["Greek/character01/1.png"], "images_evaluation": ["Thai/character01/1.png"]}


def test_every_dataset_keeps_the_promises_of_the_table():
    for name, module in data.DATASETS.items():
        found = import_module(module)
        assert found.TITLE and isinstance(found.EXPECTED, dict) and callable(found.load), name
        assert name in ("csv", "folder", "glyphs", "vectors") or (found.HOME and (found.ARCHIVES or found.PUT)), name
        for archive in found.ARCHIVES:
            assert archive.url.startswith(("https://", "http://")) and archive.size > 0
            assert len(archive.checksum.partition(":")[2]) in (32, 64)


def test_the_counts_of_the_built_in_set_are_its_own():
    for split, count in glyphs.EXPECTED.items():
        classes = sum(len(characters) for characters in glyphs.scripts(split).values())
        assert count == (20 * classes, classes)


def test_a_folder_and_a_table_are_loaded_by_their_path(tmp_path):
    write_pictures(tmp_path, PLAIN)
    assert data.load(tmp_path, "train").labels.tolist() == ["a", "a", "b", "b"]
    assert data.load(str(tmp_path), "train", train_share=0.25).labels.tolist() == ["a", "a"]
    assert data.load("folder", "test", tmp_path).labels.tolist() == ["c", "c", "d", "d"]
    path = write_text(tmp_path / "elsewhere" / "t.csv", "label,path,split\n0,a/0.png,train\n1,b/0.png,validation\n")
    assert data.load(path, "test", root=tmp_path).ids.tolist() == ["b/0.png"]
    assert data.splits(path) == data.splits(tmp_path) == ("train", "test")


def test_splits_of_named_datasets():
    assert data.splits("sop") == ("train", "test")
    assert data.splits("market1501") == ("train", "query", "gallery")


def test_the_root_of_a_folder_is_the_folder(tmp_path):
    with pytest.raises(InputError, match="is a folder itself; leave root out"):
        data.load(tmp_path, "train", root=tmp_path)


@pytest.mark.parametrize("name", ["cubs", "no/such/folder"])
def test_neither_a_name_nor_a_path(name):
    known = "cars, cub, glyphs, in_shop, market1501, omniglot, sop or .* that exists"
    with pytest.raises(InputError, match=f"the dataset is '{name}'; wanted one of {known}"):
        data.load(name, "train")
    with pytest.raises(InputError, match=f"dataset is '{name}'"):
        data.splits(name)
    with pytest.raises(InputError, match=f"dataset is '{name}'"):
        data.get(name)


def test_an_option_of_another_dataset_is_refused(tmp_path):
    with pytest.raises(InputError, match="unknown option 'per_class' of cub; wanted one of boxes"):
        data.load("cub", "train", tmp_path, per_class=3)
    with pytest.raises(InputError, match="unknown option 'boxes' of sop; wanted none, as there are none"):
        data.load("sop", "train", tmp_path, boxes=True)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("glyphs", {"max_classes": "two"}, "max_classes is 'two'; wanted a whole number, or nothing"),
        ("glyphs", {"per_class": 8.5}, "per_class is 8.5; wanted a whole number"),
        ("glyphs", {"seed": True}, "seed is True; wanted a whole number"),
        ("vectors.npz", {"labels": 3}, "labels is 3; wanted text or a path, or nothing"),
        ("cub", {"boxes": 1}, "boxes is 1; wanted true or false"),
        (
            "glyphs",
            {"progress": 1},
            "unknown option 'progress' of glyphs; wanted one of per_class, size, seed, max_classes",
        ),
        (
            "glyphs",
            {"perclass": 3},
            "unknown option 'perclass' of glyphs; wanted one of per_class, size, seed, max_classes "
            "(did you mean per_class?)",
        ),
        (
            "table.csv",
            {"images_root": "."},
            "'images_root' of table.csv; wanted one of path_column, label_column, id_column, train_share",
        ),
    ],
)
def test_an_option_of_another_type_or_for_programs_alone_is_refused(name, options, said):
    with pytest.raises(InputError, match=re.escape(said)):
        data.load(name, "train", **options)


def test_numbers_of_numpy_and_a_progress_of_a_program_are_taken():
    told = []
    options = {"per_class": np.int64(1), "max_classes": 2, "progress": lambda *step: told.append(step)}
    assert len(data.load("glyphs", "train", **options)) == len(told) == 2


# ---- what is there -------------------------------------------------------------------------------------------------


def states(root) -> dict:
    return {row["name"]: (row["present"], row["state"]) for row in data.describe(root)}


def test_an_empty_root_has_only_what_is_built_in(tmp_path):
    found = states(tmp_path)
    assert list(found) == list(data.DATASETS)
    assert found.pop("glyphs") == (True, "built in")
    assert found.pop("csv") == found.pop("folder") == found.pop("vectors") == (None, "any place")
    assert set(found.values()) == {(False, "absent")}


def test_no_root_at_all(monkeypatch):
    monkeypatch.delenv("ENTOURAGE_DATA", raising=False)
    assert states(None)["cub"] == (False, "absent")


def test_a_whole_a_partial_and_another_dataset_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(omniglot, "EXPECTED", {"train": Count(1, 1), "test": Count(1, 1)})
    for place, names in ORIGINAL.items():
        write_pictures(tmp_path / "whole/omniglot" / place, names)
    write_pictures(tmp_path / "part/omniglot/images_background", ORIGINAL["images_background"])
    write_pictures(tmp_path / "plain/omniglot/images", PLAIN)
    seen = {}
    for place in ("whole", "part", "plain"):
        seen[place] = next(row for row in data.describe(tmp_path / place) if row["name"] == "omniglot")
    assert [row["state"] for row in seen.values()] == ["whole", "incomplete", "a selection"]
    assert [row["present"] for row in seen.values()] == [True, False, True]
    assert "images_evaluation is missing; wanted 1 images" in seen["part"]["note"]
    assert seen["plain"]["note"] == "train 4, test 4"
    assert seen["whole"]["splits"] == {"train": {"images": 1, "classes": 1}, "test": {"images": 1, "classes": 1}}


def test_listing_loads_neither_torch_nor_pillow(tmp_path):
    listing = f"import sys; from entourage import data; data.describe({str(tmp_path)!r})"
    code = f"{listing}; print({{'torch', 'PIL'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


# ---- getting it ----------------------------------------------------------------------------------------------------


@pytest.fixture
def site(monkeypatch, tmp_path):
    """A server with a small Omniglot in two archives, and the loader told so."""
    monkeypatch.setattr(downloading, "_PAUSE", 0)
    monkeypatch.setattr(omniglot, "EXPECTED", {"train": Count(1, 1), "test": Count(1, 1)})
    with serving() as site:
        archives = []
        for place, names in ORIGINAL.items():
            write_pictures(tmp_path / "source", [f"{place}/{name}" for name in names])
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as zipped:
                for name in names:
                    zipped.write(tmp_path / "source" / place / name, f"{place}/{name}")
            content = site.files[f"{place}.zip"] = packed.getvalue()
            checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
            archives.append(Archive(f"{site.address}/{place}.zip", len(content), checksum, place, f"omniglot/{place}"))
        monkeypatch.setattr(omniglot, "ARCHIVES", tuple(archives))
        (tmp_path / "root").mkdir()
        yield site


def test_a_dataset_is_got_and_loads(site, tmp_path):
    row = data.get("omniglot", tmp_path / "root")
    assert (row["present"], row["state"], row["note"]) == (True, "whole", "train 1, test 1")
    assert data.load("omniglot", "test", tmp_path / "root").labels.tolist() == ["Thai/character01"]
    assert len(site.asked) == 2


def test_a_dataset_that_is_there_is_not_fetched(site, tmp_path):
    data.get("omniglot", tmp_path / "root")
    assert data.get("omniglot", tmp_path / "root")["present"]
    assert len(site.asked) == 2


def test_only_what_is_missing_is_fetched(site, tmp_path):
    write_pictures(tmp_path / "root/omniglot/images_background", ORIGINAL["images_background"])
    data.get("omniglot", tmp_path / "root")
    assert len(site.asked) == 1


def test_a_damaged_copy_is_never_replaced_but_named(site, tmp_path):
    (tmp_path / "root/omniglot/images_background").mkdir(parents=True)
    with pytest.raises(FileError, match=r"names 0 images .*move .*images_background away and run this again"):
        data.get("omniglot", tmp_path / "root")


@pytest.mark.parametrize(
    ("name", "where", "what"),
    [
        ("cars", r"ai\.stanford\.edu", r"cars196/cars_annos\.mat"),
        ("in_shop", r"mmlab\.ie\.cuhk\.edu\.hk", r"in_shop/list_eval_partition\.txt"),
        ("market1501", r"zheng-lab\.cecs\.anu\.edu\.au", "bounding_box_train"),
    ],
)
def test_what_cannot_be_fetched_says_where_to_get_and_put_it(tmp_path, name, where, what):
    with pytest.raises(FileError, match=f"get it at .*{where}.* and put it so that {tmp_path} holds .*{what}"):
        data.get(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "what"), [("glyphs", "built in"), ("folder", "read from any folder"), ("csv", "read")]
)
def test_what_is_no_download_is_refused(tmp_path, name, what):
    with pytest.raises(InputError, match=f"{name} is {what}.*; there is nothing to fetch"):
        data.get(name, tmp_path)


def test_no_root_to_fetch_to(monkeypatch, tmp_path):
    monkeypatch.delenv("ENTOURAGE_DATA", raising=False)
    with pytest.raises(FileError, match="no folder is given"):
        data.get("cub")
    with pytest.raises(FileError, match="nowhere/data does not exist"):
        data.get("cub", tmp_path / "nowhere" / "data")
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="file does not exist; check the root"):
        data.get("cub", tmp_path / "file")
