"""Refinement of real embeddings, unseen classes: the table in the README.

    python benchmarks/refine_real.py --data FOLDER [--seeds 3] [--only clinc150]

FOLDER (or the environment variable ENTOURAGE_DATA) holds one folder per dataset with vectors.npy and labels.npy.
The refiner learns from the first half of the sorted classes and is scored on the other half; it chooses its
stopping point on training classes it holds out. Untrained contenders have nothing to choose: their settings are
fixed. Writes benchmarks/results/refine_real.{json,md}.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from entourage.baselines import expand_queries
from entourage.evaluation import evaluate_embeddings
from entourage.neighbors import search
from entourage.progress import terminal_progress
from entourage.systems.context_refiner import ContextRefiner
from entourage.values import Embeddings

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 0")
    parser.add_argument("--only", nargs="*", help="names of datasets")
    options = parser.parse_args()
    folders = sorted(path.parent for path in Path(options.data or ".").glob("*/vectors.npy"))
    folders = [folder for folder in folders if not options.only or folder.name in options.only]
    if not options.data or not folders:
        raise SystemExit("no datasets found: give --data FOLDER or set ENTOURAGE_DATA; see the top of this file")
    RESULTS.mkdir(exist_ok=True)
    rows = []
    with terminal_progress() as progress:
        for folder in folders:
            rows += compare(folder, options.seeds, progress)
            (RESULTS / "refine_real.json").write_text(json.dumps(rows, indent=2) + "\n")
            (RESULTS / "refine_real.md").write_text(table(rows))
    print(table(rows))


def compare(folder: Path, n_seeds: int, progress) -> list[dict]:
    """Scores of every contender on one dataset."""
    vectors, labels = np.load(folder / "vectors.npy"), np.load(folder / "labels.npy")
    classes = np.unique(labels)
    seen = np.isin(labels, classes[: len(classes) // 2])
    training, test = (Embeddings.from_vectors(vectors[half], labels=labels[half]) for half in (seen, ~seen))
    nearest = search(test, k=8, progress=progress)
    rows = [score(folder.name, "raw", [test])]
    rows.append(
        score(folder.name, "alpha-QE both sides, k=8, alpha=3 (untrained)", [expand_queries(test, test, nearest)])
    )
    refined, seconds = [], []
    for seed in range(n_seeds):
        started = time.perf_counter()
        refiner = ContextRefiner(seed=seed).fit(training, progress=progress)
        seconds.append(time.perf_counter() - started)
        refined.append(test.replace_vectors(refiner.transform(test)))
    rows.append(score(folder.name, "context refiner", refined) | {"fit_seconds": float(np.mean(seconds))})
    return rows


def score(dataset: str, method: str, results: list[Embeddings]) -> dict:
    """Mean over the seeds, and the range of MAP@R."""
    metrics = [evaluate_embeddings(result, nmi=False).metrics for result in results]
    mean = {name: float(np.mean([values[name] for values in metrics])) for name in metrics[0]}
    spread = [values["map@r"] for values in metrics]
    return {
        "dataset": dataset,
        "method": method,
        "seeds": len(results),
        "map@r_range": [min(spread), max(spread)],
        **mean,
    }


def table(rows: list[dict]) -> str:
    columns = ("recall@1", "recall@10", "r-precision", "map@r")
    lines = [f"| dataset | method | {' | '.join(columns)} | map@r, min–max over seeds |", "|---" * 7 + "|"]
    for row in rows:
        low, high = (f"{100 * value:.1f}" for value in row["map@r_range"])
        spread = f"{low}–{high}" if row["seeds"] > 1 else ""
        scores = " | ".join(f"{100 * row[name]:.1f}" for name in columns)
        lines.append(f"| {row['dataset']} | {row['method']} | {scores} | {spread} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
