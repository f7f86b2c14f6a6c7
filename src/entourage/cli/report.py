"""`entourage report`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import Overwrite, Seed
from entourage.cli.output import print_warnings
from entourage.runtime.warnings import collected_warnings

__all__ = ["report"]


def report(
    run: Annotated[
        Path, typer.Argument(help="A run folder written by `train`, `refine --run` or `demo`.", metavar="RUN")
    ],
    out: Annotated[Path | None, typer.Option(help="File for the report, .html. Default: report.html in RUN.")] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Write the report of a run as one HTML file.

    It holds the protocol, scores with intervals, figures, wins and losses, settings and versions; it opens from disk
    and needs no network.
    """
    from entourage.report import write_report
    from entourage.runtime.progress import terminal_progress

    with collected_warnings(lambda text: print_warnings([text])), terminal_progress() as progress:
        written = write_report(run, out, seed=seed, overwrite=overwrite, progress=progress)
    typer.echo(f"Written to {written}")
