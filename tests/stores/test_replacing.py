"""What may be replaced is decided in one place: what we wrote, if it is allowed, and never an input."""

import os

import numpy as np
import pytest

from entourage.errors import FileError, InputError
from entourage.stores import check_apart, check_file, check_folder, check_kept


@pytest.mark.parametrize("check", [check_file, check_folder])
def test_a_new_name_is_free(tmp_path, check):
    assert check(tmp_path / "new", overwrite=False) == tmp_path / "new"


@pytest.mark.parametrize("check", [check_file, check_folder])
def test_the_folder_around_must_exist(tmp_path, check):
    with pytest.raises(FileError, match=r"the folder .*nowhere does not exist; create it or choose another"):
        check(tmp_path / "nowhere" / "out.npy", overwrite=True)


@pytest.mark.parametrize("check", [check_file, check_folder])
@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "/"])
def test_an_output_has_a_name(tmp_path, monkeypatch, check, name):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match=r"the output is '.*'; wanted the name of a file or folder"):
        check(name, overwrite=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_the_folder_around_must_be_writable(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(FileError, match="cannot be written to; choose another"):
        check_file(tmp_path / "out.npy", overwrite=False)
    tmp_path.chmod(0o755)


# ---- files -------------------------------------------------------------------------------------------------


def test_an_existing_file_is_free_only_to_be_overwritten(tmp_path):
    path = tmp_path / "there.png"
    path.write_text("old")
    with pytest.raises(FileError, match=r"there.png exists already; choose another name .*\(--overwrite\)$"):
        check_file(path, overwrite=False)
    assert check_file(path, overwrite=True) == path
    assert path.read_text() == "old"


def test_a_link_that_leads_nowhere_is_in_the_way_too(tmp_path):
    (tmp_path / "a").symlink_to("nowhere")
    with pytest.raises(FileError, match="exists already"):
        check_file(tmp_path / "a", overwrite=False)


@pytest.mark.parametrize("suffix", [".npy", ".NPY", ".npz", ".parquet"])
def test_something_else_by_the_name_of_vectors_is_never_replaced(tmp_path, suffix):
    (tmp_path / f"v{suffix}").write_text("years of work")
    with pytest.raises(FileError, match="is not what Entourage writes under such a name, and is never replaced"):
        check_file(tmp_path / f"v{suffix}", overwrite=True)
    (tmp_path / f"v{suffix}").write_text("")
    check_file(tmp_path / f"v{suffix}", overwrite=True)


def test_a_file_never_takes_the_place_of_a_folder_or_a_pipe(tmp_path):
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(FileError, match=r"folder\.npy is a folder; wanted the name of a file"):
        check_file(tmp_path / "folder.npy", overwrite=True)
    with pytest.raises(FileError, match=r"pipe\.npy is not a regular file, and is never replaced"):
        check_file(tmp_path / "pipe.npy", overwrite=True)


# ---- folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["config.json", "run.json", "plan.json"])
def test_a_folder_written_here_may_be_overwritten(tmp_path, mark):
    (tmp_path / mark).write_text('{"entourage": "0.1.0"}')
    with pytest.raises(FileError, match="exists already"):
        check_folder(tmp_path, overwrite=False)
    assert check_folder(tmp_path, overwrite=True) == tmp_path


@pytest.mark.parametrize("content", ['{"model_type": "bert"}', "[]", "not json"])
def test_the_model_of_another_program_is_never_overwritten(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(FileError, match="did not write"):
        check_folder(tmp_path, overwrite=True)


def test_an_empty_folder_may_be_overwritten(tmp_path):
    assert check_folder(tmp_path, overwrite=True) == tmp_path


def test_a_folder_of_other_things_is_never_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match="a folder that Entourage did not write, and is never replaced"):
        check_folder(tmp_path, overwrite=True)


@pytest.mark.parametrize("foreign", ["notes.txt", "encoder/notes.txt", "mine/config.json", "my-items.npz", ".hidden"])
def test_a_folder_of_ours_with_something_of_the_users_is_never_overwritten(tmp_path, foreign):
    (tmp_path / "config.json").write_text('{"entourage": "0.1.0"}')
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_text("years of work")
    with pytest.raises(FileError, match=r"holds (mine|.*notes.txt|my-items.npz|.hidden), which Entourage did not put"):
        check_folder(tmp_path, overwrite=True)


@pytest.mark.parametrize(
    ("mark", "foreign"),
    [
        *(
            ("config.json", name)
            for name in ("train.npz", "items.npz", "00001.npz", "query.png", "texts.json", "model")
        ),
        *(("config.json", f"encoder/{name}") for name in ("log.jsonl", "encoder", "events.out.tfevents.1")),
        *(("run.json", name) for name in ("config.json", "log.jsonl", "model.safetensors", "00001.npz")),
        *(("plan.json", name) for name in ("2024.npz", "items.npz", "config.json", "report.html")),
    ],
)
def test_what_is_ours_in_one_kind_of_folder_is_the_users_in_another(tmp_path, mark, foreign):
    (tmp_path / mark).write_text('{"entourage": "0.1.0"}')
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_text("years of work")
    with pytest.raises(FileError, match=f"holds {foreign}, which Entourage did not put there"):
        check_folder(tmp_path, overwrite=True)


@pytest.mark.parametrize(
    ("mark", "ours"),
    [
        ("config.json", "model.safetensors"),
        ("config.json", "cross_image/gradients.jsonl"),
        ("config.json", "tensorboard/events.out.tfevents.1.host"),
        ("run.json", "model/config.json"),
        ("run.json", "train.npz"),
        ("plan.json", "00012.npz"),
        ("plan.json", ".DS_Store"),
    ],
)
def test_what_is_written_in_a_folder_is_replaced_with_it(tmp_path, mark, ours):
    (tmp_path / mark).write_text('{"entourage": "0.1.0"}')
    (tmp_path / ours).parent.mkdir(exist_ok=True)
    (tmp_path / ours).write_text("")
    assert check_folder(tmp_path, overwrite=True) == tmp_path


def test_a_folder_never_takes_the_place_of_a_file(tmp_path):
    (tmp_path / "thesis.pdf").write_text("years of work")
    os.mkfifo(tmp_path / "pipe")
    for name in ("thesis.pdf", "pipe"):
        with pytest.raises(FileError, match="is a file, and is never replaced by a folder"):
            check_folder(tmp_path / name, overwrite=True)


def test_a_device_is_never_replaced():
    """Only asked, never tried: it would be the machine's own."""
    with pytest.raises(FileError, match="is not a regular file, and is never replaced"):
        check_file(os.devnull, overwrite=True)
    with pytest.raises(FileError, match="is a file, and is never replaced by a folder"):
        check_folder(os.devnull, overwrite=True)


# ---- inputs, and several outputs ---------------------------------------------------------------------------


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """One file by many names, and a folder that holds another."""
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.ones(2))
    os.symlink("v.npy", "link.npy")
    os.link("v.npy", "hard.npy")
    os.mkdir("run")
    np.save("run/items.npy", np.ones(2))
    os.symlink("run", "run-too")
    os.symlink("not-yet.npy", "later.npy")
    return tmp_path


SAME = [
    ("v.npy", "./v.npy"),
    ("v.npy", "run/../v.npy"),
    ("link.npy", "v.npy"),
    ("hard.npy", "v.npy"),
    ("run/new.npy", "run-too/new.npy"),
    ("later.npy", "not-yet.npy"),
    ("run", "run-too"),
]


@pytest.mark.parametrize(("one", "other"), [*SAME, *(pair[::-1] for pair in SAME)])
def test_two_outputs_are_not_one_by_whatever_paths(paths, one, other):
    with pytest.raises(InputError, match=r"--out is .* and --context-out is .*, which are one; give each a name"):
        check_apart({"--out": one, "--context-out": other})


def test_an_output_does_not_lie_in_another(paths):
    with pytest.raises(InputError, match=r"run-too/new.npy lies in run, which is written too"):
        check_apart({"--out": "run-too/new.npy", "--run": "run"})
    check_apart({"--out": "run-too/new.npy", "--run": None, "--context-out": "run/other.npy"})


@pytest.mark.parametrize(("one", "other"), [pair for pair in SAME if os.path.basename(pair[0]) != "new.npy"])
def test_no_input_is_an_output_by_whatever_path(paths, one, other):
    np.save("not-yet.npy", np.ones(2))
    for output, given in ((one, other), (other, one)):
        with pytest.raises(InputError, match="is an input; give what is written a name of its own"):
            check_kept([None, output], ["column", None, given])


@pytest.mark.parametrize("given", ["run/items.npy", "run-too/items.npy"])
def test_a_folder_that_holds_an_input_is_no_output(paths, given):
    with pytest.raises(InputError, match=r"run holds the input .*items\.npy"):
        check_kept(["run"], [given])


def test_other_files_are_kept_apart(paths):
    check_apart({"--out": "v.npy", "--context-out": "run/v.npy"})
    check_kept(["new.npy", "run/new.npy"], ["v.npy", "run", "column"])


def test_labels_are_no_vectors_and_are_not_replaced_by_them(tmp_path):
    np.save(tmp_path / "labels.npy", np.arange(30))
    np.save(tmp_path / "vectors.npy", np.ones((3, 2)))
    with pytest.raises(FileError, match="is not what Entourage writes under such a name"):
        check_file(tmp_path / "labels.npy", overwrite=True)
    assert check_file(tmp_path / "vectors.npy", overwrite=True) == tmp_path / "vectors.npy"


def test_a_link_to_itself_is_no_input_and_may_be_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink("circle.npy", "circle.npy")
    check_kept(["circle.npy"], ["other.npy"])
    check_apart({"--out": "circle.npy", "--context-out": "other.npy"})
    assert check_file("circle.npy", overwrite=True).name == "circle.npy"
    with pytest.raises(FileError, match="exists already"):
        check_file("circle.npy", overwrite=False)
    with pytest.raises(InputError, match="which are one"):
        check_apart({"--out": "circle.npy", "--context-out": "./circle.npy"})


@pytest.mark.parametrize("damage", ["a pipe", "nested"])
def test_a_folder_whose_mark_cannot_be_read_is_not_ours(tmp_path, damage):
    (tmp_path / "run").mkdir()
    if damage == "a pipe":
        os.mkfifo(tmp_path / "run" / "run.json")
    else:
        (tmp_path / "run" / "run.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(FileError, match="is a folder that Entourage did not write"):
        check_folder(tmp_path / "run", overwrite=True)
