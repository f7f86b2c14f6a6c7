"""The files of the page, read once: what a browser may ask for, and nothing else."""

from importlib.resources import files

__all__ = ["FILES", "KINDS"]

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def _read() -> dict[str, tuple[bytes, str]]:
    found = {}
    for file in files("entourage.explorer").joinpath("page").iterdir():
        ending = file.name.rpartition(".")[2]
        if ending in KINDS and file.is_file():
            found[file.name] = (file.read_bytes(), KINDS[ending])
    return found


FILES = _read()
"""By name: the content and its type."""
