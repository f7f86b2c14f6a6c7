"""A comparison as tables for the terminal."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from entourage.evaluation.names import names_at

__all__ = [
    "beside_table",
    "certainty_table",
    "comparison_tables",
    "cutoffs_table",
    "documents_of",
    "fitted",
    "galleries_table",
    "harm_tables",
    "scores_table",
    "settings_table",
    "unfolded",
]

SHOWN = {"recall@1": "R@1", "map@r": "MAP@R", "recall@10": "R@10"}
MOST_ROWS = 20
MOST_TIED = 4


def scores_table(document: dict[str, Any]) -> Table:
    """Lay out a line per method: scores in percent, their differences to raw in points, and what they cost."""
    versus = "points vs raw (95 %)"
    scores = [part for title in SHOWN.values() for part in (f"{title}, %", versus)]
    table = _table("method", "settings", *scores, "fit s", "apply s", "MB", "parameters")
    for row in document["methods"]:
        if "skipped" in row:
            table.add_row(row["method"], "skipped")
            continue
        memory = row["peak_memory_mb"]
        table.add_row(
            row["method"],
            row["settings_are"],
            *_scores(row),
            f"{row['fit_seconds']:.1f}",
            f"{row['apply_seconds']:.1f}",
            "?" if memory is None else f"{memory:.0f}",
            f"{row['parameters']:,}",
        )
    return table


def comparison_tables(document: dict[str, Any], cutoffs: Sequence[int] = ()) -> list[Table | str]:
    """Lay out a comparison: all protocols side by side if there are several, then each in detail, and the settings."""
    every = documents_of(document)
    tables: list[Table | str] = [beside_table(every)] if len(every) > 1 else []
    by_protocol: dict[str, list[dict[str, Any]]] = {}
    for each in every:
        by_protocol.setdefault(each["protocol"]["protocol"], []).append(each)
    for protocol, documents in by_protocol.items():
        if len(every) > 1:
            tables.append(f"{protocol}: {documents[0]['protocol']['search']}")
        if protocol == "together":
            tables += [scores_table(documents[0]), certainty_table(documents[0])]
        else:
            tables.append(galleries_table(documents))
        tables += [cutoffs_table(each, cutoffs) for each in documents if cutoffs]
    return [*tables, settings_table(document)]


def documents_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the document of every protocol and gallery, the first one first."""
    return [document, *document.get("further", {}).values()]


def beside_table(documents: Sequence[dict[str, Any]]) -> Table:
    """Lay out a line per method, with a column for each protocol and gallery: scores in percent."""
    titles = []
    for document in documents:
        metrics = "AUROC / R@1" if _is_open(document) else "R@1 / MAP@R / R@10"
        titles.append(f"{_named(document['protocol'])}, {metrics}")
    table = _table("method", *titles)
    for row in documents[0]["methods"]:
        table.add_row(row["method"], *(_beside(_row_of(document, row["method"])) for document in documents))
    return table


def galleries_table(documents: Sequence[dict[str, Any]]) -> Table:
    """Lay out a line per gallery and method: scores in percent, with their differences to raw in points."""
    versus, is_open = "points vs raw (95 %)", _is_open(documents[0])
    table = Table("gallery", "method", box=None, padding=(0, 2, 0, 0))
    titles = [part for title in SHOWN.values() for part in (f"{title}, %", versus)]
    for title in [*titles, *(["AUROC, %", versus, "FPR at 95 % TPR, %"] if is_open else []), "apply s"]:
        table.add_column(title, justify="right")
    table.add_column("drawn")
    for document in documents:
        protocol = document["protocol"]
        for number, row in enumerate(document["methods"]):
            place = protocol.get("gallery", protocol["protocol"]), row["method"]
            if "skipped" in row:
                table.add_row(*place, "skipped")
                continue
            drawn = protocol["drawn"] if number == 0 else ""
            table.add_row(*place, *_scores(row), *_separation(row), f"{row['apply_seconds']:.1f}", drawn)
    return table


