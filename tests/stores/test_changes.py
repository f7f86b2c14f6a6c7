"""Several outputs change as one, also after a kill, and nothing that others put there meanwhile is lost."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.stores.folders import model_folder, names

from entourage.errors import FileError
from entourage.stores import Outputs, claims, whole_file
from entourage.stores.changes import settle, settle_to_read
from entourage.stores.claims import Claim, staging_of

# ---- several ------------------------------------------------------------------------------------------------


def test_several_outputs_appear_together_or_not_at_all(tmp_path):
    (tmp_path / "a").write_text("old")
    for failure in (None, RuntimeError):
        with pytest.raises(failure) if failure else open(os.devnull), Outputs(overwrite=True) as outputs:
            outputs.file(tmp_path / "a").write_text(f"a {failure}")
            (outputs.folder(tmp_path / "b") / "config.json").write_text('{"entourage": "0"}')
            if failure:
                raise failure
        assert (tmp_path / "a").read_text() == "a None" and names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("exchanged", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("done", [0, 1, 2])
@pytest.mark.parametrize("found_by", ["a", "b", "c"])
def test_a_decided_change_is_finished_by_whoever_comes(tmp_path, monkeypatch, exchanged, overwrite, done, found_by):
    if not exchanged:
        monkeypatch.setattr(claims, "exchange", lambda one, other: False)
    if overwrite:
        (tmp_path / "a").write_text("old")
        model_folder(tmp_path / "b")
    killed_after(monkeypatch, done)
    with pytest.raises(Killed), Outputs(overwrite=overwrite) as outputs:
        outputs.file(tmp_path / "a").write_text("new")
        (outputs.folder(tmp_path / "b") / "new").write_text("new")
        outputs.file(tmp_path / "c").write_text("new")
    monkeypatch.undo()
    settle_to_read(tmp_path / found_by)
    assert names(tmp_path) == ["a", "b", "c"]
    assert (tmp_path / "a").read_text() == (tmp_path / "c").read_text() == "new" and names(tmp_path / "b") == ["new"]


class Killed(BaseException):
    """Stands for kill -9: nothing is put in order."""


def killed_after(monkeypatch, done: int) -> None:
    """Of the outputs of a change, so many are put in place before the process is gone."""
    put, count = Claim.put_in_place, []

    def put_some(claim, *, overwrite):
        if len(count) == done:
            raise Killed
        count.append(put(claim, overwrite=overwrite))

    monkeypatch.setattr(Claim, "put_in_place", put_some)
    monkeypatch.setattr("entourage.stores.atomic.finish", lambda claims: None)
    monkeypatch.setattr(Claim, "release", Claim.abandon)


def test_ctrl_c_between_two_outputs_does_not_part_them(tmp_path, monkeypatch):
    put, count = Claim.put_in_place, []

    def interrupted(claim, *, overwrite):
        count.append(put(claim, overwrite=overwrite))
        if len(count) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Claim, "put_in_place", interrupted)
    with pytest.raises(KeyboardInterrupt), Outputs(overwrite=False) as outputs:
        outputs.file(tmp_path / "a").write_text("new")
        outputs.file(tmp_path / "b").write_text("new")
    assert names(tmp_path) == ["a", "b"]


def test_a_fault_of_the_disk_between_two_outputs_does_not_part_them(tmp_path, monkeypatch):
    put = Claim.put_in_place

    def faulty(claim, *, overwrite):
        if claim.path == tmp_path / "b":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        put(claim, overwrite=overwrite)

    with monkeypatch.context() as patched, pytest.raises(OSError, match="Input/output"):
        patched.setattr(Claim, "put_in_place", faulty)
        with Outputs(overwrite=False) as outputs:
            outputs.file(tmp_path / "a").write_text("new")
            outputs.file(tmp_path / "b").write_text("new")
    settle_to_read(tmp_path / "a")
    assert names(tmp_path) == ["a", "b"]


def test_an_undecided_change_never_happens_even_if_another_with_its_first_output_does(tmp_path, monkeypatch):
    rename = os.rename

    def killed_before_the_last(source, target):
        if staging_of(tmp_path / "a") in target.parents:
            raise Killed
        rename(source, target)

    killed_after(monkeypatch, 0)
    monkeypatch.setattr(os, "rename", killed_before_the_last)
    with pytest.raises(Killed), Outputs(overwrite=True) as outputs:
        for name in "ab":
            outputs.file(tmp_path / name).write_text("never decided")
    assert (staging_of(tmp_path / "b") / "change.json").exists()
    monkeypatch.undo()
    killed_after(monkeypatch, 0)
    with pytest.raises(Killed), Outputs(overwrite=True) as outputs:
        for name in "ac":
            outputs.file(tmp_path / name).write_text("decided")
    monkeypatch.undo()
    for name in "bca":
        settle(tmp_path / name)
    assert names(tmp_path) == ["a", "c"] and (tmp_path / "c").read_text() == "decided"


# ---- others meanwhile --------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path):
    """A file and a folder that are there, written long ago."""
    (tmp_path / "a").write_text("old")
    model_folder(tmp_path / "b")
    for path in (tmp_path / "a", tmp_path / "b", tmp_path / "b" / "config.json"):
        os.utime(path, (0, 0))
    return tmp_path


def killed(monkeypatch, folder, *, done: int, overwrite: bool) -> None:
    """A change of the file a and the folder b, of which so many are in place."""
    with monkeypatch.context() as patched:
        killed_after(patched, done)
        with pytest.raises(Killed), Outputs(overwrite=overwrite) as outputs:
            outputs.file(folder / "a").write_text("new")
            (outputs.folder(folder / "b") / "new").write_text("new")


@pytest.mark.parametrize("exchanged", [True, False])
@pytest.mark.parametrize("found_by", ["a", "b"])
def test_what_a_user_wrote_after_a_kill_is_never_replaced(pair, monkeypatch, exchanged, found_by):
    monkeypatch.setattr(claims, "exchange", claims.exchange if exchanged else lambda one, other: False)
    killed(monkeypatch, pair, done=0, overwrite=True)
    (pair / "a").write_text("mine")
    settle_to_read(pair / found_by)
    assert (pair / "a").read_text() == "mine" and names(pair / "b") == ["config.json"]
    killed(monkeypatch, pair, done=1, overwrite=True)
    (pair / "b" / "config.json").write_text('{"entourage": "mine"}')
    settle_to_read(pair / found_by)
    assert (pair / "a").read_text() == "new" and names(pair / "b") == ["config.json"]
    assert names(pair) == ["a", "b"]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("taken", ["a", "b", "c"])
def test_if_one_place_is_taken_meanwhile_no_output_appears(tmp_path, monkeypatch, late, taken):
    put = Claim.put_in_place

    def put_too_late(claim, *, overwrite):
        if claim.path == tmp_path / taken:
            claim.path.write_text("theirs")
        put(claim, overwrite=overwrite)

    with pytest.raises(FileError, match=f"{taken} has come into being meanwhile"), Outputs(overwrite=False) as outputs:
        outputs.file(tmp_path / "a").write_text("ours")
        (outputs.folder(tmp_path / "b") / "new").write_text("ours")
        outputs.file(tmp_path / "c").write_text("ours")
        if late:
            monkeypatch.setattr(Claim, "put_in_place", put_too_late)
        else:
            (tmp_path / taken).write_text("theirs")
    assert names(tmp_path) == [taken] and (tmp_path / taken).read_text() == "theirs"


@pytest.mark.parametrize("found_by", ["a", "b"])
@pytest.mark.parametrize("done", [0, 1])
def test_a_place_that_is_taken_after_a_kill_does_not_block_the_others(tmp_path, monkeypatch, done, found_by):
    killed(monkeypatch, tmp_path, done=done, overwrite=False)
    (tmp_path / "b").write_text("theirs")
    settle_to_read(tmp_path / found_by)
    assert names(tmp_path) == ["a", "b"][1 - done :] and (tmp_path / "b").read_text() == "theirs"
    with whole_file(tmp_path / "a") as file:
        file.write_text("again")
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("put_there", ["notes.txt", "encoder/notes.txt"])
def test_what_is_put_into_a_folder_while_it_is_written_anew_is_not_lost(pair, put_there):
    with (
        pytest.raises(FileError, match=f"b holds {put_there}, which Entourage did not put there"),
        Outputs(overwrite=True) as outputs,
    ):
        outputs.file(pair / "a").write_text("new")
        outputs.folder(pair / "b")
        (pair / "b" / "encoder").mkdir()
        (pair / "b" / put_there).write_text("years of work")
    assert (pair / "a").read_text() == "old" and (pair / "b" / put_there).read_text() == "years of work"
    assert names(pair) == ["a", "b"]


def test_a_file_that_comes_while_vectors_are_written_is_replaced_only_if_it_is_one_of_vectors(tmp_path):
    with pytest.raises(FileError, match=r"a\.npy is not what Entourage writes"), whole_file(tmp_path / "a.npy") as file:
        np.save(file, np.ones(2))
        (tmp_path / "a.npy").write_text("years of work")
    assert names(tmp_path) == ["a.npy"] and (tmp_path / "a.npy").read_text() == "years of work"


@pytest.mark.parametrize("done", [0, 1])
@pytest.mark.parametrize("found_by", ["a", "b"])
def test_a_change_that_was_copied_is_not_thrown_away(pair, monkeypatch, done, found_by):
    (pair / "place").mkdir()
    for name in "ab":
        os.rename(pair / name, pair / "place" / name)
    killed(monkeypatch, pair / "place", done=done, overwrite=True)
    shutil.copytree(pair / "place", pair / "copy")
    with pytest.raises(FileError, match=r"interrupted and cannot be finished, as it has been copied since; move .*new"):
        settle_to_read(pair / "copy" / found_by)
    assert (staging_of(pair / "copy" / "b") / "new" / "new").read_text() == "new"
    os.rename(pair / "place", pair / "moved")
    settle_to_read(pair / "moved" / found_by)
    assert (pair / "moved" / "a").read_text() == "new" and names(pair / "moved" / "b") == ["new"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "\x00",
        '"\\ud800',
        "[" * 100_000 + "]" * 100_000,
        '{"id": "1", "outputs": [["a", 1]]}',
        '{"id": "1", "overwrite": true, "own": 0, "outputs": [[1, 2, null]]}',
        '{"id": "1", "overwrite": true, "own": 2, "outputs": [["a", 2, null]]}',
    ],
    ids=lambda content: content[:20],
)
def test_a_damaged_change_is_an_error_of_one_sentence(pair, monkeypatch, content):
    killed(monkeypatch, pair, done=0, overwrite=True)
    (staging_of(pair / "a") / "change.json").write_text(content)
    for name in "ab":
        with pytest.raises(FileError, match=r"cannot be finished, as change.json .* is damaged; move .*, and delete"):
            settle_to_read(pair / name)


def test_a_pipe_in_the_place_of_a_change_is_not_waited_for(pair, monkeypatch):
    killed(monkeypatch, pair, done=0, overwrite=True)
    (staging_of(pair / "a") / "change.json").unlink()
    os.mkfifo(staging_of(pair / "a") / "change.json")
    with pytest.raises(FileError, match=r"cannot be finished, as change.json .* is damaged"):
        settle_to_read(pair / "a")


def test_a_change_is_finished_for_who_reads_through_a_link(pair, monkeypatch):
    (pair / "links").mkdir()
    (pair / "links" / "one").symlink_to(pair / "a")
    (pair / "links" / "other").symlink_to("one")
    killed(monkeypatch, pair, done=0, overwrite=True)
    settle_to_read(pair / "links" / "other")
    assert (pair / "a").read_text() == "new" and names(pair) == ["a", "b", "links"]


def test_what_another_user_is_writing_can_be_read(pair, monkeypatch):
    lstat, stat_, theirs = os.lstat, os.stat, staging_of(pair / "a")

    def denied(asked):
        def ask(path, *arguments, **options):
            if theirs in Path(os.fsdecode(path)).parents:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return asked(path, *arguments, **options)

        return ask

    with whole_file(pair / "a"), monkeypatch.context() as patched:
        patched.setattr(os, "lstat", denied(lstat))
        patched.setattr(os, "stat", denied(stat_))
        settle_to_read(pair / "a")
