"""`entourage rerank`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import IdColumn, Json, Overwrite
from entourage.cli.output import facts, print_report

__all__ = ["rerank"]


def rerank(
    queries: Annotated[Path, typer.Argument(help="Vectors of the queries: .npy, .npz or .parquet.", metavar="QUERIES")],
    gallery: Annotated[
        Path, typer.Option(help="Vectors of what is searched; QUERIES again for a set searched in itself.")
    ],
    out: Annotated[Path, typer.Option(help="File for the new lists: .npz, .parquet or .csv.")],
    results: Annotated[
        Path | None,
        typer.Option(
            help="What an index returned for each query: ids of gallery items, optionally with scores, as .npz, "
            ".parquet or .csv. Default: the gallery is searched exactly."
        ),
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(help="Without --results: how many to find and re-rank for each query. Default: 100.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="A folder written by `entourage fit`. Default: the universal scorer, which needs no labels."),
    ] = None,
    id_column: IdColumn = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Re-rank what an index returned, without a new index.

    The list of each of QUERIES is ordered anew by the neighbourhood graph among the query and the items of the list.
    """
    from entourage.runs.rerank import RerankRequest
    from entourage.runs.rerank import rerank as rerank_files
    from entourage.runtime.progress import terminal_progress

    request = RerankRequest(
        queries,
        gallery,
        out,
        results=results,
        candidates=candidates,
        model=model,
        id_column=id_column,
        overwrite=overwrite,
    )
    with terminal_progress(log=not as_json, patient=True) as progress:
        result = rerank_files(request, progress=progress)
    percent = {"another_first", "new_among_first_10"}
    table = facts({**result.protocol, **result.metrics}, percent=percent)
    print_report(result.document(), as_json, table, f"Written to {result.written}")
