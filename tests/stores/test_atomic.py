"""Outputs appear whole or not at all; nothing is left beside them."""

import os
import signal
import stat
import subprocess
import sys

import pytest
from tests.stores.folders import model_folder, names

from entourage.errors import FileError
from entourage.stores import Outputs, claims, new_folder, whole_file
from entourage.stores.changes import settle
from entourage.stores.claims import Claim, staging_of


@pytest.fixture
def common_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


# ---- files -------------------------------------------------------------------------------------------------


def test_a_file_appears_under_its_name_only_when_done(tmp_path):
    target = tmp_path / "out.txt"
    with whole_file(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
        assert temporary.parent.parent == tmp_path  # the same disk, so that the rename is one step
        assert temporary.suffix == ".txt"  # by which some writers choose the format
    assert target.read_text() == "new"
    assert names(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("before", [None, "old"])
def test_a_failed_file_leaves_everything_as_it_was(tmp_path, failure, before):
    target = tmp_path / "out.txt"
    if before:
        target.write_text(before)
    with pytest.raises(failure), whole_file(target) as temporary:
        temporary.write_text("half")
        raise failure
    assert names(tmp_path) == (["out.txt"] if before else [])
    assert not before or target.read_text() == before


@pytest.mark.parametrize("step", ["restore", "empty", "abandon"])
@pytest.mark.parametrize("outputs", [["out.txt"], ["out.txt", "more.txt"]])
def test_ctrl_c_at_the_end_leaves_nothing_beside_the_outputs(tmp_path, monkeypatch, step, outputs):
    """A Ctrl-C at whatever step of the end waits until all of them are in order."""
    begun, pressed = getattr(Claim, step), []

    def interrupted(claim):
        if not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
        begun(claim)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), Outputs(overwrite=False) as together:
            for name in outputs:
                together.file(tmp_path / name).write_text("new")
            monkeypatch.setattr(Claim, step, interrupted)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert names(tmp_path) == sorted(outputs)


def test_a_file_is_as_readable_as_any_other(tmp_path, common_umask):
    with whole_file(tmp_path / "out.txt") as temporary:
        temporary.write_text("new")
    assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == 0o644


def test_a_relative_name_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with whole_file("out.txt") as temporary:
        temporary.write_text("new")
    assert names(tmp_path) == ["out.txt"]


# ---- folders -----------------------------------------------------------------------------------------------


def test_a_folder_appears_under_its_name_only_when_done(tmp_path, common_umask):
    target = tmp_path / "model"
    with new_folder(target) as filling:
        (filling / "config.json").write_text("{}")
        (filling / "config.json").chmod(0o600)  # as some libraries write theirs
        assert not target.exists()
    assert names(tmp_path) == ["model"]
    assert names(target) == ["config.json"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "config.json").stat().st_mode) == 0o644


def test_a_folder_replaces_the_old_one_entirely(tmp_path):
    target = model_folder(tmp_path / "model")
    with new_folder(target, overwrite=True) as filling:
        (filling / "new").write_text("new")
    assert names(tmp_path) == ["model"]
    assert names(target) == ["new"]


def test_a_folder_is_replaced_where_two_names_cannot_be_exchanged(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "exchange", lambda one, other: False)
    test_a_folder_replaces_the_old_one_entirely(tmp_path)


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failed_folder_leaves_the_old_one(tmp_path, failure):
    target = model_folder(tmp_path / "model")
    with pytest.raises(failure), new_folder(target, overwrite=True) as filling:
        (filling / "new").write_text("half")
        raise failure
    assert names(tmp_path) == ["model"]
    assert names(target) == ["config.json"]


def test_a_folder_killed_between_two_renames_is_put_back(tmp_path, monkeypatch):
    target = model_folder(tmp_path / "model")
    claim = Claim(target)
    claim.new.mkdir()
    os.rename(target, claim.old)  # and here it was killed
    claim.abandon()
    settle(target)
    assert names(tmp_path) == ["model"] and names(target) == ["config.json"]


def test_a_claim_is_released_once(tmp_path):
    first = Claim(tmp_path / "out.txt")
    first.release()
    second = Claim(tmp_path / "out.txt")
    first.release()
    assert second.staging.exists()
    second.release()
    assert names(tmp_path) == []


def test_an_output_that_cannot_be_released_does_not_keep_the_others(tmp_path, monkeypatch):
    empty = Claim.empty

    def failing(claim):
        if claim.path.name == "b":
            raise OSError("the disk is gone")
        empty(claim)

    with pytest.raises(OSError, match="the disk is gone"), Outputs(overwrite=False) as outputs:
        for name in "abc":
            outputs.file(tmp_path / name).write_text("new")
        monkeypatch.setattr(Claim, "empty", failing)
    assert names(tmp_path) == [".b.entourage", "a", "b", "c"]


# ---- two processes ------------------------------------------------------------------------------------------


def test_what_another_process_is_writing_is_refused_and_left_alone(tmp_path):
    write = "f.write_text('theirs'); print(flush=True); input()"
    code = f"import sys, entourage.stores as s\nwith s.whole_file(sys.argv[1]) as f: {write}"
    writing = [sys.executable, "-c", code, str(tmp_path / "a")]
    with subprocess.Popen(writing, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(FileError, match=r"a is being written by another process; wait"), whole_file(tmp_path / "a"):
            pass
        other.communicate(b"\n")
    assert (tmp_path / "a").read_text() == "theirs" and names(tmp_path) == ["a"]


def test_a_process_that_is_dead_holds_nothing(tmp_path):
    write = "f.write_text('half'); os._exit(9)"
    code = f"import os, sys, entourage.stores as s\nwith s.whole_file(sys.argv[1]) as f: {write}"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=False).returncode == 9
    assert names(tmp_path) == [".a.entourage"]
    with whole_file(tmp_path / "a", overwrite=False) as file:
        assert file.read_text() == ""
        file.write_text("ours")
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "ours"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_came_into_being_meanwhile_is_not_replaced(tmp_path, kind):
    with (
        pytest.raises(FileError, match="a has come into being meanwhile and is left alone"),
        Outputs(overwrite=False) as outputs,
    ):
        new = getattr(outputs, kind)(tmp_path / "a")
        (new if kind == "file" else new / "b").write_text("ours")
        (tmp_path / "a").write_text("theirs")
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "theirs"


# ---- what lies where we write --------------------------------------------------------------------------------


def test_no_link_is_followed_that_lies_where_we_write(tmp_path):
    (tmp_path / "theirs").mkdir()
    staging_of(tmp_path / "a").symlink_to(tmp_path / "theirs")
    with pytest.raises(FileError, match=r"\.a\.entourage is in the way; delete it"), whole_file(tmp_path / "a"):
        pass
    assert names(tmp_path) == [".a.entourage", "theirs"] and names(tmp_path / "theirs") == []


def test_files_of_others_where_we_write_are_left_alone(tmp_path):
    staging_of(tmp_path / "a").mkdir()
    (staging_of(tmp_path / "a") / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match="is in the way"), whole_file(tmp_path / "a"):
        pass
    assert (staging_of(tmp_path / "a") / "thesis.tex").exists()


def test_a_link_in_the_place_of_an_output_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "a").symlink_to("theirs")
    with whole_file(tmp_path / "a") as file:
        file.write_text("ours")
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "theirs").read_text() == "theirs"
