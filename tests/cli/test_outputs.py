"""What commands write: never over an input or over what Entourage did not write, never one file for two outputs."""

import os
import shutil

import numpy as np
import pytest
from tests.cli.shop import FIT, check_refused, files, run
from tests.data.pictures import write_picture

from entourage.errors import FileError
from entourage.refiner.estimator import ContextRefiner

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def kept(shop):
    assert run(f"refine {shop}/v.npz --run {shop}/kept").exit_code == 0
    return shop / "kept"


@pytest.fixture
def desk(shop, kept, tmp_path, monkeypatch):
    """Files of all kinds that no command may replace, and a run that may be."""
    for name in ("v.npy", "v.npz", "l.npy", "l.txt", "l.csv", "v.parquet"):
        shutil.copy(shop / name, tmp_path)
    for source, name in ((shop / "model", "model"), (kept, "kept"), (kept, "commented")):
        shutil.copytree(source, tmp_path / name)
    for name in ("thesis.pdf", "m.checkpoint", "commented/notes.txt"):
        (tmp_path / name).write_text("years of work")
    os.link(tmp_path / "v.npy", tmp_path / "hard.npy")
    os.symlink("v.npy", tmp_path / "link.npy")
    monkeypatch.chdir(tmp_path)
    return tmp_path


INPUTS = {
    "vectors as run": ("refine v.npy --run v.npy", "v.npy is an input"),
    "vectors by a hard link": ("refine v.npy --out hard.npy", "hard.npy is an input"),
    "vectors by a link": ("refine link.npy --out v.npy", "v.npy is an input"),
    "labels as output": ("refine v.npy --run new --labels l.npy --out l.npy", "l.npy is an input"),
    "gallery as output": ("refine v.npy --context hard.npy --out v.npy", "v.npy is an input"),
    "model as run": ("refine v.npy --model model --run model", "model is an input"),
    "texts as run": ("refine v.npy --texts l.txt --run l.txt", "l.txt is an input"),
    "a run that holds the vectors": ("refine kept/items.npz --run kept", "kept holds the input kept/items.npz"),
    "a run that holds the model": ("refine v.npy --model kept/model --run kept", "kept holds the input kept/model"),
    "labels as model": ("fit v.npy --labels l.npy --out l.npy", "l.npy is an input"),
    "vectors as model": ("fit v.npz --out v.npz", "v.npz is an input"),
    "vectors as training": ("train v.npz --out v.npz", "v.npz is an input"),
    "vectors as embedding": ("embed v.npz --model kept --out v.npz", "v.npz is an input"),
    "a table as labels of the embedding": ("embed l.csv --model kept --out l.npy", "l.csv is an input"),
}
OTHERS = {
    "a file as run": ("refine v.npy --run thesis.pdf", "thesis.pdf is a file, and is never replaced by a folder"),
    "a file as model": ("fit v.npz --out thesis.pdf", "thesis.pdf is a file, and is never replaced by a folder"),
    "a file as training": ("train v.npz --out thesis.pdf", "thesis.pdf is a file, and is never replaced by a folder"),
    "a file as demo": ("demo --out thesis.pdf", "thesis.pdf is a file, and is never replaced by a folder"),
    "a checkpoint of another program": (
        "fit v.npz --out m --recipe paper",
        "m.checkpoint is not what Entourage",
    ),
    "a run with notes in it": (
        "refine v.npy --run commented",
        "commented holds notes.txt, which Entourage",
    ),
    "a mistyped input comes first": ("refine typo.npy --run commented", "typo.npy does not exist"),
    "a mistyped input of a fit": ("fit typo.npz --out thesis.pdf", "typo.npz does not exist"),
    "a table beside vectors": ("embed v.parquet --model kept --out l.npy", "l.csv"),
    "a folder as picture": ("plot grid kept --out kept.png", "kept.png is a folder"),
    "a folder as report": ("report kept --out kept.html", "kept.html is a folder"),
}
TOGETHER = {
    "one file": ("refine v.npy --context v.npz --out new.npy --context-out ./new.npy", "which are one"),
    "one file by a link": ("refine v.npy --context v.npz --out new.npy --context-out to-new.npy", "which are one"),
    "one inside the other": ("refine v.npy --run kept --out kept/new.npy", "kept/new.npy lies in kept"),
    "run and vectors": ("refine v.npy --run new.npy --out new.npy", "which are one"),
}


