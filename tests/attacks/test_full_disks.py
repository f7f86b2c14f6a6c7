"""A real disk that is full: a small one in memory, mounted for the test, which needs root.

A mapped file takes its room before it is written to: where a full disk has none for a page of it, the system ends the
process (SIGBUS), and nothing could be said or kept.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.shop import run
from tests.runs.test_streamed import KEYS, assert_refined, few
from tests.stores.engines import ENGINES, NAME

from entourage.stores.mapped import mapped_array

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def disk(tmp_path):
    """A disk of 8 MB, empty."""
    mount = tmp_path / "disk"
    mount.mkdir()
    options = ["-t", "tmpfs", "-o", "size=8m", "none", str(mount)]
    try:
        subprocess.run(["mount", *options], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk can be mounted here, which needs root: {error}")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def fill_up(disk: Path, spare: int) -> Path:
    """Leave so many bytes free."""
    status = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - spare)))
    return filler


def test_a_mapped_file_for_which_there_is_no_room_is_refused_rather_than_ending_the_process(disk):
    fill_up(disk, 2**18)
    with pytest.raises(OSError, match="No space left"):
        mapped_array(disk / "x.npy", (2**20,), np.float32)
    mapped_array(disk / "y.npy", (2**10,), np.float32)[:] = 1


@pytest.mark.parametrize("name", ["faiss", "lance", "parquet"])  # all that is embedded in a few files
@pytest.mark.parametrize("spare", [2**13, 40_000])
def test_a_store_on_a_full_disk_is_one_sentence_and_goes_on_when_there_is_room(disk, name, spare):
    engine = ENGINES[name]
    pytest.importorskip(engine.library, reason=f"{name}: its package is not installed")
    url = engine.fill(disk, KEYS, few())
    before = engine.read(disk, NAME)
    filler = fill_up(disk, spare)
    refused = run(f"refine {url}")
    said = refused.stderr.splitlines()[-1]
    assert refused.exit_code in (1, 2) and said.startswith("error: there is no space left on the disk"), refused.stderr
    assert engine.read(disk, f"{NAME}_refined") == {} and sorted(engine.read(disk, NAME)) == sorted(before)
    filler.unlink()
    resumed = " --resume" if list(disk.rglob("*.refining")) else ""
    assert (resumed != "") == ("add --resume" in said)
    assert run(f"refine {url}{resumed}").exit_code == 0
    assert_refined(engine.read(disk, f"{NAME}_refined"))


def test_a_file_on_a_full_disk_is_one_sentence_and_goes_on_when_there_is_room(disk):
    np.save(disk / "x.npy", few())
    filler = fill_up(disk, 60_000)
    command = f"refine {disk}/x.npy --out {disk}/y.npy --search exact"
    refused = run(command)
    assert "error: there is no space left on the disk" in refused.stderr and not (disk / "y.npy").exists()
    filler.unlink()
    assert run(command + " --resume" * ("add --resume" in refused.stderr)).exit_code == 0
    assert len(np.load(disk / "y.npy")) == len(KEYS)


def test_a_command_is_not_ended_by_the_system(disk):
    """As a process of its own, which a fault of a mapped page would end."""
    np.save(disk / "x.npy", np.random.default_rng(0).normal(size=(3000, 64)).astype(np.float32))
    fill_up(disk, 2**20)
    command = [
        sys.executable,
        "-m",
        "entourage",
        "refine",
        f"{disk}/x.npy",
        "--out",
        f"{disk}/y.npy",
        "--search",
        "exact",
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode > 0 and "there is no space left on the disk" in ended.stderr, ended.stderr