def certainty_table(document: dict[str, Any]) -> Table:
    """Lay out each method against its best rival, and which method is best: one that beats all others for certain."""
    titles = {"recall@1": "R@1", "map@r": "MAP@R"}
    table = Table("method", *(f"{title}, points vs its best rival (95 %)" for title in titles.values()), box=None)
    table.padding = (0, 2, 0, 0)
    for row in document["methods"]:
        if "map@r_vs_best_rival" in row:
            table.add_row(row["method"], *(_versus_rival(row[f"{name}_vs_best_rival"]) for name in titles))
    table.add_row("best", *(_best(document["best"][name]) for name in titles))
    return table


def cutoffs_table(document: dict[str, Any], cutoffs: Sequence[int]) -> Table:
    """Lay out a line per method: what was asked for at some k, in percent."""
    names = names_at(cutoffs)
    table = _table("method", *(f"{name}, %" for name in names))
    for row in document["methods"]:
        if "skipped" not in row:
            table.add_row(row["method"], *(f"{100 * row[name]:.2f}" for name in names))
    return table


def settings_table(document: dict[str, Any]) -> Table:
    """Lay out what each method chose, seed by seed where seeds differ, or why it was skipped."""
    table = Table("method", "settings", box=None, padding=(0, 2, 0, 0))
    for row in document["methods"]:
        if "skipped" in row:
            table.add_row(row["method"], f"skipped: {row['skipped']}")
        elif any(row["settings"]):
            chosen = map(_settings, row["settings"], row["extended"], row["at_end"])
            table.add_row(row["method"], "; ".join(dict.fromkeys(chosen)))
    return table


def harm_tables(harm: dict[str, Any]) -> list[Table | str]:
    """Lay out the counts of queries won and lost, the classes that got worse, and the queries that lost most."""
    counts = _table(f"{harm['method']} against {harm['against']}", "won", "lost", "unchanged")
    for title, name in (("queries by R@1", "recall@1"), ("queries by AP@R", "map@r")):
        counts.add_row(title, *(f"{harm[name][part]:,}" for part in ("won", "lost", "unchanged")))
    classes = _table("classes that got worse", "items", "MAP@R before, %", "after, %", "won", "lost")
    for entry in harm["classes"][:MOST_ROWS]:
        numbers = (str(entry[name]) for name in ("won", "lost"))
        classes.add_row(str(entry["class"]), str(entry["items"]), *_before_after(entry), *numbers)
    queries = _table("queries that lost most", "class", "AP@R before, %", "after, %")
    for entry in harm["queries"][:MOST_ROWS]:
        queries.add_row(str(entry["id"]), str(entry["class"]), *_before_after(entry))
    return [counts, *(_or_none(table, harm[name]) for table, name in ((classes, "classes"), (queries, "queries")))]


def unfolded(table: Table | str) -> str:
    """Render a table at its full width: where output is not a terminal, wide rows serve better than wrapped ones."""
    if isinstance(table, str):
        return table
    from rich.console import Console

    console = Console(width=10_000, color_system=None)
    with console.capture() as text:
        console.print(table, markup=False, highlight=False)
    return "\n".join(line.rstrip() for line in text.get().splitlines())


def fitted(table: Table | str, width: int | None) -> str:
    """Render a table for a terminal of some width: one that is wider is cut into several below each other.

    Parameters
    ----------
    table : Table or str
        Columns of text before the first one of numbers are repeated in every part.
    width : int or None
        In letters; None where output is not a terminal, and nothing is cut.

    Returns
    -------
    str
    """
    whole = unfolded(table)
    if isinstance(table, str) or width is None or max(map(len, whole.splitlines()), default=0) <= width:
        return whole
    kept = next((n for n, column in enumerate(table.columns) if n and column.justify == "right"), 1)
    wide = [2 + max(len(str(cell)) for cell in (column.header, *column.cells)) for column in table.columns]
    groups: list[list[int]] = [[]]
    for number in range(kept, len(wide)):
        if groups[-1] and sum(wide[:kept]) + sum(wide[each] for each in [*groups[-1], number]) > width:
            groups.append([])
        groups[-1].append(number)
    return "\n\n".join(unfolded(_part(table, [*range(kept), *group])) for group in groups)


