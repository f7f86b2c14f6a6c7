"""A training run: an encoder trained on a dataset and scored on classes it has not seen, written as a folder.

While it goes on it is RUN.partial, with the checkpoint of its last epoch; RUN appears when all is done (layout.py).
Which epoch is kept is chosen on training classes: test labels are used for the final scores alone.
"""

import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from entourage import __version__
from entourage.errors import EntourageWarning
from entourage.evaluation import Scores
from entourage.runs.encoders import warn_of_corrupt
from entourage.runs.layout import CONFIG, ENCODER, LOG, METRICS, REFIT_LOG, TENSORBOARD, partial_of
from entourage.runs.scoring import score_encoder, training_protocol
from entourage.runs.train_request import TrainRequest
from entourage.runs.training_data import check_pictures, load_sets, with_encoder
from entourage.runs.unfinished import begun, check_places
from entourage.runtime.config import to_dict
from entourage.runtime.launch import launched
from entourage.runtime.progress import ShowProgress, shows_progress
from entourage.runtime.versions import library_versions
from entourage.runtime.warnings import collected_warnings
from entourage.stores import WorkFolder, new_folder, write_json
from entourage.systems import system_named
from entourage.systems.settings import EncoderSettings
from entourage.systems.trained import RunOptions, nothing_learned
from entourage.training.history import History
from entourage.values import brief

if TYPE_CHECKING:
    from entourage.encoders.protocol import Encoder

__all__ = ["TrainRequest", "TrainResult", "train_run"]


@dataclass(frozen=True, eq=False)
class TrainResult:
    """Where a run was written, and how well its encoder does on unseen classes."""

    folder: Path
    scores: Scores
    protocol: dict
    """What it was trained and measured on, and how."""
    warnings: list[str]
    corrupt: list[str]
    """Paths of pictures that could not be decoded and were left out."""
    history: History

    __repr__ = brief

    def document(self) -> dict:
        """Return the content of metrics.json."""
        return {"protocol": self.protocol, "metrics": self.scores.metrics, "warnings": self.warnings}


@shows_progress
def train_run(request: TrainRequest, *, progress: ShowProgress = None) -> TrainResult | None:
    """Train an encoder and write its run folder, whole or not at all.

    An interrupted run stays as RUN.partial once it has finished an epoch, and resuming it gives the result it would
    have had; a run that fails because of its input leaves nothing.

    Parameters
    ----------
    request : TrainRequest
        Data, system, settings, and where the run is written.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    TrainResult or None
        The result; under `torchrun` only the first process writes and returns it, the others return None.
    """
    chosen = system_named(request.system)
    settings: EncoderSettings = chosen.settings() if request.settings is None else request.settings
    out, main = Path(request.out), launched().rank == 0
    if main:
        inputs = (request.source, request.root, settings.encoder)
        check_places(out, resume=request.resume, overwrite=request.overwrite, inputs=inputs)
    with collected_warnings() as given:
        training, tests = load_sets(request.source, request.root, request.data_options)
    for text in given if main else ():
        warnings.warn(text, EntourageWarning, stacklevel=2)
    settings = with_encoder(settings, training)
    config = _config(request, settings)
    if request.strict and main:
        check_pictures((training, *tests.values()), settings.workers, progress)
    options = RunOptions(run_folder=partial_of(out), resume=request.resume, strict=request.strict, progress=progress)
    if not main:
        chosen.train(training, settings, **options)
        return None
    with WorkFolder(partial_of(out)) as work:
        with begun(work, config, resume=request.resume):
            encoder, history, corrupt = chosen.train(training, settings, **options)
        scores, untested = score_encoder(
            encoder, tests, strict=request.strict, nmi=request.nmi, seed=settings.seed, progress=progress
        )
        corrupt = list(dict.fromkeys([*corrupt, *untested]))
        given += [*nothing_learned(history), *scores.warnings]
        count = len(training) + sum(map(len, tests.values()))
        given += warn_of_corrupt(corrupt, count, " (of training, those drawn are counted)")
        protocol = training_protocol(request.source, request.system, settings, training, tests, history)
        run = TrainResult(out, scores, protocol | scores.protocol, given, corrupt, history)
        _write(run, encoder, config, chosen.keeps, overwrite=request.overwrite)
        work.finish()
    return run


def _config(request: TrainRequest, settings: EncoderSettings) -> dict:
    config = {"entourage": __version__, "system": request.system, "data": request.described()}
    return config | {"settings": to_dict(settings), "seed": settings.seed, "versions": library_versions()}


def _write(run: TrainResult, encoder: "Encoder", config: dict, keeps: tuple[str, ...], *, overwrite: bool) -> None:
    from entourage.encoders import save_encoder

    partial = partial_of(run.folder)
    with new_folder(run.folder, overwrite=overwrite) as filling:
        write_json(filling / CONFIG, config)
        write_json(filling / METRICS, run.document())
        for name in (LOG, REFIT_LOG):
            if (partial / name).is_file():
                shutil.copyfile(partial / name, filling / name)
        for name in (TENSORBOARD, *keeps):
            if (partial / name).is_dir():
                shutil.copytree(partial / name, filling / name)
        save_encoder(filling / ENCODER, encoder)
