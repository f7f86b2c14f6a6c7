"""`entourage datasets`: the list, and getting one."""

import hashlib
import io
import zipfile

import pytest
from tests.cli.shop import document, files, run
from tests.data.pictures import write_pictures
from tests.data.server import serving

from entourage.data import download as downloading
from entourage.data.download import Archive
from entourage.data.layout import Count
from entourage.data.sets import omniglot


@pytest.fixture(autouse=True)
def no_folder_of_datasets(monkeypatch):
    monkeypatch.delenv("ENTOURAGE_DATA", raising=False)


def test_the_list_without_a_root():
    result = run("datasets")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:11]] == [
        *("cars", "csv", "cub", "folder", "glyphs", "in_shop", "market1501", "omniglot", "sop", "vectors")
    ]
    assert "train 25,882, query 14,218, gallery 12,612  absent" in result.stdout
    assert "fetches cub, omniglot, sop, and says where to get the others" in result.stdout


def test_the_list_as_one_document(tmp_path):
    found = document(run("datasets --json --root", tmp_path))
    assert found["root"] == str(tmp_path)
    rows = {row["name"]: row for row in found["datasets"]}
    assert rows["glyphs"]["present"] is True
    assert rows["cub"]["splits"]["train"] == {"images": 5864, "classes": 100}
    assert rows["cub"]["present"] is False and "images.txt" in rows["cub"]["note"]
    assert rows["folder"]["present"] is None
    assert document(run("datasets --json"))["root"] is None


def test_what_is_there_and_what_is_incomplete_is_told(tmp_path, monkeypatch):
    write_pictures(tmp_path / "omniglot/images", ["a/1.png", "a/2.png", "b/1.png", "b/2.png"])
    write_pictures(tmp_path / "Market-1501-v15.09.15/query", ["0001_c1s1_001051_00.jpg"])
    shown = run("datasets --root", tmp_path).stdout
    assert "a selection" in shown and "incomplete" in shown
    assert f"the folder {tmp_path}/Market-1501-v15.09.15/bounding_box_train is missing" in shown.replace("\n", "")
    monkeypatch.setenv("ENTOURAGE_DATA", str(tmp_path))
    assert run("datasets").stdout == shown


@pytest.fixture
def site(monkeypatch):
    """A server with one of the two archives of a small Omniglot; the other is there already."""
    monkeypatch.setattr(downloading, "_PAUSE", 0)
    monkeypatch.setattr(omniglot, "EXPECTED", {"train": Count(1, 1), "test": Count(1, 1)})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("images_background/Greek/character01/1.png", "picture")
    content = packed.getvalue()
    with serving() as site:
        site.files["images_background.zip"] = content
        place, checksum = "omniglot/images_background", f"md5:{hashlib.md5(content).hexdigest()}"
        url = f"{site.address}/images_background.zip"
        archive = Archive(url, len(content), checksum, "images_background", place)
        monkeypatch.setattr(omniglot, "ARCHIVES", (archive,))
        yield site


@pytest.fixture
def root(tmp_path):
    write_pictures(tmp_path / "omniglot/images_evaluation", ["Thai/character01/1.png"])
    return tmp_path


def test_a_dataset_is_got(site, root):
    result = run("datasets get omniglot --root", root)
    assert (result.exit_code, result.stdout) == (0, f"omniglot is under {root}: train 1, test 1\n")
    assert result.stderr == "fetching images_background.zip, MB\nunpacking images_background.zip, files\n"


def test_a_new_root_is_made_and_told_but_not_the_folders_above_it(site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(omniglot, "EXPECTED", {"train": Count(1, 1)})
    result = run("datasets get omniglot --root new")
    assert (result.exit_code, result.stdout) == (0, "omniglot is under new: train 1\n")
    assert result.stderr.startswith(f"warning: the folder {tmp_path}/new did not exist and has been created\nfetching")
    assert (tmp_path / "new/omniglot/images_background").is_dir()


def test_a_dataset_is_got_as_one_document(site, root, monkeypatch):
    monkeypatch.setenv("ENTOURAGE_DATA", str(root))
    found = document(run("datasets get omniglot --json"))
    assert (found["root"], found["name"], found["state"]) == (str(root), "omniglot", "whole")


def test_ctrl_c_keeps_what_was_fetched(site, root, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(downloading, "_check_sum", interrupted)
    result = run("datasets get omniglot --root", root)
    assert result.exit_code == 130
    assert result.stderr.endswith("stopped; run the same command again to resume the download\ninterrupted\n")
    assert (root / "images_background.zip.part").exists()


BAD = {
    "unknown": ("datasets get birds --root .", "the dataset is 'birds'; wanted one of cars, cub, glyphs"),
    "by hand": ("datasets get in_shop --root .", "get it at https://mmlab.ie.cuhk.edu.hk"),
    "no root": ("datasets get cub", "no folder is given; wanted root, --root or ENTOURAGE_DATA"),
    "wrong root": ("datasets get cub --root no/where", "the folder no/where does not exist"),
    "by hand to a new root": ("datasets get cars --root new", "so that new holds"),
    "wrong root to list": ("datasets --root nowhere", "the folder nowhere does not exist"),
    "built in": ("datasets get glyphs --root .", "glyphs is built in; there is nothing to fetch"),
    "no name": (
        "datasets get --root .",
        "the arguments after `datasets` are 'get'; wanted `get` and a name, or nothing",
    ),
    "another word": ("datasets fetch cub --root .", "the arguments after `datasets` are 'fetch cub'"),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("as_json", [False, True], ids=["", "json"])
def test_bad_input_gets_one_sentence_and_exit_code_2(tmp_path, monkeypatch, command, message, as_json):
    monkeypatch.chdir(tmp_path)
    result = run(command + (" --json" if as_json else ""))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ") and len(result.stderr.splitlines()) == 1
    assert message in result.stderr
    assert files(tmp_path) == {}


def test_a_wrong_checksum_leaves_nothing(site, root):
    before = files(root)
    site.files["images_background.zip"] = site.files["images_background.zip"][:-1] + b"!"
    result = run("datasets get omniglot --root", root)
    assert result.exit_code == 2
    assert "it is damaged or has changed, and was removed" in result.stderr
    assert files(root) == before
