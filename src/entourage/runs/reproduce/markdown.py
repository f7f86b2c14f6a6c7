"""A table as Markdown: the paper's figures, ours and the difference beside each other.

At small scale the data are others than the paper's, so that a difference would say nothing: what stands beside is how
much each row gains over the first, in the paper and here.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from entourage.runs.reproduce.results import Results, mean_and_spread
from entourage.runs.reproduce.scale import Scale, data_name
from entourage.runs.reproduce.tables import Row, Table, printed_value

__all__ = ["aligned", "measured_text", "metric_title", "printed_text", "table_text"]

_AS_IT_IS = {"correlation": ".4f", "median gradient": ".2f", "found by one alone": ".0f"}  # no percentages
_TITLES = {"r-precision": "RP", "map@r": "MAP@R", "map@1000": "mAP@1000", "nmi": "NMI", "map": "mAP"}
_DRAWN_AS_SERIES = ("learners", "steps")
_MOST_COLUMNS = 5  # metrics side by side; with more of them they become the lines
_MINUS = "\N{MINUS SIGN}"


class _Value(NamedTuple):
    printed: float | None
    mean: float | None
    spread: float | None


def table_text(table: Table, results: Results, scale: Scale, datasets: Iterable[str]) -> str:
    """All that is known of a table: a Markdown table for each dataset, and one for each series.

    Parameters
    ----------
    table : Table
        The table.
    results : Results
        What was measured of it.
    scale : Scale
        At what scale.
    datasets : iterable of str
        The datasets that are shown.

    Returns
    -------
    str
        Markdown without headings of its own.
    """
    parts = []
    for dataset in datasets:
        parts += _grid(table, results, scale, dataset) or [_of_dataset(table, results, scale, dataset)]
        parts += _series(table, results, dataset) if table.draw in _DRAWN_AS_SERIES else []
    return "\n".join(part for part in parts if part)


def printed_text(table: Table) -> str:
    """What the paper prints: every row with all its datasets; empty for a figure without numbers."""
    columns = [(dataset, metric) for dataset, metrics in table.metrics.items() for metric in metrics]
    rows = [row for row in table.rows if row.printed]
    if not rows:
        return ""

    def cell(row: Row, dataset: str, metric: str) -> str:
        value = row.printed.get(dataset, {}).get(metric)
        return _shown(None if value is None else printed_value(value), metric) or "-"

    if len(columns) > 2 * len(rows):
        lines = [["", *(row.name for row in rows)]]
        lines += [
            [f"{name} {metric_title(metric)}", *(cell(row, name, metric) for row in rows)] for name, metric in columns
        ]
        return aligned(lines)
    head = ["", *(f"{dataset} {metric_title(metric)}" for dataset, metric in columns)]
    return aligned([head, *([row.name, *(cell(row, *column) for column in columns)] for row in rows)])


def measured_text(table: Table, results: Results, scale: Scale) -> str:
    """What was measured of it at small scale: every row with all datasets; empty where nothing was."""
    metrics = scale.metrics(table, table.datasets[0])
    rows = [row for row in table.made if any(results.values(dataset, row.name) for dataset in results.datasets)]
    if not rows or not metrics:
        return ""
    columns = [(dataset, metric) for dataset in results.datasets for metric in metrics]

    def cell(row: Row, dataset: str, metric: str) -> str:
        return _measured(_value(row, metric, table, results, scale, dataset), metric)

    if len(metrics) > _MOST_COLUMNS:
        return "\n".join(
            aligned(
                [
                    [name, *map(_name, rows)],
                    *([metric_title(m), *(cell(row, name, m) for row in rows)] for m in metrics),
                ]
            )
            for name in results.datasets
        )
    head = [" x ".join(table.axes) if len(table.axes) == 2 else "", *(f"{d} {metric_title(m)}" for d, m in columns)]
    return aligned([head, *([_name(row), *(cell(row, *column) for column in columns)] for row in rows)])


def metric_title(name: str) -> str:
    """A metric as papers call it.

    >>> metric_title("recall@10"), metric_title("train recall@1"), metric_title("nmi")
    ('R@10', 'R@1 of training classes', 'NMI')
    """
    plain = name.removeprefix("train ")
    title = _TITLES.get(plain, plain.replace("recall@", "R@"))
    return title if plain == name else f"{title} of training classes"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells as a Markdown table whose columns are as wide as their widest cell, so that it reads in a terminal too."""
    widths = [max(3, *(len(cell) for cell in column)) for column in zip(*lines, strict=True)]
    rows = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = "-|-".join("-" * width for width in widths)
    return "\n".join(f"| {row} |" for row in (rows[0], rule, *rows[1:])).replace(f"| {rule} |", f"|-{rule}-|") + "\n"


# ---- a dataset ---------------------------------------------------------------------------------------------------


