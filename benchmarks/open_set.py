"""Queries without a match: how well cosines tell them before and after refinement, and what a threshold lets pass.

    python benchmarks/open_set.py [--data FOLDER]

Real sets (folders with vectors.npy and labels.npy), of which the first half of the classes; queries and gallery as in
`compare --protocol open`, served by the universal refiner. Writes benchmarks/results/open_set.{json,md}, which
docs/refiner.md shows, and what other scores give, which docs/research.md shows.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np

from entourage import ContextRefiner, Embeddings, EntourageWarning, open_set_threshold, search
from entourage.comparison.protocols import tasks_of
from entourage.evaluation.separation import auroc
from entourage.neighbors import SearchIndex
from entourage.refiner.confidence import GalleryConfidence
from markers import fill

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs"
KEPT = 0.95
TITLES = (
    "set",
    "raw cosine, known / unknown",
    "refined cosine",
    "unknown that pass the raw threshold: raw, refined",
    "confidence ≥ 0.05: known, unknown",
    "AUROC: confidence, refined cosine",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of real sets")
    folders = sorted(Path(parser.parse_args().data or ".").glob("*/vectors.npy"))
    warnings.simplefilter("ignore", EntourageWarning)
    found = {}
    for path in folders:
        found[path.parent.name] = measure(training_half(path.parent))
        print(path.parent.name, found[path.parent.name], flush=True)
    text = table(found)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "open_set.json").write_text(json.dumps(found, indent=1) + "\n")
    (RESULTS / "open_set.md").write_text(text)
    fill(DOCS / "refiner.md", "open_set", text)
    fill(DOCS / "research.md", "open_set_scores", table_of_scores(found))


def training_half(folder: Path) -> Embeddings:
    vectors, labels = np.load(folder / "vectors.npy"), np.load(folder / "labels.npy")
    kept = labels < (labels.max() + 1) // 2
    return Embeddings.from_vectors(vectors[kept].astype(np.float32), labels=labels[kept])


def measure(items: Embeddings) -> dict:
    (task,) = tasks_of(["open"], items, items)
    assert task.gallery is not None and task.known is not None
    queries, gallery, known = task.queries.vectors, task.gallery.vectors, task.known
    served = ContextRefiner().fit(gallery).serve(gallery)
    found = search(queries, gallery, k=5)
    raw, own = found.similarities[:, 0], search(gallery, k=1).similarities[:, 0][found.rows[:, 0]]
    refined_queries = Embeddings.from_vectors(served.transform(queries))
    refined_gallery = SearchIndex(Embeddings.from_vectors(served.refined_gallery))
    refined = search(refined_queries, refined_gallery, k=1).similarities[:, 0]
    confidence = served.confidence(queries)
    threshold = open_set_threshold(raw[known], tpr=KEPT).value
    scores = {
        "raw": raw,
        "refined": refined,
        "confidence": confidence,
        "five nearest": found.similarities.mean(axis=1),
        "relative": raw - own,
        "a third relative": raw - own / 3,
        "raw and refined": confidence + GalleryConfidence(refined_gallery).of(refined_queries),
    }
    return {
        "items": len(items),
        "median": {name: [float(np.median(scores[name][of])) for of in (known, ~known)] for name in ("raw", "refined")},
        "unknown_above_raw_threshold": [float((each[~known] >= threshold).mean()) for each in (raw, refined)],
        "above_0.05": [float((confidence[of] >= 1 - KEPT).mean()) for of in (known, ~known)],
        "auroc": {name: auroc(values, known) for name, values in scores.items()},
    }


def table(found: dict[str, dict]) -> str:
    """A row per set; medians of cosines as they are, all else in percent."""
    lines = [f"| {' | '.join(TITLES)} |", "|---" * len(TITLES) + "|"]
    for name, row in found.items():
        medians = ["{:.2f} / {:.2f}".format(*row["median"][each]) for each in ("raw", "refined")]
        shares = ["{:.0f}, {:.0f}".format(*(100 * np.array(row["unknown_above_raw_threshold"])))]
        shares.append("{:.1f}, {:.0f}".format(*(100 * np.array(row["above_0.05"]))))
        shares.append(", ".join(f"{100 * row['auroc'][each]:.1f}" for each in ("confidence", "refined")))
        lines.append(f"| {' | '.join([name, *medians, *shares])} |")
    return "\n".join(lines) + "\n"


def table_of_scores(found: dict[str, dict]) -> str:
    """AUROC of each score in percent, a row per set."""
    names = list(next(iter(found.values()))["auroc"])
    lines = [f"| AUROC | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for name, row in found.items():
        shares = [f"{100 * row['auroc'][each]:.1f}" for each in names]
        lines.append(f"| {' | '.join([name, *shares])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
