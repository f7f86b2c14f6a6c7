"""The comparison of all methods on real embeddings, unseen classes: tables in docs/compare.md, some of it in README.

    python benchmarks/compare_real.py --data FOLDER [--half train] [--sets clinc150 ...] [--methods all] [--splits 3]
    python benchmarks/compare_real.py --data FOLDER --half test      scores the test halves, and records that it did
    python benchmarks/compare_real.py --claims [--half test]         measures nothing: which claims hold

FOLDER (or the environment variable ENTOURAGE_DATA) holds one folder per dataset with vectors.npy and labels.npy, or
with pictures images/CLASS/*.png alone: there a small encoder is first trained on the training classes, to overfitting.

Each dataset is split by class into a training and a test half: first as `entourage compare` does it, then at random.
With `--half train` the test half is not looked at: the training half is split by class again, methods learn from one
part of it and are scored on the other. Design choices are made there. The test halves are scored once: what was
measured is not measured again unless `--again REASON` says why, and each run is written to results/test_runs.json with
its date, commit, sets and methods; uncommitted code is refused.

What is measured is kept method by method (real_results.py), so that a run that was stopped goes on where it was. In the
end the claims are checked, set by set (real_claims.py); `--half test` also writes results/compare_real.json, which has
everything, and the tables.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from PIL import Image

import real_results as kept
from entourage.comparison.methods import METHODS, select_methods
from entourage.comparison.protocols import PROTOCOLS, tasks_of
from entourage.comparison.scoring import score_methods
from entourage.comparison.splits import split_numbered
from entourage.data.arrays import ImageArray
from entourage.encoders.embedding import embed
from entourage.runtime.progress import terminal_progress
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.values import Embeddings
from real_claims import claims, described
from real_tables import write_tables

ENCODED = Path(__file__).parent / "encoded"  # vectors of pictures, kept from one run to the next
ENCODER_EPOCHS = 40


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    if not options.claims:
        measure(options)
    results = kept.summary(options.half)
    if not results:
        raise SystemExit(f"nothing has been measured on {options.half} halves yet; leave --claims out to measure")
    checked = claims(results)
    print(described(checked))
    if options.half == "test":
        write_tables(kept.write_summary(results), checked)


def measure(options: argparse.Namespace) -> None:
    folders = [path for path in sorted(Path(options.data or ".").iterdir()) if path.is_dir()]
    folders = [folder for folder in folders if not options.sets or folder.name in options.sets]
    if not options.data or not folders:
        raise SystemExit("no datasets found: give --data FOLDER or set ENTOURAGE_DATA; see the top of this file")
    methods = list(METHODS) if options.methods == "all" else list(dict.fromkeys(["raw", *options.methods.split(",")]))
    asked = {"sets": [folder.name for folder in folders], "methods": methods, "protocols": options.protocols.split(",")}
    asked |= {"splits": options.splits, "seeds": options.seeds, "again": options.again}
    record = kept.record_run(asked) if options.half == "test" else None
    with terminal_progress() as progress:
        for number in range(options.splits):  # all sets once before any is split anew
            for folder in folders:
                _measure_split(folder, number, methods, options, progress)
    if record:
        kept.record_end(record)


def _measure_split(folder: Path, number: int, methods: list[str], options: argparse.Namespace, progress) -> None:
    protocols, name = options.protocols.split(","), folder.name
    key = kept.Key(options.half, name, number)
    missing = {method: kept.missing(key, method, protocols, options.seeds, options.again) for method in methods}
    for wanted in dict.fromkeys(tuple(each) for each in missing.values() if each):  # those that lack the same together
        specs = select_methods([method for method, each in missing.items() if tuple(each) == wanted])
        training, test = halves(load(folder, options.half, number, progress), options.half, number)
        tasks = tasks_of(wanted, training, test, number)
        for spec, results in zip(
            specs,
            score_methods(specs, training, tasks, seeds=options.seeds, split=number, progress=progress),
            strict=True,
        ):
            if missing.get(spec.name):
                kept.keep(key, spec.name, wanted, tasks, results)
                print(f"{name}, split {number}: {spec.name}", flush=True)


def halves(items: Embeddings, half: str, number: int) -> tuple[Embeddings, Embeddings]:
    """What methods learn from and what they are scored on; for "train" both are of the training half."""
    if half == "train":  # of the first split: the others share classes with its test half
        return split_numbered(split_numbered(items, 0)[0], number)
    return split_numbered(items, number)


def load(folder: Path, half: str, number: int, progress) -> Embeddings:
    if (folder / "vectors.npy").exists():
        return Embeddings.from_vectors(np.load(folder / "vectors.npy"), labels=np.load(folder / "labels.npy"))
    files = sorted((folder / "images").glob("*/*.png"))
    labels = np.array([file.parent.name for file in files])
    encoded = ENCODED / f"{folder.name}-{half}-{number}.npy"
    if not encoded.exists():  # an encoder that has seen what is learned from, and nothing else
        training, _ = halves(Embeddings.from_vectors(np.ones((len(labels), 1)), labels=labels), half, number)
        seen = np.isin(labels, training.labels)
        pixels = np.stack([np.asarray(Image.open(file).convert("L")) for file in files])
        by = BaselineSettings(epochs=ENCODER_EPOCHS, validation_share=0.0)
        encoder, _, _ = train_baseline(ImageArray(pixels[seen], labels[seen]), by, progress=progress)
        ENCODED.mkdir(exist_ok=True)
        np.save(encoded, embed(encoder, pixels, progress=progress))
    return Embeddings.from_vectors(np.load(encoded), labels=labels)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--half", choices=["train", "test"], default="train", help="which classes are looked at")
    parser.add_argument("--sets", nargs="*", help="names of datasets")
    parser.add_argument("--methods", default="all", help="all, or names with commas between")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS), help="names with commas between")
    parser.add_argument("--splits", type=int, default=3, help="how many class splits, from 0")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0")
    parser.add_argument("--again", metavar="REASON", help="measure again what was measured, and say why")
    parser.add_argument("--claims", action="store_true", help="measure nothing, check the claims")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
