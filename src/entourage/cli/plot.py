"""`entourage plot`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import Overwrite, Seed
from entourage.cli.output import print_warnings
from entourage.runtime.warnings import collected_warnings

__all__ = ["plot"]


def plot(
    kind: Annotated[
        str,
        typer.Argument(
            help="Kind of figure: drift, query, steps, sheet, training, ...; an unknown name lists those of RUN.",
            metavar="KIND",
        ),
    ],
    run: Annotated[
        Path, typer.Argument(help="A run folder written by `train`, `refine --run` or `demo`.", metavar="RUN")
    ],
    out: Annotated[Path, typer.Option(help="File for the figure: .png, .pdf or .svg; .mp4 or .gif for an animation.")],
    query: Annotated[str | None, typer.Option(help="The id of the query to show. Default: one that changed.")] = None,
    points: Annotated[
        int | None,
        typer.Option(
            metavar="<int>", min=2, help="Draw at most this many items. Default: as many as can be told apart."
        ),
    ] = None,
    slices: Annotated[
        int | None, typer.Option(metavar="<int>", min=2, help="Number of slices to cut the embedding of the run into.")
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Draw a figure of a run."""
    from entourage.runs.figures import FigureOptions, write_figure
    from entourage.runs.open import open_run
    from entourage.runtime.progress import terminal_progress

    options = FigureOptions(query, points, seed, slices)
    with collected_warnings(lambda text: print_warnings([text])), terminal_progress(patient=True) as progress:
        write_figure(kind, open_run(run, progress=progress), out, options, overwrite=overwrite)
    typer.echo(f"Written to {out}")
