"""A process that dies at any step loses nothing that was acknowledged; what is damaged or does not fit is said."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.refiner.gallery.samples import assert_equals_a_rebuild, clustered

from entourage import Gallery
from entourage.errors import EntourageError, FileError

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
