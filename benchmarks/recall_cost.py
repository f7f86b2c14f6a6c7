"""What a search that misses some neighbours costs: MAP@R of refined vectors against the recall of the search.

    python benchmarks/recall_cost.py [--items N] [--data FOLDER] [--sets clinc150 ...]

An index of inverted lists is searched in as few lists as reach a wanted recall, as `refine --search` does it, and the
vectors refined by what it finds are scored by exact search. Lists are cut off at borders between clusters: what is
missed is missed together, which is harder than missing at random. The sets are the training halves (labels < C / 2) of
real ones in FOLDER, by default ENTOURAGE_DATA, and one that is drawn as in scale.py. The table goes into
docs/scaling.md.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "speed")]

from markers import fill  # noqa: E402
from scale import write_vectors  # noqa: E402

RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "scaling.md"
WANTED = (0.95, 0.9, 0.8, 0.6)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000, help="of the set that is drawn")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--data", type=Path, default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--sets", nargs="*", default=["clinc150", "stackoverflow20_tfidf"])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as folder:
        drawn = write_vectors(Path(folder), options.items, options.dim)
        sets = {"drawn": (np.load(drawn), np.load(drawn.with_suffix(".labels.npy")))}
        sets |= {name: half(Path(options.data) / name) for name in options.sets if options.data}
        for name, (vectors, labels) in sets.items():
            rows.append({"set": name, "n": len(vectors), "d": vectors.shape[1], **measured(folder, vectors, labels)})
            print(json.dumps(rows[-1]), flush=True)
            save(rows, options.out)


def half(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The items of the first half of the classes."""
    vectors, labels = np.load(folder / "vectors.npy"), np.load(folder / "labels.npy")
    own = labels < (labels.max() + 1) // 2
    return vectors[own], labels[own]


def measured(folder: str, vectors: np.ndarray, labels: np.ndarray) -> dict:
    """MAP@R of the set itself, of exact search, and of searches that reach each wanted recall."""
    from entourage import evaluate

    source = Path(folder) / "set.npy"
    np.save(source, vectors)
    lists = f"IVF{4 * int(np.sqrt(len(vectors)))},Flat"
    found = {"raw": evaluate(vectors, labels, nmi=False).metrics["map@r"], "searches": []}
    for wanted in (None, *WANTED):
        recall, refined = refined_by(source, "exact" if wanted is None else lists, wanted)
        quality = evaluate(refined, labels, nmi=False).metrics["map@r"]
        found["searches"].append({"wanted": wanted, "recall": recall, "map@r": quality})
    return found


def refined_by(source: Path, search: str, wanted: float | None) -> tuple[float, np.ndarray]:
    """The recall that was reached, and the refined vectors."""
    from entourage.neighbors import approximate, faiss_search
    from entourage.runs.streamed.refine import StreamedRequest, refine_streamed

    out = source.with_name("refined.npy")
    request = StreamedRequest(str(source), out, search=search, overwrite=True)
    with (
        mock.patch.object(approximate, "WANTED", wanted or 1.0),
        mock.patch.object(faiss_search, "_LIST_BREADTH", 1),
    ):
        told = refine_streamed(request).protocol["neighbors"]
    recall = 1.0 if wanted is None else float(told.partition("recall ")[2].split()[0])
    return recall, np.load(out)


def save(rows: list[dict], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recall_cost.json").write_text(json.dumps(rows, indent=1) + "\n")
    (folder / "recall_cost.md").write_text(table(rows))
    if folder.resolve() == RESULTS:
        fill(PAGE, "recall_cost", table(rows))


def table(rows: list[dict]) -> str:
    """A line for each set: raw, exact, and MAP@R (recall) of each search."""
    head = ["set", "N x d", "raw", "exact", *(f"recall ≥ {wanted}" for wanted in WANTED)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        exact, *others = row["searches"]
        cells = [f"{100 * each['map@r']:.1f} ({each['recall']:.2f})" for each in others]
        size = f"{row['n']:,} x {row['d']}"
        lines.append(
            f"| {row['set']} | {size} | {100 * row['raw']:.1f} | {100 * exact['map@r']:.1f} | {' | '.join(cells)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
