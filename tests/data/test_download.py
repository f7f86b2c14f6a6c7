"""Archives fetched from a server on this machine: resumed, checked, and whole or not at all."""

import hashlib
import io
import os
import zipfile

import pytest
from tests.data.server import serving

from entourage.data import download as downloading
from entourage.data.download import Archive, fetch
from entourage.errors import FileError
from entourage.stores.changes import claimed


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(downloading, "_PAUSE", 0)
    monkeypatch.setattr(downloading, "_BLOCK", 100)
    monkeypatch.setattr(downloading, "_MEGABYTE", 100)


@pytest.fixture
def site():
    with serving() as site:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as zipped:
            zipped.writestr("birds/list.txt", "robin\n" * 200)
            zipped.writestr("birds/images/1.jpg", "picture")
            zipped.writestr("__MACOSX/birds", "left by a Mac")
        site.files["birds.zip"] = file.getvalue()
        yield site


def birds(site, **changed) -> Archive:
    content = site.files.get("birds.zip", b"")
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    url = f"{site.address}/birds.zip"
    return Archive(
        **({"url": url, "size": len(content), "checksum": checksum, "folder": "birds", "to": "sets/birds"} | changed)
    )


def everything(root) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


WHOLE = ["sets/birds/images/1.jpg", "sets/birds/list.txt"]


def test_an_archive_is_fetched_checked_and_unpacked(site, tmp_path):
    reports = []
    place = fetch(birds(site), tmp_path, lambda *report: reports.append(report))
    assert place == tmp_path / "sets/birds"
    assert (place / "list.txt").read_text() == "robin\n" * 200
    assert everything(tmp_path) == WHOLE  # no archive, no part, nothing a Mac left
    assert site.asked == [None]
    last = {title: (done, total) for title, done, total in reports}
    assert set(last) == {"fetching birds.zip, MB", "unpacking birds.zip, files"}
    assert all(done == total for done, total in last.values())


def test_md5_is_known_too(site, tmp_path):
    digest = hashlib.md5(site.files["birds.zip"]).hexdigest()
    assert fetch(birds(site, checksum=f"md5:{digest}"), tmp_path).is_dir()


def test_what_is_there_is_not_fetched_again(site, tmp_path):
    (tmp_path / "sets/birds").mkdir(parents=True)
    assert fetch(birds(site), tmp_path) == tmp_path / "sets/birds"
    assert site.asked == []


def test_a_line_that_breaks_is_taken_up_where_it_broke(site, tmp_path):
    site.breaks_after = [150, 200]
    fetch(birds(site), tmp_path)
    assert site.asked == [None, "bytes=150-", "bytes=350-"]
    assert everything(tmp_path) == WHOLE


