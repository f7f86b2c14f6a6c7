"""Whether the doctor's verdicts come true: many sets, refined without labels, and what it did to MAP@R.

    python benchmarks/doctor_verdicts.py [--data FOLDER] [--sets 200]

Random clusters of even and of very uneven sizes, 24 to 128 dimensions, and samples of real sets (folders with
vectors.npy and labels.npy), down to two items a class. Writes benchmarks/results/doctor_verdicts.{json,md}, which
docs/doctor.md shows.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np

from entourage.comparison.diagnosis import examine
from entourage.evaluation import evaluate_embeddings
from entourage.refiner.estimator import ContextRefiner
from entourage.values import Embeddings, label_codes
from markers import fill

RESULTS = Path(__file__).parent / "results"
OUTCOMES = ("should help", "may help", "will do little", "will not help", "cannot be judged")
SEED = 1
PAGE = Path(__file__).parent.parent / "docs" / "doctor.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of real sets")
    parser.add_argument("--sets", type=int, default=200, help="how many sets to draw")
    options = parser.parse_args()
    rng = np.random.default_rng(SEED)
    folders = sorted(Path(options.data).iterdir()) if options.data else []
    real = [folder for folder in folders if (folder / "vectors.npy").exists()]
    real = [(np.load(f / "vectors.npy").astype(np.float32), label_codes(np.load(f / "labels.npy"))) for f in real]
    rows = []
    for number in range(options.sets):
        x, y = sample(rng, *real[number % len(real)]) if real and number % 2 else clusters(rng)
        rows.append(judged(x, y))
    text = table(rows)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "doctor_verdicts.json").write_text(json.dumps(rows, indent=1) + "\n")
    (RESULTS / "doctor_verdicts.md").write_text(text)
    fill(PAGE, "doctor_verdicts", text)
    print(text)


def judged(x: np.ndarray, y: np.ndarray) -> dict:
    """The verdicts with labels and without, and the change of both scores, as fractions."""
    items, bare = Embeddings.from_vectors(x, labels=y), Embeddings.from_vectors(x)
    refined = items.replace_vectors(ContextRefiner().fit_transform(bare).vectors)
    before, after = (evaluate_embeddings(e, nmi=False).metrics for e in (items, refined))
    verdicts = {"with_labels": examine(items).verdict, "without_labels": examine(bare).verdict}
    return {
        **{name: verdict.removeprefix("refinement ").partition(":")[0] for name, verdict in verdicts.items()},
        **{name: after[name] - before[name] for name in ("recall@1", "map@r")},
        "items": len(x),
        "classes": int(y.max()) + 1,
        "dimensions": x.shape[1],
    }


def clusters(rng) -> tuple[np.ndarray, np.ndarray]:
    n_classes, size, dim = int(rng.integers(10, 80)), rng.integers(2, 40), int(rng.choice([24, 32, 64, 128]))
    sizes = np.maximum(2, size * rng.lognormal(0, rng.choice([0, 1.0]), n_classes)).astype(int)
    y = np.repeat(np.arange(n_classes), sizes)
    noise = rng.uniform(0.3, 3.0)
    return rng.normal(size=(n_classes, dim))[y] + noise * rng.normal(size=(len(y), dim)), y


def sample(rng, vectors: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some classes with some items of each, and sometimes noise."""
    classes, size = rng.permutation(codes.max() + 1)[: rng.integers(8, 60)], rng.integers(2, 40)
    rows = np.concatenate([rng.permutation(np.flatnonzero(codes == c))[:size] for c in classes])
    x = vectors[rows] / np.linalg.norm(vectors[rows], axis=1, keepdims=True)
    x = x + rng.choice([0, 0.5, 1.0]) * rng.normal(size=x.shape) / np.sqrt(x.shape[1])
    return x, label_codes(codes[rows])


def table(rows: list[dict]) -> str:
    """The change of MAP@R in points by outcome."""
    lines = [
        "| outcome | with labels: sets | median | lowest | highest | without labels: sets | median | lowest | highest |"
    ]
    lines.append("|---" * 9 + "|")
    for outcome in OUTCOMES:
        cells = []
        for kind in ("with_labels", "without_labels"):
            gains = [100 * row["map@r"] for row in rows if row[kind] == outcome]
            cells += (
                [str(len(gains)), *(f"{f(gains):+.1f}" for f in (np.median, min, max))] if gains else ["0", "", "", ""]
            )
        lines.append(f"| {outcome} | {' | '.join(cells)} |")
    first_hits = [100 * row["recall@1"] for row in rows if row["with_labels"] == "should help"] or [0.0]
    lost = {
        kind: sum(row["map@r"] < 0 for row in rows if row[kind] == "should help")
        for kind in ("with_labels", "without_labels")
    }
    lines += ["", f"Of the sets that should gain, {lost['with_labels']} lost with labels and {lost['without_labels']} "]
    lines[-1] += f"without; R@1 of the former changed by {min(first_hits):+.1f} to {max(first_hits):+.1f} points."
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
