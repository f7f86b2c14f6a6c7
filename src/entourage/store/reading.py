"""Opening files that may be missing, of another kind, or damaged."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from entourage.errors import FileError, InputError

__all__ = ["existing", "readable"]


def existing(path, formats: tuple[str, ...], what: str) -> Path:
    path = Path(path)
    if path.suffix.lower() not in formats:
        raise FileError(f"{path} ends in {path.suffix or 'nothing'}; {what} are read from {', '.join(formats)} files")
    if not path.is_file():
        raise FileError(f"the {what} file {path} does not exist; check the path")
    return path


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever a damaged file makes a reader raise, as one sentence."""
    try:
        yield
    except (FileError, InputError):
        raise
    except Exception as error:  # readers of damaged files raise anything from EOFError to zlib.error
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "allow_pickle" in reason:
            reason = "it holds Python objects, which are never loaded: save numbers or text, e.g. dtype=str"
        raise FileError(
            f"{path} cannot be read as {path.suffix} ({reason}); it may be truncated: write it again"
        ) from error
