"""A run folder opened again, whichever kind it is."""

from pathlib import Path

from entourage.errors import FileError
from entourage.runs.layout import CONFIG, RUN, is_partial
from entourage.runs.refinement_run import RefinementRun, open_refinement
from entourage.runs.training_run import TrainingRun, open_training
from entourage.runtime.progress import Progress
from entourage.stores import StrPath
from entourage.stores.changes import settle_to_read

__all__ = ["open_run"]


def open_run(folder: StrPath, *, progress: Progress | None = None) -> RefinementRun | TrainingRun:
    """Open a refinement run or a training run, whichever the folder holds.

    Parameters
    ----------
    folder : path
        Written by `entourage train`, `entourage refine --run` or `entourage demo`.
    progress : callable, optional
        Called as progress(title, done, total) while something of the run is computed.

    Returns
    -------
    RefinementRun or TrainingRun
        The opened run.
    """
    folder = Path(folder)
    settle_to_read(folder)
    if (folder / RUN).is_file():
        return open_refinement(folder, progress=progress)
    if (folder / CONFIG).is_file() or is_partial(folder):
        return open_training(folder, progress=progress)
    seen = "is no run" if folder.exists() else "does not exist"
    raise FileError(
        f"{folder} {seen}; wanted a folder of `entourage train`, of `entourage refine --run` or of the demo"
    )
