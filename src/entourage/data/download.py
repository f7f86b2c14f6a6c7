"""Archives fetched over HTTP: with progress, resumed where they stopped, checked, and unpacked whole or not at all.

NAME.part grows, over several runs if need be -> checksum -> unpacked beside -> renamed into place

Never more is taken than the archive is known to have, and NAME.part is a file of ours: no link is followed.
"""

import hashlib
import http.client
import os
import shutil
import stat
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from entourage.data.unpacking import unpack
from entourage.errors import FileError
from entourage.runtime.progress import Progress
from entourage.stores.changes import claimed

__all__ = ["Archive", "fetch"]

_BLOCK = 1 << 20
_TIMEOUT = 30  # seconds without a byte
_FRUITLESS = 3  # attempts in a row that bring nothing
_PAUSE = 2.0  # seconds before the next
_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Archive:
    """One file to fetch."""

    url: str
    """Where the archive is, a URL."""
    size: int
    """How many bytes it has."""
    checksum: str
    """ "md5:..." or "sha256:...", as published."""
    folder: str
    """The folder inside it that is wanted."""
    to: str
    """Where that folder belongs under the root."""

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.url.rpartition("/")[2]


def fetch(archive: Archive, root: Path, progress: Progress | None = None) -> Path:
    """Download and unpack an archive.

    Parameters
    ----------
    archive : Archive
        What to fetch.
    root : Path
        The folder to put it in, which exists.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    Path
        Where its folder is now. What is there already is left as it is.
    """
    place = root / archive.to
    if place.exists():
        return place
    part = root / f"{archive.name}.part"
    claim = claimed(part)  # nobody else fetches it meanwhile
    try:
        _check_part(part)
        _check_room(root, archive, part)
        _download(archive, part, progress)
        _check_sum(archive, part)
        place.parent.mkdir(parents=True, exist_ok=True)
        unpack(part, archive.name, archive.folder, place, progress)
        part.unlink()
    finally:
        claim.release()
    return place


def _check_part(part: Path) -> None:
    """Refuse what someone else has laid in its place: a link would lead what is fetched to where it points."""
    try:
        found = part.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise FileError(f"{part} is a link, or no file at all; wanted what was fetched before: delete it")


def _check_room(root: Path, archive: Archive, part: Path) -> None:
    wanted = 2 * archive.size - _size(part)  # the archive, and what comes out of it
    free = shutil.disk_usage(root).free
    if free < wanted:
        raise FileError(
            f"{root} has {free / 1e9:.1f} GB left; wanted {wanted / 1e9:.1f} GB to fetch and unpack {archive.name}: "
            "free some space or choose another root"
        )


def _download(archive: Archive, part: Path, progress: Progress | None) -> None:
    """Append to the part until it is whole; a broken connection is taken up again."""
    fruitless = 0
    while True:
        before = _size(part)
        try:
            if _append(archive, part, before, progress):
                return
            reason = "the connection ended early"
        except FileError:
            raise
        except urllib.error.HTTPError as error:
            raise FileError(f"{archive.url} answered {error.code} {error.reason}; try again later") from error
        except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        fruitless = fruitless + 1 if _size(part) <= before else 0
        if fruitless == _FRUITLESS:
            kept = f"run the same command again to resume from the {_size(part) / _MEGABYTE:.1f} MB in {part}"
            raise FileError(f"{archive.url} cannot be fetched ({reason}); {kept if _size(part) else 'try again later'}")
        time.sleep(_PAUSE)


def _append(archive: Archive, part: Path, start: int, progress: Progress | None) -> bool:
    """One request for what is missing after `start`; whether the file is whole now."""
    request = urllib.request.Request(archive.url, headers={"User-Agent": "entourage"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            return True  # nothing comes after `start`; the checksum decides whether it is the right end
        raise
    with answer, open(part, "r+b", opener=_open_own) as file:
        if answer.status != http.client.PARTIAL_CONTENT:  # this server only sends whole files
            start = 0
        length = answer.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else archive.size
        file.seek(start)
        file.truncate()
        while block := answer.read(_BLOCK):
            if max(total, file.tell() + len(block)) > archive.size:
                part.unlink()
                raise FileError(
                    f"{archive.url} sends more than the {archive.size:,} bytes that {archive.name} is known to have; "
                    "it has changed and was not kept: look for a newer Entourage, or get it by hand"
                )
            file.write(block)
            if progress:
                progress(f"fetching {archive.name}, MB", file.tell() // _MEGABYTE, max(total // _MEGABYTE, 1))
        return file.tell() >= total


def _open_own(path: str, flags: int) -> int:
    """Open a file, which is made if need be, but follow no link."""
    return os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _check_sum(archive: Archive, part: Path) -> None:
    kind, _, wanted = archive.checksum.partition(":")
    digest = hashlib.new(kind, usedforsecurity=False)
    with part.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != wanted:
        size = part.stat().st_size
        os.remove(part)
        raise FileError(
            f"{archive.url} gave {size:,} bytes with {kind} {digest.hexdigest()}; wanted {archive.size:,} with "
            f"{wanted}: it is damaged or has changed, and was removed: try again"
        )
