"""A process that dies at any step loses nothing that was acknowledged; what is damaged or does not fit is said."""

import errno
import os
import shutil
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.refiner.gallery.samples import assert_equals_a_rebuild, clustered

from entourage import Gallery
from entourage.errors import EntourageError, EntourageWarning, FileError
from entourage.refiner.gallery import snapshots
from entourage.stores.claims import Claim

pytestmark = pytest.mark.usefixtures("one_thread")

X = clustered(100, dim=6)
STEPS = ("rename", "fsync", "unlink", "ftruncate", "pwrite")


class Camera:
    """Keeps a copy of a folder as it is before every step that touches the disk: what a kill there would leave."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder, self.copies = folder, []
        for name in STEPS:
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, step):
        def watched(*arguments, **options):
            self.shoot()
            return step(*arguments, **options)

        return watched

    def shoot(self) -> None:
        copy = self.folder.parent / f"copy {len(self.copies)}"
        shutil.copytree(self.folder, copy)
        self.copies.append(copy)


def test_a_kill_at_any_step_of_changes_and_snapshots_loses_nothing(tmp_path, monkeypatch):
    acknowledged = []  # by copy, which versions had been answered when it was made
    with Gallery(tmp_path / "gallery") as gallery:
        gallery.add(X[:60], range(60))
        states = {1: gallery.ids.tolist()}
        with monkeypatch.context() as patched:
            camera = Camera(tmp_path / "gallery", patched)
            for act in (
                lambda: gallery.add(X[60:63], [60, 61, 62]),
                lambda: gallery.remove([5, 61]),
                gallery.snapshot,
                lambda: gallery.update(X[70:71], [3]),
                gallery.snapshot,
            ):
                before = gallery.version
                act()
                acknowledged += [before] * (len(camera.copies) - len(acknowledged))
                states[gallery.version] = gallery.ids.tolist()
    assert len(camera.copies) > 15
    for copy, version in zip(camera.copies, acknowledged, strict=True):
        with Gallery(copy) as opened:
            assert opened.version in (version, version + 1)
            assert opened.ids.tolist() == states[opened.version]
            assert_equals_a_rebuild(opened)
            opened.add(X[80:81], [80])
        with Gallery(copy) as opened:
            assert 80 in opened
        assert sum(1 for _ in copy.glob("snapshot-*")) == 1 and not list(copy.glob("*.new"))


def test_a_full_disk_is_a_sentence_and_changes_nothing(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:30], range(30))
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", full)
            with pytest.raises(FileError, match=r"No space left on device.* was not made"):
                gallery.remove([3])
        assert gallery.version == 1 and 3 in gallery
        gallery.remove([3])
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.version == 2 and 3 not in gallery


class Failing:
    """Lets one step that touches the disk fail, before it is done or just after it, or that one and all that follow."""

    def __init__(self, monkeypatch, at: int, error: BaseException, how: str) -> None:
        self.at, self.error, self.how, self.calls = at, error, how, 0
        for name in (*STEPS, "open"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, step):
        def watched(*arguments, **options):
            self.calls += 1
            fails = self.calls > self.at if self.how == "from then on" else self.calls == self.at + 1
            if fails and self.how != "just after":
                raise self.error
            result = step(*arguments, **options)
            if fails:
                raise self.error
            return result

        return watched

    @property
    def happened(self) -> bool:
        return self.calls > self.at


@pytest.mark.parametrize("how", ["once", "just after", "from then on"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=type)
def test_whatever_fails_in_a_change_with_a_snapshot_what_was_said_is_true(tmp_path, monkeypatch, error, how):
    """A change is made unless it is refused; after a Ctrl-C, too, the gallery is on the disk as it is shown."""
    if how == "just after" and isinstance(error, OSError):
        return  # the system fails before, or does it
    at, happened = 0, True
    while happened:
        folder = tmp_path / f"gallery {at}"
        gallery = Gallery(folder)
        gallery.add(X[:5], range(5))
        gallery._seconds, unsure = 1e9, False  # a snapshot is due
        with monkeypatch.context() as patched, warnings.catch_warnings():
            warnings.simplefilter("ignore", EntourageWarning)
            failing = Failing(patched, at, error, how)
            try:
                gallery.add(X[5:6], [5])
                assert 5 in gallery
            except FileError as refused:
                assert 5 not in gallery
                unsure = "may be there when the gallery is opened again" in str(refused)
            except KeyboardInterrupt:
                unsure = how == "from then on" and 5 not in gallery
        happened, gallery._seconds = failing.happened, 0.0
        shown = gallery.ids.tolist()
        try:
            gallery.remove([0])  # a shorter record, and no snapshot
            shown = gallery.ids.tolist()
        except FileError as refused:
            assert "open the gallery again" in str(refused)
        gallery.close()
        with Gallery(folder) as opened:
            assert opened.ids.tolist() in ([shown, [*shown, 5]] if unsure else [shown]), f"step {at}"
        assert sum(1 for _ in folder.glob("snapshot-*")) == 1 and not list(folder.glob("*.new"))
        at += 1
    assert at > 8


def test_a_disk_without_room_for_a_snapshot_still_takes_changes(tmp_path, monkeypatch):
    attempts = []

    def full(path, kept):
        attempts.append(kept.version)
        path.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:30], range(30))
        with monkeypatch.context() as patched:
            patched.setattr(snapshots, "_write", full)
            gallery._seconds = 1e9
            with pytest.warns(EntourageWarning, match=r"the change was made, but .*No space left on device"):
                assert gallery.remove([3]).version == 2
            assert not list((tmp_path / "g").glob("*.new"))  # which would take the last bytes
            assert gallery.remove([4]).version == 3 and attempts == [2]  # not with every change
            with pytest.raises(FileError, match=r"No space left on device.* all changes stay in the log"):
                gallery.snapshot()
        gallery.remove([5])
        gallery.snapshot()
    with Gallery(tmp_path / "g") as gallery:
        assert gallery.version == 4 and not {3, 4, 5} & set(gallery.ids.tolist())


def test_a_snapshot_of_what_has_one_is_not_written_again(tmp_path, monkeypatch):
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:30], range(30))
        gallery.snapshot()
        monkeypatch.setattr(snapshots, "_write", lambda *given: pytest.fail("it would replace what the log names"))
        gallery.snapshot()


def test_a_change_that_is_too_large_is_refused_before_it_is_computed(tmp_path, monkeypatch):
    from entourage.refiner.gallery import log
    from entourage.refiner.gallery.view import View

    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:30], range(30))
        monkeypatch.setattr(log, "MOST_BYTES", 500)
        monkeypatch.setattr(View, "after", lambda *given: pytest.fail("work for nothing"))
        with pytest.raises(EntourageError, match=r"wanted at most 500: make it in several parts"):
            gallery.add(X[30:90], range(30, 90))
        assert gallery.version == 1


def test_versions_go_on_after_opening_again(tmp_path):
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:40], range(40))
        gallery.remove([7])
        told = gallery.changes_since(0)
    for _ in range(2):
        with Gallery(tmp_path / "g") as gallery:
            again = gallery.changes_since(0)
            np.testing.assert_array_equal(again.ids, told.ids)
            np.testing.assert_allclose(again.vectors, told.vectors, atol=1e-5)
            assert gallery.changes_since(1).removed.tolist() == [7]
            gallery.snapshot()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "snapshot-000000000002.safetensors"])
@pytest.mark.parametrize("how", ["missing", "cut", "turned"])
def test_a_damaged_file_is_named(tmp_path, name, how):
    with Gallery(tmp_path / "g") as gallery:
        gallery.add(X[:40], range(40))
        gallery.remove([7])
        gallery.snapshot()
    path = tmp_path / "g" / name
    data = path.read_bytes()
    path.unlink()
    if how != "missing":
        half = len(data) // 2
        path.write_bytes(data[:half] if how == "cut" else data[:half] + bytes([data[half] ^ 255]) + data[half + 1 :])
    if name == "model.safetensors" and how == "turned":
        return  # a number that is another number; the file has no checksum of its own
    with pytest.raises(EntourageError) as error:
        Gallery(tmp_path / "g")
    assert name.partition(".")[0] in str(error.value) or "g" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_log_of_another_snapshot_is_damage(tmp_path):
    for name in ("a", "b"):
        with Gallery(tmp_path / name) as gallery:
            gallery.add(X[:40] + (name == "b"), range(40))
            gallery.snapshot()
    shutil.copy(tmp_path / "a" / "log-000000000001", tmp_path / "b" / "log-000000000001")
    with pytest.raises(FileError, match="damaged"):
        Gallery(tmp_path / "b")


def test_a_gallery_that_ctrl_c_closed_leaves_the_next_owner_alone(tmp_path, monkeypatch):
    gallery = Gallery(tmp_path / "gallery")
    empty, handler = Claim.empty, signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(Claim, "empty", lambda claim: (signal.raise_signal(signal.SIGINT), empty(claim)))
    try:
        with pytest.raises(KeyboardInterrupt):
            gallery.close()
    finally:
        signal.signal(signal.SIGINT, handler)
    monkeypatch.undo()
    with Gallery(tmp_path / "gallery"):
        gallery.close()
        with pytest.raises(FileError, match="is being written by another process"):
            Gallery(tmp_path / "gallery")