def _of_dataset(table: Table, results: Results, scale: Scale, dataset: str) -> str:
    metrics = scale.metrics(table, dataset)
    if not metrics:
        return ""
    rows = [row for row in table.rows if not scale.is_small or row.recipe is not None]
    first = next((row for row in rows if row.recipe is not None), None)
    values = {
        (row.name, metric): _value(row, metric, table, results, scale, dataset) for row in rows for metric in metrics
    }
    beside = scale.printed_for(table, dataset)
    heads = [
        f"paper ({beside})",
        f"ours ({data_name(dataset)})",
        "gain: paper / ours" if scale.is_small else "difference",
    ]

    def cells(row: Row, metric: str) -> list[str]:
        value, begin = values[row.name, metric], None if first is None else values[first.name, metric]
        last = _gain(value, begin, metric) if scale.is_small else _difference(value, metric)
        return [
            _shown(value.printed, metric),
            _measured(value, metric),
            "" if row is first and scale.is_small else last,
        ]

    if len(metrics) > _MOST_COLUMNS:
        head = ["", *(f"{row.name}: {title}" for row in rows for title in heads)]
        body = [[metric_title(metric), *(cell for row in rows for cell in cells(row, metric))] for metric in metrics]
    else:
        head = ["", *(f"{metric_title(metric)} {title}" for metric in metrics for title in heads)]
        body = [[_name(row), *(cell for metric in metrics for cell in cells(row, metric))] for row in rows]
    return aligned([head, *body])


def _name(row: Row) -> str:
    return f"{row.name} (not in the paper)" if row.own and not row.cell else row.name


def _value(row: Row, metric: str, table: Table, results: Results, scale: Scale, dataset: str) -> _Value:
    beside = row.printed.get(scale.printed_for(table, dataset), {}).get(metric)
    by_seed = [values[metric] for values in results.values(dataset, row.name).values() if metric in values]
    factor = 1 if metric in _AS_IT_IS else 100
    mean, spread = mean_and_spread([factor * value for value in by_seed]) if by_seed else (None, None)
    return _Value(None if beside is None else printed_value(beside), mean, spread)


def _form(metric: str) -> str:
    return _AS_IT_IS.get(metric, ".1f")


def _shown(value: float | None, metric: str) -> str:
    return "" if value is None else f"{value:{_form(metric)}}"


def _measured(value: _Value, metric: str) -> str:
    spread = "" if value.spread is None else f" ± {value.spread:{_form(metric)}}"
    return _shown(value.mean, metric) + spread


def _signed(value: float, metric: str) -> str:
    return f"{value:+{_form(metric)}}".replace("-", _MINUS)


def _difference(value: _Value, metric: str) -> str:
    return "" if value.mean is None or value.printed is None else _signed(value.mean - value.printed, metric)


def _gain(value: _Value, first: _Value | None, metric: str) -> str:
    """How much a row gains over the first: in the paper, and here."""
    if first is None:
        return ""
    pairs = ((value.printed, first.printed), (value.mean, first.mean))
    gains = ["" if a is None or b is None else _signed(a - b, metric) for a, b in pairs]
    return " / ".join(gain or "-" for gain in gains) if any(gains) else ""


# ---- grids and series --------------------------------------------------------------------------------------------


def _grid(table: Table, results: Results, scale: Scale, dataset: str) -> list[str]:
    """A matrix for each metric, where the rows are the cells of two settings."""
    if len(table.axes) != 2:
        return []
    rows, columns = (list(dict.fromkeys(row.cell[side] for row in table.rows)) for side in (0, 1))
    by_cell = {row.cell: row for row in table.rows}
    parts = []
    for metric in scale.metrics(table, dataset):
        lines = [
            [f"{metric_title(metric)} ({data_name(dataset)}), {table.axes[0]} by {table.axes[1]}", *map(str, columns)]
        ]
        for one in rows:
            cells = [_value(by_cell[one, other], metric, table, results, scale, dataset) for other in columns]
            lines.append([str(one), *(_measured(value, metric) for value in cells)])
        parts.append(aligned(lines))
    return parts


def _series(table: Table, results: Results, dataset: str) -> list[str]:
    """A line for each step or number of learners, a column for each row and what was measured of it."""
    columns: dict[str, list[str]] = {}
    for row in table.made:
        found = list(results.values(dataset, row.name).values())
        for name in found[0] if found else ():
            if isinstance(found[0][name], list) and " by epoch" not in name:
                of_seeds = zip(*(values[name] for values in found), strict=False)
                summed = [_Value(None, *mean_and_spread([100 * value for value in place])) for place in of_seeds]
                columns[f"{row.name}: {metric_title(name)} ({data_name(dataset)})"] = [
                    _measured(each, "") for each in summed
                ]
    if not columns:
        return []
    start = 0 if table.measure == "steps" else 1
    longest = max(map(len, columns.values()))
    lines = [["t" if table.measure == "steps" else "m", *columns]]
    lines += [
        [str(start + place), *(column[place] if place < len(column) else "" for column in columns.values())]
        for place in range(longest)
    ]
    return [aligned(lines)]
