"""Archives unpacked: nothing leaves the folder, and it appears whole or not at all."""

import io
import tarfile
import zipfile

import pytest

from entourage.data.unpacking import unpack
from entourage.errors import FileError


def tar_of(path, members: dict[str, str], links: dict[str, str] | None = None):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return path


def zip_of(path, members: dict[str, str]):
    with zipfile.ZipFile(path, "w") as zipped:
        for name, text in members.items():
            zipped.writestr(name, text)
    return path


GOOD = {"set/a.txt": "a", "set/deep/b.txt": "b", "attributes.txt": "of no use"}


@pytest.mark.parametrize(("name", "make"), [("x.tgz", tar_of), ("x.zip", zip_of)])
def test_the_folder_is_put_in_its_place_and_the_rest_dropped(tmp_path, name, make):
    reports = []
    archive = make(tmp_path / "x.part", GOOD)
    unpack(archive, name, "set", tmp_path / "there", lambda *report: reports.append(report))
    assert (tmp_path / "there/deep/b.txt").read_text() == "b"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there", "x.part"]
    assert reports and all(title.startswith(f"unpacking {name}") for title, _, _ in reports)


@pytest.mark.parametrize(
    ("name", "make", "members"),
    [
        ("x.tgz", tar_of, GOOD | {"../evil.txt": "out"}),
        ("x.tgz", tar_of, GOOD | {"set/../../evil.txt": "out"}),
        ("x.zip", zip_of, GOOD | {"../evil.txt": "out"}),
        ("x.zip", zip_of, GOOD | {"set/../../evil.txt": "out"}),
        ("x.zip", zip_of, GOOD | {"..\\evil.txt": "out"}),
        ("x.zip", zip_of, GOOD | {"/tmp/evil.txt": "out"}),
    ],
)
def test_a_path_that_leads_outside_is_refused(tmp_path, name, make, members):
    inside = tmp_path / "data"
    inside.mkdir()
    with pytest.raises(FileError, match=r"x\.(tgz|zip) .*outside"):
        unpack(make(tmp_path / "x", members), name, "set", inside / "there")
    assert list(inside.iterdir()) == []
    assert not list(tmp_path.rglob("evil.txt"))


def test_a_link_that_leads_outside_is_refused(tmp_path):
    archive = tar_of(tmp_path / "x", GOOD, {"set/link": "../../../etc"})
    with pytest.raises(FileError, match="outside"):
        unpack(archive, "x.tgz", "set", tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(("name", "make"), [("x.tgz", tar_of), ("x.zip", zip_of)])
def test_an_archive_of_something_else_is_refused(tmp_path, name, make):
    with pytest.raises(FileError, match="holds no folder set"):
        unpack(make(tmp_path / "x", {"other/a.txt": "a"}), name, "set", tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(("name", "make"), [("x.tgz", tar_of), ("x.zip", zip_of)])
def test_a_damaged_archive_leaves_nothing(tmp_path, name, make):
    whole = make(tmp_path / "x", GOOD).read_bytes()
    (tmp_path / "x").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=rf"{name} cannot be unpacked"):
        unpack(tmp_path / "x", name, "set", tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
