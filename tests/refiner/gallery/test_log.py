"""The log keeps what it acknowledged, cuts off what was torn, and says what is damaged."""

import errno
import os

import pytest

from entourage.errors import FileError, InputError
from entourage.refiner.gallery import log as module
from entourage.refiner.gallery.log import Log

RECORDS = [b"first", b"", b"x" * 1000, b"last one"]


@pytest.fixture
def path(tmp_path):
    log = Log.create(tmp_path / "log", RECORDS[0])
    for record in RECORDS[1:]:
        log.append(record)
    log.close()
    return tmp_path / "log"


def records(path) -> list[bytes]:
    log = Log(path)
    try:
        return list(log.records())
    finally:
        log.close()


def test_records_come_back_in_order(path):
    assert records(path) == RECORDS


def test_a_record_torn_at_any_byte_is_cut_off_and_the_log_goes_on(path):
    whole = path.read_bytes()
    last = len(whole) - 16 - len(RECORDS[-1])
    for end in range(last, len(whole)):
        path.write_bytes(whole[:end])
        assert records(path) == RECORDS[:-1]
        assert path.stat().st_size == last  # so that the next record follows the last whole one
    log = Log(path)
    list(log.records())
    log.append(b"after the crash")
    log.close()
    assert records(path) == [*RECORDS[:-1], b"after the crash"]


@pytest.mark.parametrize("zeros", [1, 15, 16, 17, 4096])
def test_room_that_was_made_and_never_written_to_is_cut_off(path, zeros):
    with path.open("ab") as file:
        file.write(bytes(zeros))
    assert records(path) == RECORDS


def test_a_byte_changed_anywhere_before_the_last_record_is_damage(path):
    whole = path.read_bytes()
    for place in [*range(0, 40), 500, len(whole) - 16 - len(RECORDS[-1]) - 1]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(FileError, match="damaged at byte"):
            records(path)


@pytest.mark.parametrize("failing", ["pwrite", "fsync"])
def test_what_the_disk_refuses_is_not_kept(path, monkeypatch, failing):
    log = Log(path)
    list(log.records())

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    real = getattr(os, failing)
    calls = iter([full] + [real] * 9)
    monkeypatch.setattr(os, failing, lambda *arguments: next(calls)(*arguments))
    with pytest.raises(FileError, match=r"No space left on device.* was not made"):
        log.append(b"too much")
    log.append(b"fits")
    log.close()
    assert records(path) == [*RECORDS, b"fits"]


def test_a_disk_that_fails_altogether_ends_writing(path, monkeypatch):
    log = Log(path)
    list(log.records())

    def broken(*arguments):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(FileError, match=r"Input/output error.* may be there when the gallery is opened again"):
        log.append(b"lost")
    monkeypatch.undo()
    with pytest.raises(FileError, match="open the gallery again"):
        log.append(b"next")
    log.close()


@pytest.mark.parametrize("step", ["pwrite", "fsync"])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_what_is_interrupted_is_not_kept_and_a_shorter_record_follows(path, monkeypatch, step, done):
    log = Log(path)
    list(log.records())
    real = getattr(os, step)

    def interrupted(*arguments):
        monkeypatch.undo()
        if done:
            real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.append(b"a long record " * 50)
    log.append(b"short")
    log.close()
    assert records(path) == [*RECORDS, b"short"]


def test_an_interruption_of_the_undoing_ends_writing(path, monkeypatch):
    log = Log(path)
    list(log.records())

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    monkeypatch.setattr(os, "ftruncate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.append(b"a long record " * 50)
    monkeypatch.undo()
    with pytest.raises(FileError, match="open the gallery again"):
        log.append(b"short")
    log.close()


def test_records_that_the_system_reads_and_writes_in_parts_are_whole(path, monkeypatch):
    read, write = os.pread, os.pwrite
    monkeypatch.setattr(os, "pread", lambda file, length, place: read(file, min(length, 7), place))
    monkeypatch.setattr(os, "pwrite", lambda file, data, place: write(file, data[:5], place))
    log = Log(path)
    assert list(log.records()) == RECORDS
    log.append(b"y" * 100)
    log.close()
    assert records(path) == [*RECORDS, b"y" * 100]


def test_what_is_too_long_for_a_record_is_refused(path, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    log = Log(path)
    list(log.records())
    with pytest.raises(InputError, match="takes 1,001 bytes; wanted at most 1,000"):
        log.append(b"x" * 1001)
    log.append(b"x" * 1000)
    log.close()
    assert records(path) == [*RECORDS, b"x" * 1000]


def test_nothing_is_acknowledged_before_the_name_of_a_new_log_is_on_the_disk(tmp_path, monkeypatch):
    def broken(folder):
        raise OSError(errno.EIO, "Input/output error")

    log = Log.create(tmp_path / "log", b"first")
    with monkeypatch.context() as patched:
        patched.setattr(module, "sync_folder", broken)
        with pytest.raises(FileError, match=r"Input/output error.* was not made"):
            log.append(b"lost")
    log.append(b"kept")
    log.close()
    assert records(tmp_path / "log") == [b"first", b"kept"]
