"""The main job, end to end, on built-in data: pictures -> encoder -> embeddings -> refiner -> better embeddings.

The encoder and the refiner learn from the training scripts only, as did the universal scorer that the refiner starts
from; every score is of test scripts that none of them has seen.
"""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from entourage import __version__, data
from entourage.embedding import embed
from entourage.evaluation import Scores, evaluate_embeddings
from entourage.figures import save
from entourage.figures.retrieval import choose_queries, draw_retrieval
from entourage.figures.steps import draw_steps
from entourage.neighbors import search
from entourage.settings import TrainSettings
from entourage.store import check_free, new_folder
from entourage.systems.baseline import train_baseline
from entourage.systems.context_refiner import ContextRefiner
from entourage.values import Embeddings, Images

__all__ = ["DemoResult", "DemoSettings", "run_demo"]

_SHOWN = 8  # retrieved items per query on the sheet


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
    before: Scores
    after: Scores
    protocol: dict
    warnings: list[str]

    def document(self) -> dict:
        """What `--json` prints and metrics.json holds: the refined scores, and the raw ones to compare with."""
        return {
            "protocol": self.protocol,
            "metrics": self.after.metrics,
            "metrics_before": self.before.metrics,
            "warnings": self.warnings,
            "folder": str(self.folder),
        }


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
    drawn = {"per_class": settings.per_class, "max_classes": settings.max_classes, "seed": seed, "progress": progress}
    seen, unseen = (data.load("glyphs", split, **drawn) for split in ("train", "test"))
    by = TrainSettings(epochs=settings.encoder_epochs, seed=seed, validation_share=0.0)
    encoder, _ = train_baseline(seen, by, progress=progress)
    training, test = (
        Embeddings.from_vectors(embed(encoder, images.pixels, progress=progress), labels=images.labels)
        for images in (seen, unseen)
    )
    refiner = ContextRefiner(seed=seed).fit(training, progress=progress)
    trajectory = refiner.trajectory(test, progress=progress)
    steps = [test, *(test.replace_vectors(e) for e in trajectory.steps[1:])]
    ends = (0, len(steps) - 1)  # only these are tabled; clustering every step would take longer than it tells
    scores = [evaluate_embeddings(e, nmi=t in ends, seed=seed, progress=progress) for t, e in enumerate(steps)]
    protocol = {
        "data": f"glyphs, {len(test)} pictures of scripts unseen in training",
        "context": f"transductive: {refiner.n_neighbors_} neighbours among the test pictures, labels unused",
        "encoder": f"SmallResNet, {settings.encoder_epochs} epochs, multi-similarity loss",
        "refiner": _learned(refiner),
        "seed": seed,
        **scores[-1].protocol,
    }
    result = DemoResult(folder, scores[0], scores[-1], protocol, refiner.report()["warnings"])
    with new_folder(folder) as filling:
        np.savez(filling / "train.npz", vectors=training.vectors, labels=training.labels)
        np.savez(filling / "test_raw.npz", vectors=test.vectors, labels=test.labels)
        np.savez(filling / "test_refined.npz", vectors=trajectory[-1], labels=test.labels)
        refiner.save(filling / "model")
        _draw_pictures(filling, unseen, steps, scores)
        seconds = round(time.perf_counter() - started, 1)
        run = {"entourage": __version__, "settings": asdict(settings), "seed": seed, "seconds": seconds}
        for name, content in (("metrics.json", result.document()), ("run.json", run)):
            (filling / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return result


def _learned(refiner: ContextRefiner) -> str:
    chosen = refiner.report()["protocol"]
    return (
        f"relational, chosen in rehearsals on training classes (which the encoder has seen): base map: "
        f"{chosen['base_map']}; scorer: {chosen['scorer']}"
    )


def _draw_pictures(folder: Path, images: Images, steps: list[Embeddings], scores: list[Scores]) -> None:
    curves = {
        "recall@1": [score.metrics["recall@1"] for score in scores],
        "MAP@R": [score.metrics["map@r"] for score in scores],
    }
    note = f"glyphs, {len(images)} pictures of unseen scripts; context: the test pictures themselves"
    save(draw_steps(curves, "Scores after each block", note), folder / "steps.png")
    gains = scores[-1].average_precision - scores[0].average_precision
    before, after = (search(e, k=_SHOWN) for e in (steps[0], steps[-1]))
    sheet = draw_retrieval(
        images,
        before,
        after,
        choose_queries(gains, n_best=4, n_worst=4),
        gains,
        "Biggest gains, then biggest losses (✓ same character, ✗ another)",
    )
    save(sheet, folder / "retrieval.png")


def _free_folder(folder, overwrite: bool) -> Path:
    if folder is not None:
        Path(folder).absolute().parent.mkdir(parents=True, exist_ok=True)
        return check_free(folder, overwrite=overwrite)
    Path("runs").mkdir(exist_ok=True)
    names = ["demo", *(f"demo-{number}" for number in range(2, 1000))]
    return next(Path("runs") / name for name in names if not (Path("runs") / name).exists())
