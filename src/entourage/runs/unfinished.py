"""A training run that is not done: the folder RUN.partial, where it is resumed from."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from entourage.errors import FileError, InputError
from entourage.runs.layout import CONFIG, LOG, partial_of
from entourage.stores import check_free, write_json
from entourage.stores.logs import read_log
from entourage.systems.settings import NOT_DECISIVE

__all__ = ["begun", "check_places", "resume_advice"]


def check_places(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse an output that exists, an interrupted run that is not to be resumed, and a missing run to resume."""
    if out.is_file() or not out.name:
        raise FileError(f"the run is to be written to {out}; wanted the name of a folder: choose another")
    check_free(out, overwrite=overwrite)
    partial = partial_of(out)
    if partial.exists():
        check_free(partial, overwrite=True)  # never what someone else wrote
        if not (resume or overwrite):
            raise FileError(
                f"{partial} holds an interrupted run; resume it (--resume), or start again (--overwrite, or delete it)"
            )
    elif resume:
        raise FileError(f"there is no {partial} to resume; run without --resume to start")


def resume_advice(kept: Path | None, what: str) -> str:
    """Say what an interruption leaves, and how to resume.

    Parameters
    ----------
    kept : Path or None
        The file or folder to resume from; None where nothing is ever kept.
    what : str
        What it holds, if it exists.

    Returns
    -------
    str
        The second half of a sentence.
    """
    there = kept is not None and kept.exists()
    return f"{kept} holds {what}: add --resume to continue" if there else "nothing was kept"


@contextmanager
def begun(partial: Path, config: dict, *, resume: bool) -> Iterator[None]:
    """Begin or resume a run in the folder `partial`; a failure that leaves nothing to resume undoes it."""
    replaced = partial.with_name(f".{partial.name}.replaced")
    if partial.exists() and not resume:
        shutil.rmtree(replaced, ignore_errors=True)  # left by a crash
        partial.rename(replaced)
    if resume:
        _check_same_settings(partial, config)
    try:
        partial.mkdir(exist_ok=True)
        if not resume:  # a run that goes on keeps what it began with
            write_json(partial / CONFIG, config)
        yield
    except BaseException as error:
        # The same input would fail again; a corrupt picture may be replaced, a full disk emptied, and the run resumed.
        hopeless = isinstance(error, InputError)
        if not resume and (hopeless or not _has_learned(partial)):
            shutil.rmtree(partial, ignore_errors=True)
            if replaced.exists():
                replaced.rename(partial)
        raise
    finally:
        shutil.rmtree(replaced, ignore_errors=True)


def _check_same_settings(partial: Path, config: dict) -> None:
    """Refuse to go on with other settings, and name the first; the checkpoint, once there is one, looks at data too."""
    try:
        began = json.loads((partial / CONFIG).read_text(encoding="utf-8"))
        before, now = ({"system": each["system"], **each["settings"]} for each in (began, config))
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name, value in now.items():
        if name not in NOT_DECISIVE and before.get(name, value) != value:
            raise InputError(
                f"{name} is {value!r} but {partial} was begun with {before[name]!r}; resume with the same settings, "
                "or start again (--overwrite)"
            )


def _has_learned(partial: Path) -> bool:
    """Whether an epoch of training is finished; epoch 0 is the state before it."""
    return any(entry["epoch"] > 0 for entry in read_log(partial / LOG))
