"""How time and memory grow with the number of items: table, JSON and plot.

    python benchmarks/speed/scaling.py [--quick] [--sizes N ...] [--out FOLDER]

Each measurement runs in a process of its own; memory is what the work takes at most beyond its input. Results are kept
as they come, in benchmarks/results/scaling.json, .md and .png; the table also goes into docs/speed.md.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from children import cost_in_child  # noqa: E402
from entourage.values import Embeddings  # noqa: E402
from markers import fill  # noqa: E402
from samples import DIMENSIONS, clustered_items  # noqa: E402

RESULTS = HERE.parent / "results"
PAGE = HERE.parent.parent / "docs" / "speed.md"
SIZES, QUICK_SIZES = (10_000, 30_000, 60_000, 120_000), (3_000, 6_000, 12_000)
NEIGHBORS = 32


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="12,000 items at most instead of 120,000")
    parser.add_argument("--sizes", type=int, nargs="+", help="other numbers of items")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    rows = []
    for n in options.sizes or (QUICK_SIZES if options.quick else SIZES):
        for name, prepare in WORK.items():
            cost = cost_in_child(prepare, n)
            rows.append({"work": name, "n": n, "seconds": cost.seconds, "mb": cost.mb})
            print(f"{name}, N = {n:,}: {cost.seconds:.2f} s, {_mb(cost.mb)} MB", flush=True)
            save(rows, options.out)


# ---- what is measured --------------------------------------------------------------------------------------------


def prepare_neighbors(n: int) -> Callable:
    from entourage.neighbors import search

    items = _items(n)
    return lambda: search(items, k=NEIGHBORS)


def prepare_features(n: int) -> Callable:
    from entourage.neighbors import search
    from entourage.refiner.relations import relation_features

    found = search(_items(n), k=NEIGHBORS)
    return lambda: relation_features(found)


def prepare_refine(n: int) -> Callable:
    from entourage import ContextRefiner

    vectors, _ = clustered_items(n)
    return lambda: ContextRefiner().fit_transform(vectors)


def prepare_metrics(n: int) -> Callable:
    from entourage.evaluation import evaluate_embeddings

    items = _items(n)
    return lambda: evaluate_embeddings(items, nmi=False)


WORK = {
    f"neighbours (k = {NEIGHBORS})": prepare_neighbors,
    f"relation features (k = {NEIGHBORS})": prepare_features,
    "refine (universal, search included)": prepare_refine,
    "metrics (search included)": prepare_metrics,
}


def _items(n: int) -> Embeddings:
    vectors, labels = clustered_items(n)
    return Embeddings.from_vectors(vectors, labels=labels)


# ---- what is written ---------------------------------------------------------------------------------------------


def save(rows: list[dict], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scaling.json").write_text(json.dumps(rows, indent=1) + "\n")
    (folder / "scaling.md").write_text(table(rows))
    draw(rows).savefig(folder / "scaling.png", dpi=150)
    if folder.resolve() == RESULTS:
        fill(PAGE, "speed scaling", table(rows))


def table(rows: list[dict]) -> str:
    """Seconds and MB of each kind of work at each size."""
    sizes = sorted({row["n"] for row in rows})
    lines = [
        f"| s / MB, d = {DIMENSIONS} | {' | '.join(f'N = {n:,}' for n in sizes)} |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for name in dict.fromkeys(row["work"] for row in rows):
        cells = {row["n"]: f"{row['seconds']:.2f} / {_mb(row['mb'])}" for row in rows if row["work"] == name}
        lines.append(f"| {name} | {' | '.join(cells.get(n, '') for n in sizes)} |")
    return "\n".join(lines) + "\n"


def draw(rows: list[dict]):
    """Time and memory against N, both axes logarithmic, with the slopes of N and N² for the eye."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_growth(left, "Time, s", [(row["work"], row["n"], max(row["seconds"], 1e-3)) for row in rows])
    _draw_growth(right, "Peak memory, MB", [(row["work"], row["n"], max(row["mb"] or 0, 1)) for row in rows])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_growth(axes, title: str, points: list[tuple[str, int, float]]) -> None:
    sizes = sorted({n for _, n, _ in points})
    for name, marker in zip(dict.fromkeys(name for name, _, _ in points), "os^D", strict=False):
        line = [(n, value) for other, n, value in points if other == name]
        axes.plot(*zip(*line, strict=True), marker=marker, linewidth=2, label=name)
    _slopes(axes, sizes, max(value for _, n, value in points if n == sizes[0]))
    axes.set(xscale="log", yscale="log", xlabel="items N")
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xticks(sizes, [f"{n / 1000:g}K" for n in sizes])
    axes.minorticks_off()
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)


def _slopes(axes, sizes: list[int], height: float) -> None:
    for power, style, name in ((1, ":", "growth with N"), (2, "--", "growth with N²")):
        line = [1.6 * height * (n / sizes[0]) ** power for n in sizes]
        axes.plot(sizes, line, style, color="0.6", linewidth=1.2, zorder=0, label=name)


def _mb(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}"


if __name__ == "__main__":
    main()
