"""Output appears whole or not at all, and nothing is replaced that was not meant to be."""

import os
import stat

import pytest

from entourage.errors import FileError
from entourage.stores import check_free, new_folder, whole_file


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def common_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


# ---- files -------------------------------------------------------------------------------------------------


def test_a_file_appears_under_its_name_only_when_done(tmp_path):
    target = tmp_path / "out.npy"
    with whole_file(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
        assert temporary.parent == tmp_path  # the same disk, so that the rename is one step
        assert temporary.suffix == ".npy"  # np.save adds the suffix to names without it
    assert target.read_text() == "new"
    assert names(tmp_path) == ["out.npy"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("before", [None, "old"])
def test_a_failed_file_leaves_everything_as_it_was(tmp_path, failure, before):
    target = tmp_path / "out.npy"
    if before:
        target.write_text(before)
    with pytest.raises(failure), whole_file(target) as temporary:
        temporary.write_text("half")
        raise failure
    assert names(tmp_path) == (["out.npy"] if before else [])
    assert not before or target.read_text() == before


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
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")
    with new_folder(target) as filling:
        (filling / "new").write_text("new")
    assert names(tmp_path) == ["model"]
    assert names(target) == ["new"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failed_folder_leaves_the_old_one(tmp_path, failure):
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")
    with pytest.raises(failure), new_folder(target) as filling:
        (filling / "new").write_text("half")
        raise failure
    assert names(tmp_path) == ["model"]
    assert names(target) == ["old"]


@pytest.mark.parametrize("interrupted", [1, 2])
def test_a_folder_survives_an_interruption_between_the_renames(tmp_path, monkeypatch, interrupted):
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")
    rename, calls = os.replace, []

    def interrupt(source, destination):
        calls.append(source)
        if len(calls) == interrupted:
            raise KeyboardInterrupt
        rename(source, destination)

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt), new_folder(target) as filling:
        (filling / "new").write_text("new")
    assert names(tmp_path) == ["model"]
    assert names(target) == ["old"]


# ---- what may be written -----------------------------------------------------------------------------------


def test_a_new_name_is_free(tmp_path):
    assert check_free(tmp_path / "new", overwrite=False) == tmp_path / "new"


def test_an_existing_file_is_free_only_to_be_overwritten(tmp_path):
    path = tmp_path / "there"
    path.write_text("old")
    with pytest.raises(FileError, match=r"there exists already; choose another name .*\(--overwrite\)$"):
        check_free(path, overwrite=False)
    assert check_free(path, overwrite=True) == path
    assert path.read_text() == "old"


@pytest.mark.parametrize("mark", ["config.json", "run.json"])
def test_a_folder_written_here_may_be_overwritten(tmp_path, mark):
    (tmp_path / mark).write_text('{"entourage": "0.1.0"}')
    assert check_free(tmp_path, overwrite=True) == tmp_path


@pytest.mark.parametrize("content", ['{"model_type": "bert"}', "[]", "not json"])
def test_the_model_of_another_program_is_never_overwritten(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(FileError, match="did not write"):
        check_free(tmp_path, overwrite=True)


def test_an_empty_folder_may_be_overwritten(tmp_path):
    assert check_free(tmp_path, overwrite=True) == tmp_path


def test_a_folder_of_other_things_is_never_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match="a folder that Entourage did not write, and is never replaced"):
        check_free(tmp_path, overwrite=True)


def test_the_folder_around_must_exist(tmp_path):
    with pytest.raises(FileError, match=r"the folder .*nowhere does not exist; create it or choose another"):
        check_free(tmp_path / "nowhere" / "out.npy", overwrite=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_the_folder_around_must_be_writable(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(FileError, match="cannot be written to; choose another"):
        check_free(tmp_path / "out.npy", overwrite=False)
    tmp_path.chmod(0o755)
