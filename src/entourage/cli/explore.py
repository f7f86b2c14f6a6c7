"""`entourage explore`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import DataOptions, IdColumn, LabelColumn, Overwrite, PathColumn, Root, data_options_of
from entourage.cli.output import print_warnings
from entourage.runtime.warnings import collected_warnings

__all__ = ["explore"]


def explore(
    run: Annotated[
        Path | None,
        typer.Argument(help="A run folder written by `refine --run`, `train` or `demo`.", metavar="RUN"),
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="Instead of RUN: vectors to refine now, .npy, .npz or .parquet.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="With --vectors: a folder written by `entourage fit`. Default: the universal refiner."),
    ] = None,
    context: Annotated[Path | None, typer.Option(help="With --vectors: raw vectors of the gallery to search.")] = None,
    labels: Annotated[str | None, typer.Option(help="With --vectors: their labels.")] = None,
    context_labels: Annotated[str | None, typer.Option(help="With --context: the labels of the gallery.")] = None,
    pictures: Annotated[
        str | None, typer.Option(help="With --vectors: their images: a dataset, a folder or a .csv.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="With --pictures: their split.")] = None,
    texts: Annotated[Path | None, typer.Option(help="With --vectors: their texts: .json, .txt or .csv.")] = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    path_column: PathColumn = None,
    root: Root = None,
    data_options: DataOptions = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="What makes vectors of pictures or texts dropped on the page: a run of `entourage train`, a model, or "
            "MODULE:FUNCTION of your own."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to bind to. Others than this machine's own ask for a token, which is printed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="<int>", help="Port; 0 for any free one.")] = 8318,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page in a browser.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write the page to this .html instead, which opens from disk.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """See in a browser how a refinement moved its items.

    The page shows all items on a map, before and after, the neighbours of each, the scores of all, and labels that may
    be wrong. It stays on this machine.
    """
    from entourage.runtime.extras import require

    for library in ("fastapi", "uvicorn"):
        require(library, "`entourage explore`", extra="explorer")
    from entourage.explorer import ExploreRequest
    from entourage.explorer import explore as explore_run
    from entourage.runtime.progress import terminal_progress

    options = {
        "model": model,
        "context": context,
        "labels": labels,
        "context_labels": context_labels,
        "pictures": pictures,
        "split": split,
        "texts": texts,
        "label_column": label_column,
        "id_column": id_column,
        "path_column": path_column,
        "root": root,
        "data_options": data_options_of(data_options),
    }
    request = ExploreRequest(run, vectors, options, encoder, host, port, not no_browser, export, overwrite)
    with collected_warnings(lambda text: print_warnings([text])), terminal_progress() as progress:
        explore_run(request, typer.echo, progress=progress)
