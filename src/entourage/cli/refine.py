"""`entourage refine`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entourage.cli.options import (
    At,
    DataOptions,
    IdColumn,
    Json,
    LabelColumn,
    Overwrite,
    PathColumn,
    Root,
    Vectors,
    cutoffs,
    data_options_of,
)
from entourage.cli.output import facts, print_report, print_warnings, side_by_side

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["refine"]


def refine(
    vectors: Vectors,
    out: Annotated[
        Path | None, typer.Option(help="File for the refined vectors, in the format of VECTORS; not needed with --run.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A folder written by `entourage fit`, or a run of `entourage train --system intra-batch`. "
            "Default: the universal refiner, which needs no labels."
        ),
    ] = None,
    context: Annotated[
        Path | None, typer.Option(help="Raw vectors of a gallery to find neighbours in. Default: VECTORS themselves.")
    ] = None,
    context_out: Annotated[
        Path | None, typer.Option(help="File for the refined gallery, to search the refined queries in.")
    ] = None,
    confidence: Annotated[
        Path | None,
        typer.Option(
            help="A .csv for the confidence, 0 to 1, that each item has a match in the gallery at all: cosines of "
            "refined vectors do not tell."
        ),
    ] = None,
    context_by: Annotated[
        str | None,
        typer.Option(help="How a run finds contexts: reciprocal (default), nearest, kmeans, ward, ..."),
    ] = None,
    context_size: Annotated[
        int | None,
        typer.Option(help="Items in a group (reciprocal) or chunk (nearest) of a run, 2 or more. Default: 7."),
    ] = None,
    neighbors: Annotated[
        int | None,
        typer.Option(help="Without --model: number of neighbours each item attends to. Default: 12."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many steps.")] = None,
    run: Annotated[
        Path | None, typer.Option(help="Folder for the whole run, for `entourage plot` and `entourage report`.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="With --run: labels of VECTORS, for scores and figures, never used to refine.")
    ] = None,
    context_labels: Annotated[str | None, typer.Option(help="With --run: labels of the gallery.")] = None,
    at: At = None,
    pictures: Annotated[
        str | None,
        typer.Option(help="With --run: the images that VECTORS were computed from: a dataset, a folder or a .csv."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="With --pictures: their split; `query,gallery` for queries and a gallery. Default: the one that "
            "VECTORS match, by id or by number."
        ),
    ] = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    path_column: PathColumn = None,
    root: Root = None,
    data_options: DataOptions = None,
    texts: Annotated[
        Path | None, typer.Option(help="With --run: the texts that VECTORS were computed from: .json, .txt or .csv.")
    ] = None,
    context_texts: Annotated[Path | None, typer.Option(help="With --texts: the texts of the gallery.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Refine VECTORS, with a model or without.

    They are written in the same format, with ids and order preserved.
    """
    from entourage.runs.refine import RefineRequest
    from entourage.runs.refine import refine as refine_file
    from entourage.runtime.progress import terminal_progress

    request = RefineRequest(
        vectors,
        out=out,
        model=model,
        context=context,
        context_out=context_out,
        confidence=confidence,
        context_by=context_by,
        context_size=context_size,
        neighbors=neighbors,
        steps=steps,
        run=run,
        labels=labels,
        context_labels=context_labels,
        label_column=label_column,
        id_column=id_column,
        at=cutoffs(at),
        pictures=pictures,
        split=split,
        root=root,
        path_column=path_column,
        data_options=data_options_of(data_options),
        texts=texts,
        context_texts=context_texts,
        overwrite=overwrite,
    )
    with terminal_progress(log=not as_json, patient=True) as progress:
        result = refine_file(request, progress=progress)
    print_warnings(list(result.warnings))
    tables: list[Table | str] = [facts({**result.protocol, **result.metrics}, percent={"estimated_purity"})]
    if result.scores:
        tables.append(side_by_side(*result.scores.items()))
    written = " and ".join(map(str, result.written.values()))
    print_report(result.document(), as_json, *tables, f"Written to {written}")
