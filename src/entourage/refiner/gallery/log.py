"""An append-only log: what it has acknowledged survives a kill, and a power cut, at any moment.

Each record is four numbers of 32 bits (a mark, the length and the checksum of the content, the checksum of these three)
and the content. A record is acknowledged when it is on the disk, and none is begun before the one before it is: so only
the last can be torn, and it was never acknowledged. It is cut off when the log is opened. Anything else that does not
add up is damage, and is said, as what stands behind it would be lost.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from entourage.errors import FileError, InputError

__all__ = ["MOST_BYTES", "Log", "check_fits", "sync_folder"]

MOST_BYTES = 2**32 - 1
"""The longest content of a record, as its length is a number of 32 bits."""
_HEAD = struct.Struct("<4sIII")
_MARK = b"EGL1"


class Log:
    """A log that is open for writing.

    Parameters
    ----------
    path : Path
        The file, which must be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._broken, self._name_is_kept = False, True
        self.size = os.fstat(self._file).st_size

    @classmethod
    def create(cls, path: Path, first: bytes) -> "Log":
        """Make a log that holds one record; it appears whole or not at all, and `keep_name` makes its name durable."""
        writing = path.with_name(f"{path.name}.new")
        writing.unlink(missing_ok=True)
        writing.touch()
        log = cls(writing)
        try:
            log._add(first)
            os.rename(writing, path)
        except BaseException:
            log.close()
            raise
        log.path, log._name_is_kept = path, False
        return log

    def keep_name(self) -> None:
        """Bring the name of a new log to the disk, unless it is there; no record is acknowledged before."""
        if not self._name_is_kept:
            sync_folder(self.path.parent)
            self._name_is_kept = True

    def records(self) -> Iterator[bytes]:
        """Read all records; a torn one at the end is cut off.

        Yields
        ------
        bytes
            The content of each.
        """
        place, end = 0, os.fstat(self._file).st_size
        while place < end:
            content = self._record_at(place, end)
            if content is None:
                os.ftruncate(self._file, place)
                os.fsync(self._file)
                break
            yield content
            place += _HEAD.size + len(content)
        self.size = place

    def _record_at(self, place: int, end: int) -> bytes | None:
        """The content of the record that begins there; None if it is torn."""
        rest = end - place
        head = self._read(_HEAD.size, place)
        if rest < _HEAD.size or not any(head):  # cut short, or room that was made and never written to
            return self._only_torn(place, rest < _HEAD.size or not any(self._read(rest, place)))
        mark, length, checksum, of_head = _HEAD.unpack(head)
        if mark != _MARK or zlib.crc32(head[:-4]) != of_head:
            return self._only_torn(place, False)
        content = self._read(length, place + _HEAD.size)
        if len(content) == length and zlib.crc32(content) == checksum:
            return content
        return self._only_torn(place, _HEAD.size + length >= rest)

    def _read(self, length: int, place: int) -> bytes:
        """So many bytes from there on, or as many as there are; the system reads 2 GiB at a time at most."""
        parts = []
        while length and (part := os.pread(self._file, length, place)):
            parts.append(part)
            length, place = length - len(part), place + len(part)
        return b"".join(parts)

    def _only_torn(self, place: int, torn: bool) -> bytes | None:
        """None, unless more is wrong than that."""
        if torn:
            return None
        raise FileError(
            f"{self.path} is damaged at byte {place:,}, and what follows cannot be read; restore the folder from a copy"
        )

    def append(self, content: bytes) -> None:
        """Add a record; when this returns, it is on the disk.

        Parameters
        ----------
        content : bytes
            Where it cannot be written, a FileError says so, and nothing of it is kept; nor is it if this is
            interrupted. Only if the disk does not let go of it either, it may be there when the log is opened again.
        """
        if self._broken:
            raise FileError(f"{self.path} could not be written to before; open the gallery again")
        try:
            self.keep_name()
            self._add(content)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            outcome = (
                "and may be there when the gallery is opened again; check the disk and open it"
                if self._broken
                else "and was not made; free space, or check the disk, and try again"
            )
            raise FileError(f"the change cannot be written to {self.path} ({reason}) {outcome}") from error

    def _add(self, content: bytes) -> None:
        check_fits(content)
        head = _HEAD.pack(_MARK, len(content), zlib.crc32(content), 0)[:-4]
        record = head + struct.pack("<I", zlib.crc32(head)) + content
        before = self.size
        try:
            self._write(record)
            os.fsync(self._file)
            self.size = before + len(record)
        except BaseException:  # also Ctrl-C: a shorter record written over this one would leave its end behind
            self.cut(before)
            raise

    def _write(self, data: bytes) -> None:
        view, place = memoryview(data), self.size
        while view:
            written = os.pwrite(self._file, view, place)
            view, place = view[written:], place + written

    def cut(self, size: int) -> None:
        """Take back what was added since the log had this size; where that fails, nothing more can be added.

        Parameters
        ----------
        size : int
            Bytes.
        """
        self.size = size
        self.retire()
        with suppress(OSError):  # whether the record is there will be known when the log is opened again
            os.ftruncate(self._file, size)
            os.fsync(self._file)
            self._broken = False

    def retire(self) -> None:
        """Take no more records."""
        self._broken = True

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def check_fits(content: bytes) -> None:
    """Refuse what is too long for one record."""
    if len(content) > MOST_BYTES:
        raise InputError(
            f"the change takes {len(content):,} bytes; wanted at most {MOST_BYTES:,}: make it in several parts"
        )


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
