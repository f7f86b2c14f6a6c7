"""The main job, end to end, on built-in data: pictures -> encoder -> embeddings -> refiner -> better embeddings.

The encoder and the refiner learn from the training scripts only, as did the universal scorer that the refiner starts
from; every score is of test scripts that none of them has seen.
"""

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from entourage.data.arrays import ImageArray
from entourage.data.sets import glyphs
from entourage.encoders.embedding import embed
from entourage.encoders.saving import save_encoder
from entourage.figures import save
from entourage.refiner.estimator import ContextRefiner
from entourage.runs.figures import FigureOptions, draw
from entourage.runs.layout import ENCODER, TRAIN
from entourage.runs.media import Media, PictureSource
from entourage.runs.refine import RefinementNotes, fill_refinement
from entourage.runs.refinement_run import open_refinement
from entourage.runs.refiners import FittedRefiner
from entourage.runtime.progress import Progress
from entourage.stores import check_folder, new_folder
from entourage.stores.filenames import DEMO_PICTURES
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.values import Embeddings, labels_of

__all__ = ["DemoResult", "DemoSettings", "run_demo"]

_DATA = "glyphs"


@dataclass(frozen=True)
class DemoSettings:
    """The size of the demo."""

    max_classes: int | None = None
    """Classes of each split; None for all."""
    per_class: int = 20
    """Pictures of each class."""
    encoder_epochs: int = 12
    """Passes over the training pictures; fixed, so that no score chooses it."""


QUICK = DemoSettings(max_classes=60, per_class=20, encoder_epochs=12)


@dataclass(frozen=True)
class DemoResult:
    """Where the run was written and what it measured on the unseen scripts."""

    folder: Path
    measured: dict
    """What metrics.json holds: the refined scores, the raw ones to compare with, protocol, intervals, warnings."""

    def document(self) -> dict:
        """Return what `--json` prints."""
        return self.measured | {"folder": str(self.folder)}


def run_demo(
    folder: str | Path | None = None,
    *,
    quick: bool = False,
    settings: DemoSettings | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> DemoResult:
    """Run the whole demo and write a refinement run: vectors, model, metrics and figures.

    Parameters
    ----------
    folder : path, optional
        Folder of the run; by default a new one in runs/.
    quick : bool
        Use fewer classes and train for less time.
    settings : DemoSettings, optional
        The size of the demo, instead of what `quick` stands for.
    seed : int
        Seed of everything drawn at random.
    overwrite : bool
        Whether an existing run is replaced.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    DemoResult
        The folder of the run, and its scores on unseen scripts.
    """
    settings = settings or (QUICK if quick else DemoSettings())
    place = _free_folder(folder, overwrite)
    started = time.perf_counter()
    seen, unseen = (_pictures(split, settings, seed, progress) for split in ("train", "test"))
    encoder = _encoder(seen, settings, seed, progress)
    training, test = (_embedded(encoder, images, progress) for images in (seen, unseen))
    refiner = ContextRefiner(random_state=seed).fit(training, progress=progress)
    drawn = {"per_class": settings.per_class, "max_classes": settings.max_classes, "seed": seed}
    media = Media(PictureSource(_DATA, split="test", options=drawn))
    spent = time.perf_counter() - started
    notes = RefinementNotes(_protocol(refiner, test, settings, seed), {"demo": asdict(settings)}, spent)
    with new_folder(place, overwrite=overwrite) as filling:
        by = FittedRefiner(refiner)
        measured = fill_refinement(filling, by, test, media=media, notes=notes, nmi=True, progress=progress)
        np.savez(filling / TRAIN, vectors=training.vectors, labels=labels_of(training))
        save_encoder(filling / ENCODER, encoder)  # pictures can be dropped on `entourage explore`
        _draw(filling, unseen, seed, progress)
    return DemoResult(place, measured)


def _pictures(split: str, settings: DemoSettings, seed: int, progress: Progress | None) -> ImageArray:
    return glyphs.load(
        split, per_class=settings.per_class, max_classes=settings.max_classes, seed=seed, progress=progress
    )


def _encoder(seen: ImageArray, settings: DemoSettings, seed: int, progress: Progress | None) -> Any:
    """An encoder that has learned from these pictures."""
    by = BaselineSettings(epochs=settings.encoder_epochs, seed=seed, validation_share=0.0)
    encoder, _, _ = train_baseline(seen, by, progress=progress)
    return encoder


def _embedded(encoder: Any, images: ImageArray, progress: Progress | None) -> Embeddings:
    return Embeddings.from_vectors(embed(encoder, images.pixels, progress=progress), labels=images.labels)


def _draw(folder: Path, images: ImageArray, seed: int, progress: Progress | None) -> None:
    """Draw figures of the run into its folder; images: the test set."""
    run = open_refinement(folder, pictures=[images])
    for done, (kind, name) in enumerate(DEMO_PICTURES.items()):
        save(draw(kind, run, FigureOptions(seed=seed)), folder / name)
        if progress:
            progress("drawing pictures", done + 1, len(DEMO_PICTURES))


def _protocol(refiner: ContextRefiner, test: Embeddings, settings: DemoSettings, seed: int) -> dict:
    return {
        "data": f"{_DATA}, {len(test)} pictures of scripts unseen in training",
        "context": f"transductive: {refiner.n_neighbors_} neighbours among the test pictures, labels unused",
        "encoder": f"SmallResNet, {settings.encoder_epochs} epochs, multi-similarity loss",
        "refiner": _learned(refiner),
        "seed": seed,
    }


def _learned(refiner: ContextRefiner) -> str:
    chosen = refiner.report()["protocol"]
    return (
        f"relational, chosen in rehearsals on training classes (which the encoder has seen): base map: "
        f"{chosen['base_map']}; scorer: {chosen['scorer']}"
    )


def _free_folder(folder: str | Path | None, overwrite: bool) -> Path:
    if folder is not None:
        Path(folder).absolute().parent.mkdir(parents=True, exist_ok=True)
        return check_folder(folder, overwrite=overwrite)
    Path("runs").mkdir(exist_ok=True)
    names = ["demo", *(f"demo-{number}" for number in range(2, 1000))]
    return next(Path("runs") / name for name in names if not os.path.lexists(Path("runs") / name))
