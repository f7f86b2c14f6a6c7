"""What is attacked: models, encoders and runs of every kind, as small as they can be."""

from pathlib import Path

import numpy as np
import pytest
from tests.cli.shop import run

CLASSES, PER_CLASS, DIM = 8, 6, 6
GLYPHS = "glyphs --data-option per_class=3 --data-option max_classes=6"
_BATCH = "--set batch_classes=3 --set batch_per_class=2 --epochs 1 --set validation_share=0 --set workers=1 --no-nmi"
_OF_PICTURES = f"--dim 4 --image-size 8 --set encoder_options.width=4 {_BATCH}"


def write_vectors(folder: Path) -> None:
    """v.npz and g.npz, items and a gallery of the same classes, with ids and labels; texts of the items."""
    rng, classes = np.random.default_rng(0), np.repeat(np.arange(CLASSES), PER_CLASS)
    centres = rng.normal(size=(CLASSES, DIM))
    for name in "vg":
        vectors = (centres[classes] + 0.5 * rng.normal(size=(len(classes), DIM))).astype(np.float32)
        ids = [f"{name}{row}" for row in range(len(classes))]
        np.savez(folder / f"{name}.npz", vectors=vectors, ids=ids, labels=[f"class {code}" for code in classes])
    (folder / "texts.txt").write_text("".join(f"text {row}\n" for row in range(len(classes))))


def write_models(folder: Path) -> None:
    """A model of each recipe, fitted with labels, and one that needed none."""
    from entourage.refiner import ContextRefiner
    from entourage.stores import read_vectors

    _done(f"fit {folder}/v.npz --out {folder}/relational")
    _done(f"fit {folder}/v.npz --out {folder}/paper --recipe paper --blocks 2 --epochs 1 --neighbors 3 --out-dim 5")
    ContextRefiner().fit(read_vectors(folder / "v.npz", labels=False)).save(folder / "universal")


def write_refinements(folder: Path) -> None:
    """A run with all that a run may hold, and one of vectors about which nothing is known."""
    texts = f"--texts {folder}/texts.txt --context-texts {folder}/texts.txt"
    _done(f"refine {folder}/v.npz --model {folder}/relational --context {folder}/g.npz --run {folder}/kept {texts}")
    np.save(folder / "bare.npy", np.load(folder / "v.npz")["vectors"])
    _done(f"refine {folder}/bare.npy --run {folder}/bare")


def write_trainings(folder: Path) -> None:
    """A run of each system, on pictures or on vectors."""
    _done(f"train {GLYPHS} --out {folder}/pictures {_OF_PICTURES}")
    _done(f"train {folder}/v.npz --out {folder}/vectors --encoder mlp --dim 4 {_BATCH}")
    _done(f"train {folder}/v.npz --out {folder}/divide --system divide --dim 4 --set learners=2 {_BATCH}")
    _done(f"train {folder}/v.npz --out {folder}/network --system intra-batch --encoder linear --dim {DIM} {_BATCH}")
    blocks = "--set blocks=2 --set probe_batches=1"
    _done(f"train {GLYPHS} --out {folder}/cross --system cross-image {blocks} {_OF_PICTURES}")


EMBEDDING = "embed {folder}/v.npz --split all --model {folder}/linear --shard-size 20 --out {victim}/out.npz"
TRAINING = (
    f"train {{folder}}/v.npz --encoder linear --dim 4 {_BATCH.replace('epochs 1', 'epochs 3')} --out {{victim}}/run"
)
FIT = "fit {folder}/v.npz --recipe paper --blocks 1 --epochs 3 --neighbors 3 --out {victim}/model"


def write_work(folder: Path) -> None:
    """Unfinished work, each in a folder of its own: shards of an embedding, a training, the checkpoint of a fit."""
    from entourage.encoders import shards
    from entourage.training import loop

    _done(f"train {folder}/v.npz --out {folder}/linear --encoder linear --dim 4 {_BATCH}")
    save, saved = loop.save_checkpoint, []

    def stop_after_second(*state: object) -> None:
        save(*state)
        saved.append(state)
        if len(saved) % 2 == 0:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_join", _stop)
        patch.setattr(loop, "save_checkpoint", stop_after_second)
        for name, command in {"embedding": EMBEDDING, "training": TRAINING, "fit": FIT}.items():
            (folder / name).mkdir()
            outcome = run(command.format(folder=folder, victim=folder / name))
            assert outcome.exit_code == 130, f"{name}: {outcome.output}"


def _stop(*anything: object, **options: object) -> None:
    raise KeyboardInterrupt


def write_hugging_face(folder: Path) -> None:
    """A folder as save_pretrained writes it."""
    from tests.encoders.tiny_models import tiny

    tiny("vit").save_pretrained(folder / "vit")


def _done(command: str) -> None:
    outcome = run(command)
    assert outcome.exit_code == 0, f"{command}: {outcome.output}"
