"""`entourage datasets`, and `entourage datasets get NAME`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entourage.cli.options import Json
from entourage.cli.output import print_report, print_warnings
from entourage.errors import InputError
from entourage.runtime.warnings import collected_warnings

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["datasets"]


def datasets(
    action: Annotated[
        str | None, typer.Argument(help="Download the dataset NAME. Without it, all are listed.", metavar="get")
    ] = None,
    name: Annotated[str | None, typer.Argument(help="Name of a dataset, as listed.", metavar="NAME")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder that holds the datasets. Default: $ENTOURAGE_DATA.")] = None,
    as_json: Json = False,
) -> None:
    """List the datasets, or download one.

    The list says which of them are present under --root.
    """
    from entourage import data
    from entourage.runtime.progress import terminal_progress

    root = root or (Path(os.environ["ENTOURAGE_DATA"]) if os.environ.get("ENTOURAGE_DATA") else None)
    if action is None:
        rows = data.describe(root)
        print_report({"root": root and str(root), "datasets": rows}, as_json, _table(rows), *_notes(rows))
        return
    if action != "get" or name is None:
        words = " ".join(word for word in (action, name) if word)
        raise InputError(f"the arguments after `datasets` are {words!r}; wanted `get` and a name, or nothing")
    try:
        with collected_warnings(lambda text: print_warnings([text])), terminal_progress(log=not as_json) as progress:
            row = data.get(name, root, progress=progress)
    except KeyboardInterrupt:
        typer.echo("stopped; run the same command again to resume the download", err=True)
        raise
    print_report({"root": root and str(root)} | row, as_json, f"{name} is under {root}: {row['note']}")


def _table(rows: list[dict]) -> "Table":
    from rich.table import Table

    table = Table("name", "images", "state", box=None, padding=(0, 2, 0, 0))
    for row in rows:
        counts = ", ".join(f"{split} {count['images']:,}" for split, count in row["splits"].items())
        table.add_row(row["name"], counts or row["title"], row["state"])
    return table


def _notes(rows: list[dict]) -> list[str]:
    """What is missing of what is there, and how to get the rest."""
    notes = [row["note"] for row in rows if row["state"] == "incomplete"]
    fetched = [row["name"] for row in rows if row["fetched"]]
    if any(row["state"] == "absent" for row in rows):
        notes.append(
            f"`entourage datasets get NAME --root DIR` fetches {', '.join(fetched)}, "
            "and says where to get the others and where to put them."
        )
    return notes
