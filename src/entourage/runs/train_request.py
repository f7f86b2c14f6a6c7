"""What a training run is asked for: the data, the system with its settings, and where the run goes."""

from dataclasses import dataclass, field
from pathlib import Path

from entourage.data import DATASETS
from entourage.systems.settings import EncoderSettings

__all__ = ["TrainRequest"]


@dataclass(frozen=True)
class TrainRequest:
    """One call of `runs.train.train_run`; the fields are options of `entourage train`."""

    source: str | Path
    """A dataset, folder, .csv or file of vectors, as `data.load` takes it."""
    out: str | Path
    """The run folder."""
    system: str = "baseline"
    """By what the encoder is trained."""
    settings: EncoderSettings | None = None
    """Settings of the system. None: its defaults."""
    root: str | Path | None = None
    """The folder of datasets, or where the paths of a .csv start."""
    data_options: dict = field(default_factory=dict)
    """Options of the dataset."""
    resume: bool = False
    """Whether to go on with an interrupted run."""
    overwrite: bool = False
    """Whether an existing run is replaced."""
    strict: bool = False
    """Whether a picture that cannot be decoded is an error."""
    nmi: bool = True
    """Whether to cluster the test pictures for NMI."""

    def described(self) -> dict:
        """Where the data come from, for config.json; paths are absolute, so that they are found from anywhere."""
        source = str(self.source) if str(self.source) in DATASETS else str(Path(self.source).absolute())
        root = None if self.root is None else str(Path(self.root).absolute())
        return {"source": source, "root": root, "options": self.data_options}