def _part(table: Table, numbers: Sequence[int]) -> Table:
    """Some columns of a table, as a table."""
    part = Table(box=None, padding=(0, 2, 0, 0))
    for number in numbers:
        part.add_column(table.columns[number].header, justify=table.columns[number].justify)
    for row in zip(*(table.columns[number].cells for number in numbers), strict=True):
        part.add_row(*row)
    return part


def _or_none(table: Table, entries: list[dict[str, Any]]) -> Table | str:
    """The table with a note on what it leaves out, or a line that says there is nothing to list."""
    if not entries:
        return f"{table.columns[0].header}: none"
    if len(entries) > MOST_ROWS:
        table.add_row(f"... and {len(entries) - MOST_ROWS:,} more")
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(first, box=None, padding=(0, 2, 0, 0))
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def _scores(row: dict[str, Any]) -> list[str]:
    """Scores in percent, each with its difference to raw."""
    return [part for name in SHOWN for part in (_percent(row[name]), _versus_raw(row, name))]


def _separation(row: dict[str, Any]) -> list[str]:
    """How well known queries are told from unknown ones, where there are any."""
    if "auroc" not in row:
        return []
    return [_percent(row["auroc"]), _versus_raw(row, "auroc"), _percent(row["fpr@95tpr"])]


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _named(protocol: dict[str, Any]) -> str:
    return ", ".join([protocol["protocol"], *([protocol["gallery"]] if "gallery" in protocol else [])])


def _is_open(document: dict[str, Any]) -> bool:
    return any("auroc" in row for row in document["methods"])


def _row_of(document: dict[str, Any], method: str) -> dict[str, Any]:
    return next(row for row in document["methods"] if row["method"] == method)


def _beside(row: dict[str, Any]) -> str:
    names = ["auroc", "recall@1"] if "auroc" in row else list(SHOWN)
    return "skipped" if "skipped" in row else " / ".join(f"{100 * row[name]:.1f}" for name in names)


def _versus_raw(row: dict[str, Any], name: str) -> str:
    return "" if row["method"] == "raw" else _interval(row[f"{name}_vs_raw"])


def _versus_rival(found: dict[str, Any]) -> str:
    return f"{_interval(found)} {found['rival']}"


def _interval(found: dict[str, Any]) -> str:
    """+1.20 (+0.90 to +1.50), in points."""
    difference, low, high = (100 * found[part] for part in ("difference", "low", "high"))
    return f"{difference:+.2f} ({low:+.2f} to {high:+.2f})"


def _best(found: dict[str, Any]) -> str:
    tied = found["tied_with"]
    if not tied:
        return str(found["method"])
    others = tied if len(tied) <= MOST_TIED else [*tied[: MOST_TIED - 1], f"{len(tied) - MOST_TIED + 1} more"]
    return f"none for certain: {found['method']}, or {', '.join(others)}"


def _settings(settings: dict[str, Any], extended: Sequence[str], at_end: Sequence[str]) -> str:
    """The settings of a seed; those chosen beyond the range first tried are marked, and those at the last value."""
    remarks = dict.fromkeys(extended, " (range extended)") | dict.fromkeys(at_end, " (the last value tried)")
    written = {name: f"{value:g}" if isinstance(value, float) else value for name, value in settings.items()}
    return ", ".join(f"{name} {value}{remarks.get(name, '')}" for name, value in written.items())


def _before_after(entry: dict[str, Any]) -> tuple[str, str]:
    return f"{100 * entry['map@r_before']:.2f}", f"{100 * entry['map@r_after']:.2f}"