@pytest.mark.parametrize(("command", "message"), [*INPUTS.values(), *TOGETHER.values()], ids=[*INPUTS, *TOGETHER])
def test_no_input_is_replaced_and_no_two_outputs_are_one(desk, command, message):
    os.symlink("new.npy", "to-new.npy")
    check_refused(desk, f"{command} --overwrite", message)


@pytest.mark.parametrize(("command", "message"), OTHERS.values(), ids=OTHERS)
def test_what_entourage_did_not_write_is_not_replaced(desk, command, message):
    for name in ("kept.png", "kept.html"):
        os.mkdir(name)
    (desk / "l.csv").write_text("id,label,price\n" + "1,2,3\n")
    check_refused(desk, f"{command} --overwrite", message)


def test_a_picture_of_the_items_is_not_replaced_by_one_of_the_run(desk):
    ids = [f"{label}/{number}.png" for label in "ab" for number in range(12)]
    for number, name in enumerate(ids):
        write_picture(desk / "photos" / name, 9 * number)
    np.savez("p.npz", vectors=np.load("v.npy")[:24], ids=ids, labels=[name[0] for name in ids])
    assert run("refine p.npz --run shown --pictures photos --split all").exit_code == 0
    check_refused(desk, "plot steps shown --out photos/a/0.png --overwrite", "photos/a/0.png is an input")
    for more in ("", " --overwrite"):
        assert run(f"plot steps shown --out photos/steps.png{more}").exit_code == 0


def test_python_replaces_no_file_by_a_model(desk):
    refiner = ContextRefiner().fit(np.load("v.npy"))
    for name in ("thesis.pdf", "v.npy"):
        before = files(desk)
        with pytest.raises(FileError, match="is a file, and is never replaced by a folder"):
            refiner.save(name, overwrite=True)
        assert files(desk) == before
    refiner.save("model", overwrite=True)


@pytest.mark.parametrize("suffix", [".NPY", ".NPZ", ".PARQUET", ".Npy"])
def test_names_in_capitals_are_refined_like_others(desk, suffix):
    shutil.copy(f"v{suffix.lower()}", f"V{suffix}")
    for more in ("", " --overwrite"):
        assert run(f"refine V{suffix} --out OUT{suffix}{more}").exit_code == 0
        assert run(f"refine v{suffix.lower()} --out out{suffix.lower()}{more}").exit_code == 0
        assert (desk / f"OUT{suffix}").read_bytes() == (desk / f"out{suffix.lower()}").read_bytes() != b""


@pytest.mark.parametrize("output", ["--out new.npy", "--run new", "--out new.npy --run new"])
def test_an_output_that_another_process_wrote_meanwhile_is_not_replaced(desk, monkeypatch, output):
    from entourage.runs import refine

    refined = refine._refined

    def slowly(*arguments):
        done = refined(*arguments)
        for name in output.split()[1::2]:
            (desk / name).write_text("theirs")
        return done

    monkeypatch.setattr(refine, "_refined", slowly)
    outcome = run(f"refine v.npy {output}")
    assert outcome.exit_code == 2 and "exists already" in outcome.stderr
    assert {(desk / name).read_text() for name in output.split()[1::2]} == {"theirs"}
    assert [name for name in os.listdir() if name.startswith(".")] == []


def test_overwrite_replaces_a_run_with_its_report_and_a_model(desk):
    assert run("report kept").exit_code == 0
    assert run("refine v.npz --run kept --overwrite").exit_code == 0
    assert "report.html" not in os.listdir("kept")
    assert run(f"fit v.npz --out model --overwrite {FIT}").exit_code == 0
