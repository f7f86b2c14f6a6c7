"""The tables of compare_real.py: every method and claim in docs/compare.md, a few methods in the README."""

from pathlib import Path

from entourage.comparison.intervals import JUDGED_BY
from entourage.comparison.methods import METHODS
from markers import fill
from real_claims import Claim

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
PAGE, REFINER = (README.parent / "docs" / name for name in ("compare.md", "refiner.md"))
IN_README = ("raw", "k-reciprocal-20-6", "universal", "base+alpha-qe", "base+k-reciprocal", "relational")
PARTS = ("raw", "base-map", "base+alpha-qe", "base+k-reciprocal", "base+universal", "relational")
SETS_A_TABLE = 5  # more would not fit on a page
REST = "All methods are in [docs/compare.md](docs/compare.md#what-it-gains).\n"
MARKED = "\nBold: better than every other method measured, beyond the 95 % interval over classes. "
UNMARKED = "\nNothing is marked as best: these figures were taken before intervals over classes were. "


def write_tables(results: dict, checked: list[Claim]) -> None:
    """Every method into the file and docs/compare.md, with what is claimed; those of IN_README into the README."""
    (RESULTS / "compare_real.md").write_text(tables(results))
    fill(PAGE, "compare_real", tables(results))
    fill(PAGE, "compare_real_parts", by_set(results, PARTS))
    fill(PAGE, "compare_real_uses", use_tables(results))
    fill(PAGE, "compare_real_claims", claims_table(checked))
    fill(README, "compare_real", by_set(results, IN_README) + legend(results) + ranges(results))
    fill(README, "compare_real_first", first_figures(results))
    fill(REFINER, "compare_real_ranges", ranges(results))


def legend(results: dict) -> str:
    """What bold means below the table of the README, and where the rest is."""
    return (MARKED if any(result.get("best") for result in results.values()) else UNMARKED) + REST


def tables(results: dict) -> str:
    """R@1 / MAP@R of all methods, a few sets to a table; in bold what beats all others measured there for certain."""
    names = list(results)
    groups = [names[start : start + SETS_A_TABLE] for start in range(0, len(names), SETS_A_TABLE)]
    return "\n".join([*(_by_method({name: results[name] for name in group}) for group in groups), splits_of(results)])


def first_figures(results: dict) -> str:
    """What refinement does to one set, as the README begins."""
    rows = results.get("clinc150", {}).get("methods", {})
    if not {"raw", "universal", "relational"} <= rows.keys():
        return "No figures of CLINC150 have been taken.\n"
    whole, hits = (
        [f"{100 * rows[name][metric]:.1f}" for name in ("raw", "universal", "relational")]
        for metric in ("map@r", "recall@1")
    )
    return (
        f"On sentence embeddings of intents it was never trained on (CLINC150, MiniLM), MAP@R rises from {whole[0]} to "
        f"{whole[1]} without any\nlabels and to {whole[2]} with them, R@1 from {hits[0]} to {hits[1]} and {hits[2]} "
        "([all results](#what-it-gains);\n[what the metrics mean](docs/evaluation.md)).\n"
    )


def ranges(results: dict) -> str:
    """How far scores change from the raw ones, from the worst set to the best."""
    told = []
    for title, metric in (("MAP@R", "map@r"), ("R@1", "recall@1"), ("recall@10", "recall@10")):
        changes = []
        for name, words in (("universal", "without labels"), ("relational", "with them")):
            rows = [result["methods"] for result in results.values() if {"raw", name} <= result["methods"].keys()]
            values = sorted(100 * (row[name][metric] - row["raw"][metric]) for row in rows)
            if values:
                changes.append(f"{_signed(values[0])} to {_signed(values[-1])} {words}")
        told.append(f"{title} by {' and '.join(changes)}")
    return f"\nFrom raw vectors, by set, {'; '.join(told)} (points).\n"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def splits_of(results: dict) -> str:
    """Over how many class splits the scores of each set are means."""
    counts = {
        name: max(len(row.get("seeds", ())) for row in each["methods"].values()) for name, each in results.items()
    }
    sets = {count: [name for name, own in counts.items() if own == count] for count in sorted(set(counts.values()))}
    told = [f"{count} class split{'s' * (count > 1)}: {', '.join(names)}" for count, names in sets.items()]
    return f"Means over {'; '.join(told)}.\n"


def claims_table(checked: list[Claim]) -> str:
    """On how many sets each claim holds, and where it fails by how many points, the worst first."""
    lines = ["| claim | holds on | fails by |", "|---" * 3 + "|"]
    for text in dict.fromkeys(claim.text for claim in checked):
        own = [claim for claim in checked if claim.text == text]
        failed = sorted((claim for claim in own if not claim.holds), key=lambda claim: claim.margin)
        fails = ", ".join(f"{claim.name} {-claim.margin:.2f}" for claim in failed)
        lines.append(f"| {text} | {len(own) - len(failed)} of {len(own)} sets | {fails} |")
    return "\n".join(lines) + "\n"


def _by_method(results: dict) -> str:
    lines = [f"| R@1 / MAP@R | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    for method in METHODS:
        cells = [_cell(result["methods"], method, result.get("best", {})) for result in results.values()]
        if any(cells):
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def by_set(results: dict, methods: tuple[str, ...]) -> str:
    """The same of a few methods, with a line for each set."""
    lines = [f"| R@1 / MAP@R | {' | '.join(methods)} |", "|---" * (len(methods) + 1) + "|"]
    for name, result in results.items():
        cells = [_cell(result["methods"], method, result.get("best", {})) for method in methods]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def use_tables(results: dict) -> str:
    """A table for each other protocol and gallery: R@1 / MAP@R / recall@10, or R@1 / AUROC / FPR at 95 % TPR."""
    tasks = dict.fromkeys(task for result in results.values() for task in result.get("further", {}))
    if not tasks:
        return "These have not been measured on real sets yet.\n"
    tables = []
    for task in tasks:
        sets = {name: result["further"][task] for name, result in results.items() if task in result.get("further", {})}
        metrics = ("recall@1", "auroc", "fpr@95tpr") if task == "open" else ("recall@1", "map@r", "recall@10")
        titles = {"recall@1": "R@1", "map@r": "MAP@R", "auroc": "AUROC", "fpr@95tpr": "FPR"}
        shown = " / ".join(titles.get(metric, metric) for metric in metrics)
        lines = [f"| {task}: {shown} | {' | '.join(sets)} |", "|---" * (len(sets) + 1) + "|"]
        for name in METHODS:
            cells = [_scores(rows.get(name), metrics) for rows in sets.values()]
            if any(cells):
                lines.append(f"| {name} | {' | '.join(cells)} |")
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables)


def _scores(row: dict | None, metrics: tuple[str, ...]) -> str:
    return "" if row is None else " / ".join(f"{100 * row[metric]:.1f}" for metric in metrics)


def _cell(rows: dict, name: str, best: dict) -> str:
    row = rows.get(name, {})
    if "map@r" not in row:
        return ""
    marks = []
    for metric in JUDGED_BY:
        value = f"{100 * row[metric]:.1f}"
        marks.append(f"**{value}**" if best.get(metric) == {"method": name, "tied_with": []} else value)
    runs = len(row["seeds"])
    most = max(len(other["seeds"]) for other in rows.values() if "seeds" in other)
    return " / ".join(marks) + (f" ({runs} {_counted(row)}{'s' * (runs > 1)})" if runs < most else "")


def _counted(row: dict) -> str:
    """What the runs of a row differ in: class splits, or seeds alone."""
    return "split" if any("split" in seed for seed in row["seeds"]) else "seed"