def test_an_interrupted_download_goes_on_in_the_next_run(site, tmp_path):
    def ctrl_c(title, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(birds(site), tmp_path, ctrl_c)
    assert everything(tmp_path) == ["birds.zip.part"]
    assert (tmp_path / "birds.zip.part").stat().st_size == 100
    fetch(birds(site), tmp_path)
    assert site.asked == [None, "bytes=100-"]
    assert everything(tmp_path) == WHOLE


def test_an_interruption_while_unpacking_leaves_only_the_archive(site, tmp_path):
    def ctrl_c(title, done, total):
        if title.startswith("unpacking"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(birds(site), tmp_path, ctrl_c)
    assert everything(tmp_path) == ["birds.zip.part"]
    fetch(birds(site), tmp_path)  # the server has nothing to add, and says so
    assert everything(tmp_path) == WHOLE


def test_a_server_without_ranges_sends_all_of_it_again(site, tmp_path):
    (tmp_path / "birds.zip.part").write_bytes(site.files["birds.zip"][:70])
    site.sends_ranges = False
    fetch(birds(site), tmp_path)
    assert site.asked == ["bytes=70-"]
    assert everything(tmp_path) == WHOLE


def test_a_dead_server_is_given_up_and_the_part_kept(site, tmp_path):
    site.breaks_after = [150, 0, 0, 0]
    with pytest.raises(
        FileError, match=r"ended early\); run the same command again to resume from the 1\.5 MB in .*birds\.zip\.part"
    ):
        fetch(birds(site), tmp_path)
    assert len(site.asked) == 4
    assert everything(tmp_path) == ["birds.zip.part"]


def test_a_wrong_checksum_is_refused_and_the_file_removed(site, tmp_path):
    with pytest.raises(FileError, match=r"with sha256 [0-9a-f]{64}; wanted .* with feed: .*removed: try again"):
        fetch(birds(site, checksum="sha256:feed"), tmp_path)
    assert everything(tmp_path) == []


@pytest.mark.parametrize("announced", [True, False])
def test_a_server_that_sends_more_than_is_known_is_cut_off(site, tmp_path, announced):
    archive = birds(site)
    site.files["birds.zip"] += b"x" * 100_000
    site.announces = announced
    with pytest.raises(FileError, match=r"sends more than the [\d,]+ bytes that birds\.zip is known to have; it has"):
        fetch(archive, tmp_path)
    assert site.asked == [None]
    assert everything(tmp_path) == []


@pytest.mark.parametrize("laid", ["link", "dangling", "hard link", "folder", "pipe"])
def test_nothing_is_written_through_what_someone_has_laid_in_the_place_of_the_part(site, tmp_path, laid):
    root, theirs, part = tmp_path / "root", tmp_path / "theirs", tmp_path / "root" / "birds.zip.part"
    root.mkdir()
    if laid != "dangling":
        theirs.write_text("years of work")
    if laid == "hard link":
        os.link(theirs, part)
    elif laid in ("folder", "pipe"):
        (os.mkdir if laid == "folder" else os.mkfifo)(part)
    else:
        part.symlink_to(theirs)
    with pytest.raises(FileError, match=r"birds\.zip\.part is a link, or no file at all; .*delete it"):
        fetch(birds(site), root)
    assert site.asked == [] and os.listdir(root) == ["birds.zip.part"]
    assert theirs.read_text() == "years of work" if laid != "dangling" else not theirs.exists()


def test_a_link_laid_while_it_is_fetched_is_not_followed(site, tmp_path):
    site.breaks_after = [150]
    theirs, part = tmp_path / "theirs", tmp_path / "birds.zip.part"
    theirs.write_text("years of work")

    def lay(title, done, total):
        if title.startswith("fetching"):
            part.unlink(missing_ok=True)
            part.symlink_to(theirs)

    with pytest.raises(FileError, match="cannot be fetched"):
        fetch(birds(site), tmp_path, lay)
    assert theirs.read_text() == "years of work"


def test_what_another_process_fetches_is_not_fetched_twice(site, tmp_path):
    held = claimed(tmp_path / "birds.zip.part")
    with pytest.raises(FileError, match="is being written by another process"):
        fetch(birds(site), tmp_path)
    held.release()
    assert site.asked == [] and fetch(birds(site), tmp_path).is_dir()


def test_what_a_killed_process_had_unpacked_is_cleared_away(site, tmp_path):
    (tmp_path / "sets" / ".birds.entourage" / "gone").mkdir(parents=True)
    (tmp_path / "sets" / ".birds.entourage" / "gone" / "half").write_text("unpacked")
    fetch(birds(site), tmp_path)
    assert everything(tmp_path) == WHOLE and os.listdir(tmp_path / "sets") == ["birds"]


def test_a_part_of_another_file_is_found_out(site, tmp_path):
    (tmp_path / "birds.zip.part").write_bytes(b"x" * 70)
    with pytest.raises(FileError, match="removed: try again"):
        fetch(birds(site), tmp_path)
    assert everything(tmp_path) == []
    fetch(birds(site), tmp_path)
    assert everything(tmp_path) == WHOLE


def test_a_file_the_server_does_not_have(site, tmp_path):
    archive = birds(site)
    site.files.clear()
    with pytest.raises(FileError, match=r"birds\.zip answered 404 Not Found; try again later"):
        fetch(archive, tmp_path)
    assert site.asked == [None]
    assert everything(tmp_path) == []


def test_no_server_at_all(tmp_path):
    archive = Archive("http://127.0.0.1:9/birds.zip", 10, "md5:0", "birds", "birds")
    with pytest.raises(FileError, match=r"cannot be fetched \(.*refused\); try again later"):
        fetch(archive, tmp_path)
    assert everything(tmp_path) == []


def test_a_disk_without_room_is_told_before(site, tmp_path):
    with pytest.raises(FileError, match=r"GB left; wanted 2000000\.0 GB to fetch and unpack birds\.zip"):
        fetch(birds(site, size=10**15), tmp_path)
    assert site.asked == []
