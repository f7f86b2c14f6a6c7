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
from pathlib import Path

from entourage.errors import FileError

__all__ = ["Log", "sync_folder"]

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
        self._broken = False
        self.size = os.fstat(self._file).st_size

    @classmethod
    def create(cls, path: Path, first: bytes) -> "Log":
        """Make a log that holds one record; it appears whole or not at all."""
        writing = path.with_name(f"{path.name}.new")
        writing.unlink(missing_ok=True)
        writing.touch()
        log = cls(writing)
        log.append(first)
        os.rename(writing, path)
        sync_folder(path.parent)
        log.path = path
        return log

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
        head = os.pread(self._file, _HEAD.size, place)
        if rest < _HEAD.size or not any(head):  # cut short, or room that was made and never written to
            return self._only_torn(place, rest < _HEAD.size or not any(os.pread(self._file, rest, place)))
        mark, length, checksum, of_head = _HEAD.unpack(head)
        if mark != _MARK or zlib.crc32(head[:-4]) != of_head:
            return self._only_torn(place, False)
        content = os.pread(self._file, length, place + _HEAD.size)
        if len(content) == length and zlib.crc32(content) == checksum:
            return content
        return self._only_torn(place, _HEAD.size + length >= rest)

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
            Where it cannot be written, a FileError says so, and nothing of it is kept.
        """
        if self._broken:
            raise FileError(f"{self.path} could not be written to before; open the gallery again")
        head = _HEAD.pack(_MARK, len(content), zlib.crc32(content), 0)[:-4]
        try:
            self._write(head + struct.pack("<I", zlib.crc32(head)) + content)
            os.fsync(self._file)
        except OSError as error:
            self._undo()
            reason = error.strerror or type(error).__name__
            raise FileError(
                f"the change cannot be written to {self.path} ({reason}) and was not made; free space, or check the "
                "disk, and try again"
            ) from error
        self.size += _HEAD.size + len(content)

    def _write(self, data: bytes) -> None:
        view, place = memoryview(data), self.size
        while view:
            written = os.pwrite(self._file, view, place)
            view, place = view[written:], place + written

    def _undo(self) -> None:
        try:
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)
        except OSError:  # whether the record is there will be known when the log is opened again
            self._broken = True

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
