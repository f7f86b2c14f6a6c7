"""How much of refinement's gain re-ranking keeps, on real embeddings: the table in docs/rerank.md.

    python benchmarks/rerank_real.py --data FOLDER [--only clinc150 ...] [--fitted] [--queries 1000]

FOLDER (or the environment variable ENTOURAGE_DATA) holds one folder per dataset with vectors.npy and labels.npy; others
are passed over. Only the training half of the classes is used, on which the settings of re-ranking were chosen; some
of its items are queries among all others: raw search, its first 100 results re-ranked, and the whole set refined. With
--fitted the first half of these classes is learned from, and the other is ranked. Results are added to
benchmarks/results/rerank_real.json as they come, and the table is written into docs/rerank.md.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np

from entourage import ContextRefiner, Reranker, search
from entourage.comparison.splits import split_half
from entourage.errors import EntourageWarning
from entourage.values import Embeddings, label_codes
from markers import fill

RESULTS = Path(__file__).parent / "results" / "rerank_real.json"
PAGE = Path(__file__).parent.parent / "docs" / "rerank.md"
CANDIDATES = 100
METRICS = ("recall@1", "map@r", "recall@10")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--only", nargs="*", help="names of datasets")
    parser.add_argument("--fitted", action="store_true", help="learn from half of the training classes")
    parser.add_argument("--queries", type=int, default=1000, help="how many items are queries, drawn at random")
    options = parser.parse_args()
    folders = [file.parent for file in sorted(Path(options.data or ".").glob("*/vectors.npy"))]
    folders = [folder for folder in folders if not options.only or folder.name in options.only]
    if not options.data or not folders:
        raise SystemExit("no datasets found: give --data FOLDER or set ENTOURAGE_DATA; see the top of this file")
    for folder in folders:
        vectors, labels = np.load(folder / "vectors.npy"), np.load(folder / "labels.npy")
        training, _ = split_half(Embeddings.from_vectors(vectors, labels=labels))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EntourageWarning)  # where a refiner leaves vectors as they are
            scores = measured(training, options.fitted, options.queries)
        keep("fitted" if options.fitted else "universal", folder.name, scores)
        print(folder.name, flush=True)
    print(table(json.loads(RESULTS.read_text())))


def measured(training: Embeddings, fitted: bool, n_queries: int) -> dict[str, dict[str, float]]:
    """Scores of each method on the training half, or on the half of it that was not learned from."""
    learned, items = split_half(training) if fitted else (training, training)
    codes = label_codes(items.labels)
    refiner = ContextRefiner().fit(learned if fitted else items.vectors)
    refined = refiner.transform(items.vectors, context=items.vectors)
    items = Embeddings(items.vectors, np.arange(len(items)))  # with ids, so that no query finds itself
    queries = np.random.default_rng(0).permutation(len(items))[:n_queries]
    depth = min(max(CANDIDATES, int(np.bincount(codes).max())), len(items) - 1)
    raw = search(items.take(queries), items, k=depth).rows
    rankings = {
        "raw": raw,
        "rerank-100": reranked(Reranker(refiner if fitted else None), items, queries, raw),
        "refined": search(items.replace_vectors(refined).take(queries), items.replace_vectors(refined), k=depth).rows,
    }
    return {name: scores(codes, queries, rows) for name, rows in rankings.items()}


def reranked(reranker: Reranker, items: Embeddings, queries: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """Rows (n, k) of which the first 100 are in their new order."""
    rows = raw.copy()
    for query, row in zip(queries, rows, strict=True):
        first = row[:CANDIDATES].copy()
        row[:CANDIDATES] = reranker.rerank(items.vectors[query], items.vectors[first], ids=first).ids
    return rows


def scores(codes: np.ndarray, queries: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    """Means over all queries; one without a match counts as 0."""
    hits = codes[rows] == codes[queries][:, None]
    matches = np.bincount(codes)[codes[queries]] - 1
    ranks = np.arange(1, rows.shape[1] + 1)
    within = hits & (ranks <= matches[:, None])
    precision = (within * np.cumsum(hits, axis=1) / ranks).sum(axis=1) / np.maximum(matches, 1)
    values = (hits[:, 0].mean(), precision.mean(), hits[:, :10].any(axis=1).mean())
    return dict(zip(METRICS, map(float, values), strict=True))


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
