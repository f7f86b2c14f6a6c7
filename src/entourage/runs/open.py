"""A run folder opened again, whichever kind it is."""

from pathlib import Path

from entourage.errors import FileError
from entourage.runs.refinement_run import RefinementRun, open_refinement
from entourage.runs.training_run import TrainingRun, open_training

__all__ = ["open_run"]


def open_run(folder) -> RefinementRun | TrainingRun:
    """A kept refinement, or a run of `entourage train`."""
    folder = Path(folder)
    if (folder / "run.json").is_file():
        return open_refinement(folder)
    if (folder / "config.json").is_file() or folder.name.endswith(".partial"):
        return open_training(folder)
    seen = "is no run" if folder.exists() else "does not exist"
    raise FileError(
        f"{folder} {seen}; wanted a folder of `entourage train`, of `entourage refine --run` or of the demo"
    )
