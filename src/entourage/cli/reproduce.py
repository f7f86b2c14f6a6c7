"""`entourage reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import DataOptions, Json, Root, data_options_of
from entourage.cli.output import print_warnings
from entourage.runtime.extras import require
from entourage.runtime.warnings import collected_warnings

__all__ = ["reproduce"]


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="Tables and figures by name, or all. Without one they are listed.", metavar="TABLE"),
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="On a small set with small encoders, trained from scratch.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="As --small, with fewer classes, epochs and cells: minutes for each.")
    ] = False,
    data: Annotated[
        str | None,
        typer.Option(
            help="With --small: the data, as `entourage train` takes them (default: glyphs). Else: one of the papers' "
            "datasets alone.",
            metavar="IMAGES",
        ),
    ] = None,
    root: Root = None,
    data_options: DataOptions = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:1.")] = None,
    seeds: Annotated[int | None, typer.Option(metavar="<int>", min=1, help="Number of seeds, from 0 on.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of all trainings as name=value, or of refiners as refiner.name=value; may be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for tables, figures and all that they are made of, by scale.")
    ] = Path("runs/reproduce"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Measure rows anew that are there.")] = False,
    as_json: Json = False,
) -> None:
    """Make tables and figures of the papers, row by row.

    Each is written as OUT/SCALE/TABLE.md and .json, figures as .png. A row that is there is kept, and an interrupted
    one resumed: give the same command again.
    """
    from entourage.runs.reproduce.listing import list_tables, listed
    from entourage.runs.reproduce.tables import table_named
    from entourage.runs.reproduce.tables import tables as known

    if not tables:
        typer.echo(listed() if as_json else list_tables())
        return
    scale_name = "quick" if quick else "small" if small else "full"
    names = list(known()) if tables == ["all"] else [table_named(name).id for name in tables]
    require("torch", "reproducing a table")

    from entourage.runs.reproduce.driver import Request
    from entourage.runs.reproduce.driver import reproduce as make
    from entourage.runs.reproduce.scale import Scale
    from entourage.runtime.config import from_pairs
    from entourage.runtime.progress import terminal_progress

    chosen = from_pairs(settings or []) | ({} if device is None else {"device": device})
    scale = Scale(scale_name, data, root, data_options_of(data_options), chosen, seeds)
    documents = []
    for name in names:
        request = Request(name, out / scale_name, scale, overwrite)
        try:
            with (
                collected_warnings(lambda text: print_warnings([text])),
                terminal_progress(log=not as_json) as progress,
            ):
                made = make(request, progress=progress)
        except KeyboardInterrupt:
            typer.echo(f"stopped; the same command goes on with what {out / scale_name} holds", err=True)
            raise
        documents.append(made.document())
        print_warnings([f"{dataset} is left out: {reason}" for dataset, reason in made.missing.items()])
        if not as_json:
            typer.echo(made.report(out / scale_name))
    if as_json:
        import json

        typer.echo(json.dumps(documents[0] if len(documents) == 1 else documents, indent=2))
