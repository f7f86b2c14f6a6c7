"""The comparison of all methods on real embeddings, unseen classes: the table in docs/compare.md, some of it in README.

    python benchmarks/compare_real.py --data FOLDER [--seeds 3] [--only clinc150 ...] [--methods all]

FOLDER (or the environment variable ENTOURAGE_DATA) holds one folder per dataset with vectors.npy and labels.npy, or
with pictures images/CLASS/*.png alone: there a small encoder is first trained on the training classes, to overfitting.
Methods learn from the first half of the sorted classes and are scored on the other half; see docs/compare.md.
Results are added to benchmarks/results/compare_real.json as they come, so that methods may be run one by one, with the
scores of every class in compare_real_classes.json, from which intervals between any two methods are made. The table is
written to compare_real.md and into docs/compare.md, a few of its rows into the README.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

from entourage.comparison.intervals import JUDGED_BY, leader
from entourage.comparison.measuring import compare_split
from entourage.comparison.methods import METHODS
from entourage.comparison.results import Comparison
from entourage.comparison.splits import split_half
from entourage.data.arrays import ImageArray
from entourage.encoders.embedding import embed
from entourage.runtime.progress import terminal_progress
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.values import Embeddings, label_codes
from markers import fill

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
PAGE = README.parent / "docs" / "compare.md"
IN_README = ("raw", "alpha-qe", "k-reciprocal", "head+alpha-qe", "paper", "universal", "relational")
REST = "All methods are in [docs/compare.md](docs/compare.md#what-it-gains).\n"
MARKED = "\nBold: better than every other method measured, beyond the 95 % interval over classes. "
UNMARKED = "\nNothing is marked as best: these figures were taken before intervals over classes were. "
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
                keep(folder.name, comparison.document(), class_scores(comparison))
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


def class_scores(comparison: Comparison) -> dict:
    """The size of every class, and its mean scores by each method."""
    codes = label_codes(comparison.labels)
    sizes = np.bincount(codes)
    scores = {}
    for result in comparison.results:
        if not result.skipped:
            own = result.per_query
            scores[result.method] = {m: (np.bincount(codes, own[m]) / sizes).round(6).tolist() for m in JUDGED_BY}
    return {"sizes": sizes.tolist(), "methods": scores}


def keep(dataset: str, document: dict, classes: dict) -> None:
    """Add the rows of a dataset to the files and write the table anew."""
    file, class_file = RESULTS / "compare_real.json", RESULTS / "compare_real_classes.json"
    results, by_class = (json.loads(each.read_text()) if each.exists() else {} for each in (file, class_file))
    result = results.setdefault(dataset, {"protocol": document["protocol"], "methods": {}})
    if {**result["protocol"], "seeds": None} != {**document["protocol"], "seeds": None}:  # each row has its own seeds
        raise SystemExit(f"{file} holds {dataset} under another protocol; delete it there to measure anew")
    result["methods"] |= {row["method"]: row for row in document["methods"]}
    known = by_class.setdefault(dataset, {"sizes": classes["sizes"], "methods": {}})
    known["methods"] |= classes["methods"]
    result["best"] = {metric: best_method(known, metric) for metric in JUDGED_BY}
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    class_file.write_text(json.dumps(by_class) + "\n")
    write_tables(results)


def best_method(known: dict, metric: str) -> dict:
    """Which method leads by a metric, and which may be as good; means of classes stand for their queries."""
    sizes = known["sizes"]
    scores = {name: {metric: np.repeat(each[metric], sizes)} for name, each in known["methods"].items()}
    return leader(scores, metric, np.repeat(np.arange(len(sizes)), sizes))


def write_tables(results: dict) -> None:
    """Every method into the file and docs/compare.md; those of IN_README into the README."""
    (RESULTS / "compare_real.md").write_text(table(results))
    fill(PAGE, "compare_real", table(results))
    fill(README, "compare_real", table(results, IN_README) + legend(results))


def legend(results: dict) -> str:
    """What bold means below the table of the README, and where the rest is."""
    return (MARKED if any(result.get("best") for result in results.values()) else UNMARKED) + REST


def table(results: dict, methods=tuple(METHODS)) -> str:
    """R@1 / MAP@R of these methods on every dataset; in bold what beats all others measured there for certain."""
    lines = [f"| R@1 / MAP@R | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    for name in methods:
        cells = [_cell(result["methods"], name, result.get("best", {})) for result in results.values()]
        if any(cells):
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(rows: dict, name: str, best: dict) -> str:
    row = rows.get(name, {})
    if "map@r" not in row:
        return ""
    marks = []
    for metric in JUDGED_BY:
        value = f"{100 * row[metric]:.1f}"
        marks.append(f"**{value}**" if best.get(metric) == {"method": name, "tied_with": []} else value)
    seeds = len(row["seeds"])
    most = max(len(other["seeds"]) for other in rows.values() if "seeds" in other)
    return " / ".join(marks) + (f" ({seeds} seed{'s' * (seeds > 1)})" if seeds < most else "")


if __name__ == "__main__":
    main()
