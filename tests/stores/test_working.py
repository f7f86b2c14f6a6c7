import os

import pytest

from entourage.errors import EntourageWarning, FileError
from entourage.stores import WorkFolder

CONTENT = {"entourage": "1"}


def begun(path):
    work = WorkFolder(path)
    work.begin("config.json", CONTENT)
    return work


@pytest.mark.parametrize("end", [WorkFolder.finish, WorkFolder.undo])
def test_a_folder_of_work_is_deleted_at_its_end_with_all_that_we_write_in_one(tmp_path, end):
    with begun(tmp_path / "run.partial") as work:
        (work.path / "log.jsonl").write_text("{}\n")
        (work.path / "tensorboard").mkdir()
        (work.path / "tensorboard" / "events.out.tfevents.1").touch()
        end(work)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("end", [WorkFolder.finish, WorkFolder.undo])
@pytest.mark.parametrize("name", ["notes.txt", "tensorboard/notes.txt", "encoder"])
def test_what_a_user_has_put_into_it_meanwhile_stays_and_is_named(tmp_path, end, name):
    with begun(tmp_path / "run.partial") as work:
        if name == "encoder":  # the name of a folder of ours, and no mark that this folder is ours
            (work.path / "config.json").unlink()
        file = work.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
        with pytest.warns(EntourageWarning, match=rf"run\.partial is no longer needed but holds {name}, which"):
            end(work)
    assert file.read_text() == "mine" and os.listdir(tmp_path) == ["run.partial"]
    with pytest.raises(FileError, match="Entourage did not"):
        WorkFolder(tmp_path / "run.partial")


def test_what_is_undone_gives_way_to_what_was_there_before(tmp_path):
    with begun(tmp_path / "run.partial") as work:
        (work.path / "log.jsonl").write_text("before\n")
    with begun(tmp_path / "run.partial") as work:
        assert not (work.path / "log.jsonl").exists()
        work.undo()
    assert (tmp_path / "run.partial" / "log.jsonl").read_text() == "before\n"
