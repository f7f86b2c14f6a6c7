"""The comparison of all methods on real embeddings, unseen classes: the table in docs/compare.md, some of it in README.

    python benchmarks/compare_real.py --data FOLDER [--seeds 3] [--only clinc150 ...] [--methods all]

FOLDER (or the environment variable ENTOURAGE_DATA) holds one folder per dataset with vectors.npy and labels.npy, or
with pictures images/CLASS/*.png alone: there a small encoder is first trained on the training classes, to overfitting.
Methods learn from the first half of the sorted classes and are scored on the other half; see docs/compare.md.
Results are added to benchmarks/results/compare_real.json as they come, so that methods may be run one by one. The
table is written to compare_real.md and into docs/compare.md, a few of its rows into the README.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

from entourage.comparison.measuring import compare_split
from entourage.comparison.methods import METHODS
from entourage.comparison.splits import split_half
from entourage.data.arrays import ImageArray
from entourage.encoders.embedding import embed
from entourage.runtime.progress import terminal_progress
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.values import Embeddings
from markers import fill

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
PAGE = README.parent / "docs" / "compare.md"
IN_README = ("raw", "alpha-qe", "k-reciprocal", "head+alpha-qe", "paper", "universal", "relational")
REST = "\nBold: the best of all methods measured; the others are in [docs/compare.md](docs/compare.md#what-it-gains).\n"
ENCODED = Path(__file__).parent / "encoded"  # vectors of pictures, kept from one run to the next
ENCODER_EPOCHS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 0")
    parser.add_argument("--only", nargs="*", help="names of datasets")
    parser.add_argument("--methods", default="all", help="all, or names with commas between")
    options = parser.parse_args()
    folders = [path for path in sorted(Path(options.data or ".").iterdir()) if path.is_dir()]
    folders = [folder for folder in folders if not options.only or folder.name in options.only]
    if not options.data or not folders:
        raise SystemExit("no datasets found: give --data FOLDER or set ENTOURAGE_DATA; see the top of this file")
    methods = list(METHODS) if options.methods == "all" else options.methods.split(",")
    with terminal_progress() as progress:
        for folder in folders:
            training, test = split_half(load(folder, progress))
            for method in methods:  # one by one, so that what is measured is kept
                comparison = compare_split(
                    training, test, [method], seeds=options.seeds, split="half", progress=progress
                )
                keep(folder.name, comparison.document())
                print(f"{folder.name}: {method}", flush=True)
    print((RESULTS / "compare_real.md").read_text())


def load(folder: Path, progress) -> Embeddings:
    if (folder / "vectors.npy").exists():
        return Embeddings.from_vectors(np.load(folder / "vectors.npy"), labels=np.load(folder / "labels.npy"))
    files = sorted((folder / "images").glob("*/*.png"))
    labels = np.array([file.parent.name for file in files])
    kept = ENCODED / f"{folder.name}.npy"
    if not kept.exists():
        training, _ = split_half(Embeddings.from_vectors(np.ones((len(labels), 1)), labels=labels))
        seen = np.isin(labels, training.labels)
        pixels = np.stack([np.asarray(Image.open(file).convert("L")) for file in files])
        by = BaselineSettings(epochs=ENCODER_EPOCHS, validation_share=0.0)
        encoder, _, _ = train_baseline(ImageArray(pixels[seen], labels[seen]), by, progress=progress)
        ENCODED.mkdir(exist_ok=True)
        np.save(kept, embed(encoder, pixels, progress=progress))
    return Embeddings.from_vectors(np.load(kept), labels=labels)


def keep(dataset: str, document: dict) -> None:
    """Add the rows of a dataset to the file and write the table anew."""
    file = RESULTS / "compare_real.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    result = results.setdefault(dataset, {"protocol": document["protocol"], "methods": {}})
    if {**result["protocol"], "seeds": None} != {**document["protocol"], "seeds": None}:  # each row has its own seeds
        raise SystemExit(f"{file} holds {dataset} under another protocol; delete it there to measure anew")
    result["methods"] |= {row["method"]: row for row in document["methods"]}
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    write_tables(results)


def write_tables(results: dict) -> None:
    """Every method into the file and docs/compare.md; those of IN_README into the README."""
    (RESULTS / "compare_real.md").write_text(table(results))
    fill(PAGE, "compare_real", table(results))
    fill(README, "compare_real", table(results, IN_README) + REST)


def table(results: dict, methods=tuple(METHODS)) -> str:
    """R@1 / MAP@R of these methods on every dataset; in bold what no method measured there exceeds."""
    lines = [f"| R@1 / MAP@R | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    for name in methods:
        cells = [_cell(result["methods"], name) for result in results.values()]
        if any(cells):
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(rows: dict, name: str) -> str:
    row = rows.get(name, {})
    if "map@r" not in row:
        return ""
    marks = []
    for metric in ("recall@1", "map@r"):
        best = max(other[metric] for other in rows.values() if metric in other)
        value = f"{100 * row[metric]:.1f}"
        marks.append(f"**{value}**" if value == f"{100 * best:.1f}" else value)
    seeds = len(row["seeds"])
    most = max(len(other["seeds"]) for other in rows.values() if "seeds" in other)
    return " / ".join(marks) + (f" ({seeds} seed{'s' * (seeds > 1)})" if seeds < most else "")


if __name__ == "__main__":
    main()
