"""The main job, end to end, on built-in data: pictures -> encoder -> embeddings -> refiner -> better embeddings.

The encoder and the refiner learn from the training scripts only, as did the universal scorer that the refiner starts
from; every score is of test scripts that none of them has seen.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from entourage import data
from entourage.encoders.embedding import embed
from entourage.figures import save
from entourage.refiner.estimator import ContextRefiner
from entourage.runs.figures import FigureOptions, draw
from entourage.runs.figures.options import DRIFTING
from entourage.runs.media import Looks, PictureSource
from entourage.runs.refine import write_refinement
from entourage.runs.refinement_run import open_refinement
from entourage.stores import check_free, new_folder
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.values import Embeddings

__all__ = ["DemoResult", "DemoSettings", "run_demo"]

_DATA = "glyphs"
_PICTURES = {"drift": "drift", "query": "query", "sheet": "retrieval", "steps": "steps"}  # and their files


@dataclass(frozen=True)
class DemoSettings:
    """How much of everything."""

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
        """What `--json` prints."""
        return self.measured | {"folder": str(self.folder)}


def run_demo(
    folder=None,
    *,
    quick: bool = False,
    settings: DemoSettings | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress=None,
) -> DemoResult:
    """Run everything and write vectors, model, metrics and pictures into `folder` (default: a new one in runs/)."""
    settings = settings or (QUICK if quick else DemoSettings())
    folder = _free_folder(folder, overwrite)
    started = time.perf_counter()
    drawn = {"per_class": settings.per_class, "max_classes": settings.max_classes, "seed": seed}
    seen, unseen = (data.load(_DATA, split, **drawn, progress=progress) for split in ("train", "test"))
    by = BaselineSettings(epochs=settings.encoder_epochs, seed=seed, validation_share=0.0)
    encoder, _ = train_baseline(seen, by, progress=progress)
    training, test = (
        Embeddings.from_vectors(embed(encoder, images.pixels, progress=progress), labels=images.labels)
        for images in (seen, unseen)
    )
    refiner = ContextRefiner(random_state=seed).fit(training, progress=progress)
    protocol = {
        "data": f"{_DATA}, {len(test)} pictures of scripts unseen in training",
        "context": f"transductive: {refiner.n_neighbors_} neighbours among the test pictures, labels unused",
        "encoder": f"SmallResNet, {settings.encoder_epochs} epochs, multi-similarity loss",
        "refiner": _learned(refiner),
        "seed": seed,
    }
    kept = {
        "looks": Looks(PictureSource(_DATA, split="test", options=drawn)),
        "protocol": protocol,
        "settings": {"demo": asdict(settings)},
        "nmi": True,
        "seconds_before": time.perf_counter() - started,
    }
    with new_folder(folder) as filling:
        write_refinement(filling, refiner, test, **kept, progress=progress)
        np.savez(filling / "train.npz", vectors=training.vectors, labels=training.labels)
        run = open_refinement(filling, pictures=[unseen])
        for done, (kind, name) in enumerate(_PICTURES.items()):
            options = FigureOptions(points=DRIFTING if kind == "drift" else None, seed=seed)
            save(draw(kind, run, options), filling / f"{name}.png")
            if progress:
                progress("drawing pictures", done + 1, len(_PICTURES))
    return DemoResult(folder, run.document)


def _learned(refiner: ContextRefiner) -> str:
    chosen = refiner.report()["protocol"]
    return (
        f"relational, chosen in rehearsals on training classes (which the encoder has seen): base map: "
        f"{chosen['base_map']}; scorer: {chosen['scorer']}"
    )


def _free_folder(folder, overwrite: bool) -> Path:
    if folder is not None:
        Path(folder).absolute().parent.mkdir(parents=True, exist_ok=True)
        return check_free(folder, overwrite=overwrite)
    Path("runs").mkdir(exist_ok=True)
    names = ["demo", *(f"demo-{number}" for number in range(2, 1000))]
    return next(Path("runs") / name for name in names if not (Path("runs") / name).exists())
