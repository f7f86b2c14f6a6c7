"""Archives unpacked safely: nothing leaves the folder, and the folder appears whole or not at all."""

import os
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from entourage.errors import FileError
from entourage.runtime.progress import Progress
from entourage.stores.changes import claimed

__all__ = ["unpack"]


def unpack(archive: Path, name: str, folder: str, place: Path, progress: Progress | None = None) -> None:
    """Unpack one folder of a .tgz or .zip; the rest of it is dropped.

    Parameters
    ----------
    archive : Path
        The file.
    name : str
        The name of the archive, whose ending gives its format; the file itself may have another name.
    folder : str
        The folder inside it that is wanted.
    place : Path
        Where that folder will be; its parent exists.
    progress : Progress, optional
        Called as progress(title, done, total).
    """
    claim = claimed(place)
    try:
        aside = claim.gone  # what is not wanted stays there
        aside.mkdir()
        (_unzip if name.endswith(".zip") else _untar)(archive, name, aside, progress)
        if not (aside / folder).is_dir():
            raise FileError(f"{name} holds no folder {folder}; wanted the dataset: it has changed at its source")
        os.rename(aside / folder, claim.new)
        claim.put_in_place(overwrite=False)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise FileError(f"{name} cannot be unpacked ({error}); fetch it again") from error
    finally:
        claim.release()


def _untar(archive: Path, name: str, aside: Path, progress: Progress | None) -> None:
    if not hasattr(tarfile, "data_filter"):  # the first releases of 3.10 and 3.11
        raise FileError(f"this Python cannot unpack {name} safely; wanted 3.10.12, 3.11.4 or newer: update it")
    size = archive.stat().st_size
    with archive.open("rb") as raw, tarfile.open(fileobj=raw) as tar:
        for member in tar:
            tar.extract(member, aside, filter="data")  # refuses paths and links that lead outside, and devices
            if progress:
                progress(f"unpacking {name}, MB", raw.tell() // 1_000_000, max(size // 1_000_000, 1))


def _unzip(archive: Path, name: str, aside: Path, progress: Progress | None) -> None:
    with zipfile.ZipFile(archive) as zipped:
        members = zipped.infolist()
        for done, member in enumerate(members, start=1):
            path = PurePosixPath(member.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts:
                raise FileError(
                    f"{name} holds {member.filename}, which leads outside its folder; it is not to be trusted"
                )
            zipped.extract(member, aside)
            if progress:
                progress(f"unpacking {name}, files", done, len(members))
