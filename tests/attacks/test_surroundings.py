"""A machine that has run out of something, odd variables in the environment, closed outputs, faults of our own.

Tried: a disk that is full (files of more than a few bytes cannot be written; standard output is /dev/full), memory that
is not there, standard output closed or a pipe that nobody reads, NUMBA_* variables of no meaning, JSON nested 100,000
deep and TOML 3,000 deep, arrays called `file` and `allow_pickle`, pipes and names that are not UTF-8 among pictures.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image
from tests.attacks.judging import UNEXPECTED, fault
from tests.attacks.victims import GLYPHS, write_vectors
from tests.cli.shop import run

ENTOURAGE = [sys.executable, "-m", "entourage"]


@pytest.fixture
def shop(tmp_path, monkeypatch, one_thread):
    write_vectors(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def full_disk():
    """No file can grow beyond 300 bytes, which programs are told as they are told of a full disk."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(
    "command",
    [
        "refine v.npz --out out.npz",
        "refine v.npz --run out",
        "fit v.npz --out out --recipe paper --blocks 1 --epochs 1",
        "train v.npz --out out --encoder linear --dim 4 --set batch_classes=3 --epochs 1 --no-nmi",
    ],
)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(shop, full_disk, command):
    before = sorted(os.listdir())
    outcome = run(command)
    said = outcome.stderr.splitlines()[-1]
    assert outcome.exit_code in (1, 2) and said.startswith("error: ") and "Traceback" not in outcome.stderr
    assert "no space left on the disk" in said or "free some space" in said
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_an_output_that_nobody_reads_or_that_is_full(shop, options):
    line = [*ENTOURAGE, "evaluate", "v.npz", "--no-nmi", *options]
    nobody, pipe = os.pipe()
    os.close(nobody)
    unread = subprocess.run(line, stdout=pipe, stderr=subprocess.PIPE, text=True).stderr
    assert "error" not in unread and "Traceback" not in unread
    os.close(pipe)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("error: there is no space left on the disk")
    closed = subprocess.run([*line], preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE, text=True)
    assert closed.returncode == 0 and "Traceback" not in closed.stderr


def raising(error):
    def refine(*args, **options):
        raise error

    return refine


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError("Unable to allocate 7 TiB"), 1, "error: there is not enough memory (MemoryError: Unable to"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 1, "error: there is not enough memory"),
        (OSError(28, "No space left on device"), 1, "error: there is no space left on the disk"),
        (PermissionError(13, "Permission denied", "x"), 2, "error: x cannot be used (permission denied); check"),
        (
            ZeroDivisionError("by\nzero"),
            1,
            "error: ZeroDivisionError: by, which Entourage did not expect (cli/refine.py",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_is_left_becomes_a_sentence_at_the_edge_and_a_traceback_with_debug(shop, monkeypatch, error, code, said):
    monkeypatch.setattr("entourage.runs.refine.refine", raising(error))
    outcome = run("refine v.npz --out out.npz")
    assert (outcome.exit_code, outcome.stdout) == (code, "")
    assert outcome.stderr.startswith(said) and len(outcome.stderr.splitlines()) == 1
    for line in ("--debug refine v.npz --out out.npz", "refine v.npz --out out.npz --debug"):
        shown = run(line)
        assert shown.exit_code == code and "Traceback (most recent call last)" in shown.stderr
        assert shown.stderr.splitlines()[-1].startswith(said[:30])
    monkeypatch.setenv("ENTOURAGE_DEBUG", "1")
    assert "Traceback (most recent call last)" in run("refine v.npz --out out.npz").stderr


@pytest.mark.parametrize(
    ("variable", "code", "command"),
    [
        ("NUMBA_NUM_THREADS=-1", 2, "refine v.npz --out out.npz"),
        ("NUMBA_NUM_THREADS=abc", 0, "refine v.npz --out out.npz"),
        pytest.param("NUMBA_OPT=most", 0, "refine v.npz --out out.npz", marks=pytest.mark.attack),
        ("MPLBACKEND=nothing", 2, "plot steps run --out out.png"),
        ("HF_HUB_DOWNLOAD_TIMEOUT=soon", 2, f"embed {GLYPHS} --model no/such --out out.npz"),
    ],
)
def test_variables_of_libraries_that_make_no_sense_are_named(shop, variable, code, command):
    if command.startswith("plot"):
        assert run("refine v.npz --run run").exit_code == 0
    name, value = variable.split("=")
    done = subprocess.run(
        [*ENTOURAGE, *command.split()], env=os.environ | {name: value}, capture_output=True, text=True
    )
    assert UNEXPECTED not in done.stderr and "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if name in line]
    assert done.returncode == code and len(told) == 1
    assert told[0].startswith("error: " if code else "warning: ") and value in told[0]


@pytest.mark.parametrize(
    "variable",
    [
        "NUMBA_DISABLE_JIT=1",
        "OMP_NUM_THREADS=abc",
        *(pytest.param(each, marks=pytest.mark.attack) for each in ("NUMBA_CACHE_DIR=v.npz", "MKL_NUM_THREADS=abc")),
    ],
)
def test_variables_that_can_be_done_without_hinder_nothing(shop, variable):
    name, value = variable.split("=")
    line = [*ENTOURAGE, "evaluate", "v.npz", "--no-nmi"]
    done = subprocess.run(line, env=os.environ | {name: value}, capture_output=True, text=True)
    assert done.returncode == 0 and "recall@1" in done.stdout and "Traceback" not in done.stderr


def test_documents_nested_without_end_are_refused(shop):
    (shop / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (shop / "deep.toml").write_text(f"epochs = {'[' * 3000}{']' * 3000}")
    assert fault(["refine", "v.npz", "--run", "out", "--texts", "deep.json"], codes=(2,)) is None
    assert fault(["train", "v.npz", "--out", "out", "--config", "deep.toml"], codes=(2,)) is None


def test_arrays_of_any_name_are_kept(shop):
    with np.load("v.npz") as held:
        arrays = dict(held) | {"file": np.arange(3), "allow_pickle": np.arange(2)}
    with zipfile.ZipFile("odd.npz", "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array)
    assert fault(["refine", "odd.npz", "--out", "out.npz"], codes=(0,)) is None
    with np.load("out.npz") as written:
        assert written.files == [*arrays, "entourage_refined"] and written["file"].tolist() == [0, 1, 2]


def test_pictures_that_are_pipes_are_left_out_and_names_that_are_no_text_refused(shop):
    from entourage import data

    rng = np.random.default_rng(0)
    for label in "ab":
        os.makedirs(f"pictures/{label}")
        for shot in range(3):
            Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(f"pictures/{label}/{shot}.png")
    os.mkfifo("pictures/a/pipe.png")
    with pytest.raises(OSError, match="no regular file"):
        data.load("pictures", "all").picture(3)
    shutil.copy("pictures/a/0.png", b"pictures/a/\xff.png")
    outcome = run("embed pictures --split all --model nothing --out out.npz")
    assert outcome.exit_code == 2 and "is no valid text" in outcome.stderr
