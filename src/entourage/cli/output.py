"""What commands print: reports on standard output, warnings on standard error."""

import io
import json
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from entourage.runtime.warnings import collected_warnings

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "facts",
    "lenient_output",
    "print_report",
    "print_warnings",
    "printed_warnings",
    "side_by_side",
    "terminal_width",
]

_printed: set[str] = set()  # in this command


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print every warning that is issued in the block and that no command collects."""
    _printed.clear()
    with collected_warnings(lambda text: print_warnings([text])):
        yield


def lenient_output() -> None:
    """Print a file name that is not UTF-8 with escapes: it must not stop a command that has done its work."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="backslashreplace")


def print_warnings(warnings: list[str]) -> None:
    """Print warnings on standard error, each once in a command, whether it is issued or comes with a result."""
    for warning in warnings:
        if warning not in _printed:
            typer.echo(f"warning: {warning}", err=True)
            _printed.add(warning)


def facts(values: Mapping[str, Any], *, percent: bool | Collection[str] = False) -> str:
    """Lay out names and values, one line each; fractions in percent, all or those named, where asked for.

    >>> print(facts({"learning_rate": 1e-5, "blend": 0.3}))
    learning rate  1e-05
    blend          0.3
    >>> print(facts({"recall@1": 0.875, "map@r": 0.0625}, percent=True))
    recall@1   87.50 %
    map@r       6.25 %
    """
    width = max(map(len, values))
    lines = []
    for name, value in values.items():
        if isinstance(value, float):
            as_share = percent if isinstance(percent, bool) else name in percent
            value = f"{100 * value:6.2f} %" if as_share else f"{value:.4g}"
        shown = "not measured" if value is None else str(value)
        lines.append(f"{name.replace('_', ' '):{width}}  {_folded(shown, width + 2)}")
    return "\n".join(lines)


def _folded(text: str, indent: int) -> str:
    """A sentence wider than the terminal on several lines; what has no spaces, such as a path, stays whole."""
    width = terminal_width()
    if width is None or indent + len(text) <= width:
        return text
    lines = textwrap.wrap(text, max(20, width - indent), break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{indent}}".join(lines)


def terminal_width() -> int | None:
    """How many letters fit on a line of the terminal; None where output goes elsewhere."""
    to_a_terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if to_a_terminal else None


def side_by_side(before: tuple[str, dict], after: tuple[str, dict]) -> "Table":
    """Lay out two columns of scores in percent, and their difference in points."""
    from rich.table import Table

    table = Table("metric", box=None, padding=(0, 2, 0, 0))
    for name in (f"{before[0]}, %", f"{after[0]}, %", "change, points"):
        table.add_column(name, justify="right")
    for metric, value in before[1].items():
        new = after[1][metric]
        table.add_row(metric, f"{100 * value:.2f}", f"{100 * new:.2f}", f"{100 * (new - value):+.2f}")
    return table


def print_report(document: dict, as_json: bool, *tables: "Table | str") -> None:
    if as_json:
        typer.echo(json.dumps(document, indent=2))  # which is flushed, so that a closed pipe is known at once
        return
    from rich.console import Console

    console = Console()
    for number, table in enumerate(tables):
        if number:
            typer.echo()
        if isinstance(table, str):
            typer.echo(table)  # as it is: a path must not be wrapped or read as markup
        else:
            console.print(table)
