"""A refiner in a scikit-learn pipeline before nearest neighbours: accuracy with it, without it, and done wrongly.

    python benchmarks/pipelines.py [--data FOLDER]

Digits, and real sets (folders with vectors.npy and labels.npy, of which the first half of the classes, at most about
3,000 items). 30 % of the items of each class are the test. Writes benchmarks/results/pipelines.{json,md}, which
docs/refiner.md shows.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from entourage import ContextRefiner, EntourageWarning
from markers import fill

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "refiner.md"
MOST_ITEMS, LEAST_OF_A_CLASS, SEED = 3000, 4, 0
ROWS = {
    "raw": "raw",
    "pipeline": "`ContextRefiner()` before it",
    "apart": "train and test each refined in a context of its own",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of real sets")
    folders = sorted(Path(parser.parse_args().data or ".").glob("*/vectors.npy"))
    sets = {"digits": load_digits(return_X_y=True)} | {path.parent.name: training_half(path.parent) for path in folders}
    warnings.simplefilter("ignore", EntourageWarning)
    found = {}
    for name, (X, y) in sets.items():
        found[name] = accuracies(X, y)
        print(name, found[name], flush=True)
    text = table(found)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "pipelines.json").write_text(json.dumps(found, indent=1) + "\n")
    (RESULTS / "pipelines.md").write_text(text)
    fill(PAGE, "pipelines", text)


def training_half(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Whole classes of the first half, drawn at random, until there are enough items."""
    vectors, labels = np.load(folder / "vectors.npy"), np.load(folder / "labels.npy")
    sizes = np.bincount(labels)
    classes = np.flatnonzero(sizes[: (labels.max() + 1) // 2] >= LEAST_OF_A_CLASS)
    drawn = np.random.default_rng(SEED).permutation(classes)
    enough = 1 + int(np.searchsorted(np.cumsum(sizes[drawn]), MOST_ITEMS))
    kept = np.isin(labels, drawn[:enough])
    return vectors[kept].astype(np.float32), labels[kept]


def accuracies(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=SEED, stratify=y)
    refiner, nearest = ContextRefiner(random_state=SEED), KNeighborsClassifier(5)
    raw = make_pipeline(Normalizer(), nearest).fit(train, y_train).score(test, y_test)
    pipeline = make_pipeline(refiner, nearest).fit(train, y_train).score(test, y_test)
    votes = refiner.fit(train, y_train).votes_
    apart = nearest.fit(refiner.transform(train, context=train), y_train)
    return {
        "items": len(y),
        "classes": len(np.unique(y)),
        "raw": raw,
        "pipeline": pipeline,
        "apart": apart.score(refiner.transform(test, context=test), y_test),
        "votes": None if votes is None else votes._asdict(),
        "clearly_better": bool(votes and votes.clearly_better),
    }


def table(found: dict[str, dict]) -> str:
    """A row per set; where the rehearsal left vectors as they are, it says so."""
    lines = [f"| set | items / classes | {' | '.join(ROWS.values())} |", "|---|---|---|---|---|"]
    for name, row in found.items():
        shares = {key: f"{100 * row[key]:.1f}" for key in ROWS}
        shares["pipeline"] += "" if row["clearly_better"] else " (as they are)"
        lines.append(f"| {name} | {row['items']:,} / {row['classes']:,} | {' | '.join(shares.values())} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
