"""A training run that is not done: the folder RUN.partial, where it is resumed from."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from entourage.errors import FileError, InputError
from entourage.runs.layout import CONFIG, LOG, partial_of
from entourage.stores import StrPath, WorkFolder, check_folder, check_kept
from entourage.stores.documents import read_json
from entourage.stores.logs import read_log
from entourage.systems.settings import NOT_DECISIVE

__all__ = ["begun", "check_places", "resume_advice"]


def check_places(out: Path, *, resume: bool, overwrite: bool, inputs: Sequence[StrPath | None] = ()) -> None:
    """Refuse an output that exists or holds an input, an unexpected interrupted run, and a missing run to resume."""
    check_kept((out,), inputs)
    check_folder(out, overwrite=overwrite)
    partial = partial_of(out)
    check_folder(partial, overwrite=True)  # never what someone else wrote
    if partial.exists():
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
def begun(work: WorkFolder, config: dict, *, resume: bool) -> Iterator[None]:
    """Begin or resume a run in its folder; a failure that leaves nothing to resume undoes it."""
    if resume:  # a run that goes on keeps what it began with
        _check_same_settings(work.path, config)
    else:
        work.begin(CONFIG, config)
    try:
        yield
    except BaseException as error:
        # The same input would fail again; a corrupt picture may be replaced, a full disk emptied, and the run resumed.
        hopeless = isinstance(error, InputError)
        if not resume and (hopeless or not _has_learned(work.path)):
            work.undo()
        raise


def _check_same_settings(partial: Path, config: dict) -> None:
    """Refuse to go on with other settings, and name the first; the checkpoint, once there is one, looks at data too."""
    try:
        began = read_json(partial / CONFIG)
        before, now = ({"system": each["system"], **each["settings"]} for each in (began, config))
    except (FileError, KeyError, TypeError):
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
