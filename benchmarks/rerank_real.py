"""How much of refinement's gain re-ranking keeps, on real embeddings: the table in docs/rerank.md.

    python benchmarks/rerank_real.py --data FOLDER [--only clinc150 ...] [--fitted]

FOLDER (or the environment variable ENTOURAGE_DATA) holds one folder per dataset with vectors.npy and labels.npy; others
are passed over. Only the training half of the classes is used, on which the settings of re-ranking were chosen, each
item a query among the others: raw search, its first 100 results re-ranked, and the whole set refined. With --fitted the
first half of these classes is learned from, and the other is ranked. Results are added to
benchmarks/results/rerank_real.json as they come, and the table is written into docs/rerank.md.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np

from entourage.baselines import Raw
from entourage.comparison.methods import Refined
from entourage.comparison.reranking import RerankedSearch
from entourage.comparison.splits import split_half
from entourage.errors import EntourageWarning
from entourage.evaluation import evaluate_ranking
from entourage.values import Embeddings
from markers import fill

RESULTS = Path(__file__).parent / "results" / "rerank_real.json"
PAGE = Path(__file__).parent.parent / "docs" / "rerank.md"
METRICS = ("recall@1", "map@r", "recall@10")
UNIVERSAL = {
    "raw": Raw(),
    "rerank-100": RerankedSearch(universal=True),
    "refined": Refined(universal=True),
}
FITTED = {
    "raw": Raw(),
    "rerank-100": RerankedSearch(universal=False),
    "refined": Refined(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--only", nargs="*", help="names of datasets")
    parser.add_argument("--fitted", action="store_true", help="learn from half of the training classes")
    options = parser.parse_args()
    folders = [file.parent for file in sorted(Path(options.data or ".").glob("*/vectors.npy"))]
    folders = [folder for folder in folders if not options.only or folder.name in options.only]
    if not options.data or not folders:
        raise SystemExit("no datasets found: give --data FOLDER or set ENTOURAGE_DATA; see the top of this file")
    for folder in folders:
        vectors, labels = np.load(folder / "vectors.npy"), np.load(folder / "labels.npy")
        training, _ = split_half(Embeddings.from_vectors(vectors, labels=labels))
        keep("fitted" if options.fitted else "universal", folder.name, measured(training, options.fitted))
        print(folder.name, flush=True)
    print(table(json.loads(RESULTS.read_text())))


def measured(training: Embeddings, fitted: bool) -> dict[str, dict[str, float]]:
    """Scores of each method on the training half, or on the half of it that was not learned from."""
    learned, ranked = split_half(training) if fitted else (training, training)
    scores = {}
    for name, method in (FITTED if fitted else UNIVERSAL).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EntourageWarning)  # where a refiner leaves vectors as they are
            per_query = evaluate_ranking(ranked, method.fit(learned).rank, at=(1, 10))
        scores[name] = {metric: float(np.mean(per_query[metric])) for metric in METRICS}
    return scores


def keep(kind: str, dataset: str, scores: dict) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results.setdefault(kind, {})[dataset] = scores
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    fill(PAGE, "rerank_real", table(results))


def table(results: dict) -> str:
    """R@1 / MAP@R / recall@10 of each method, a dataset a line; the fitted ones after the universal ones."""
    parts = []
    for kind in ("universal", "fitted"):
        if kind in results:
            names = list(next(iter(results[kind].values())))
            parts += [f"| {kind} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
            parts += [
                f"| {dataset} | {' | '.join(_cell(row[name]) for name in names)} |"
                for dataset, row in sorted(results[kind].items())
            ]
            parts.append("")
    return "\n".join(parts)


def _cell(scores: dict) -> str:
    return " / ".join(f"{100 * scores[metric]:.1f}" for metric in METRICS)


if __name__ == "__main__":
    main()
