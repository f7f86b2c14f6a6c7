"""`entourage refine`."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entourage.cli.options import (
    At,
    DataOptions,
    Engine,
    IdColumn,
    Json,
    LabelColumn,
    Overwrite,
    PathColumn,
    RayAddress,
    Root,
    check_engine,
    cutoffs,
    data_options_of,
)
from entourage.cli.output import facts, print_report, print_warnings, side_by_side

if TYPE_CHECKING:
    from rich.table import Table

    from entourage.runs.streamed.refine import StreamedRequest, StreamedResult

__all__ = ["refine"]


def refine(
    vectors: Annotated[
        str,
        typer.Argument(
            metavar="VECTORS",
            help="Vectors: .npy, .npz, .parquet or a folder of .parquet files, or a store: lance://FOLDER/TABLE, "
            "milvus://FILE/COLLECTION, qdrant://FOLDER/COLLECTION (or HOST:PORT for a server), faiss:FILE.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the refined vectors, in the format of VECTORS; not needed with --run. Those of a store go "
            "into the same store, as NAME_refined."
        ),
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
    k1: Annotated[
        int | None,
        typer.Option(
            "--k1",
            metavar="<int>",
            min=1,
            help="Reciprocal contexts of a run: how many nearest neighbours of an item are looked at. Default: 30.",
        ),
    ] = None,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            metavar="<int>",
            min=1,
            help="Contexts of a run by kmeans, ward, spectral or birch: number of clusters. Default: an eighth of "
            "the items.",
        ),
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
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a store or a folder: the column of vectors, of several.")
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="BY",
            help="How neighbours of a store, a folder or a .npy are found: exact, nn-descent, or an index of faiss "
            "such as HNSW16,SQ8. Default: exact up to 130,000 items, an index beyond.",
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Of a store or a large .npy: where to keep what is done, to be resumed. Default: beside the output.",
        ),
    ] = None,
    engine: Engine = None,
    ray_address: RayAddress = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            help="With --engine ray: how many partitions the vectors are sorted into; --search is then exact, or how "
            "many of those nearest to each are searched. Default: one for 65,536 vectors."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted refinement.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Refine VECTORS, with a model or without.

    They are written in the same format, with ids and order preserved. A store, and a .npy of more than 1 GB in float32,
    is refined in stages, with little memory; what is interrupted can be resumed.
    """
    from entourage.runs.streamed.refine import StreamedRequest

    in_stages = StreamedRequest(vectors, out, model, neighbors, steps, column, work, search, resume, overwrite)
    in_memory_only = {
        "--context": context,
        "--context-out": context_out,
        "--context-by": context_by,
        "--context-size": context_size,
        "--k1": k1,
        "--n-clusters": n_clusters,
        "--run": run,
        "--confidence": confidence,
        "--labels": labels,
        "--context-labels": context_labels,
        "--pictures": pictures,
        "--texts": texts,
    }
    stages = _stages(in_stages, in_memory_only, engine, {"--ray-address": ray_address, "--partitions": partitions})
    if stages is not None:
        _refine_in_stages(in_stages, stages, as_json)
        return
    from entourage.runs.refine import RefineRequest
    from entourage.runs.refine import refine as refine_file
    from entourage.runtime.progress import terminal_progress

    request = RefineRequest(
        Path(vectors),
        out=out,
        model=model,
        context=context,
        context_out=context_out,
        confidence=confidence,
        context_by=context_by,
        context_size=context_size,
        k1=k1,
        n_clusters=n_clusters,
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


def _stages(
    request: "StreamedRequest", in_memory_only: dict[str, Any], engine: str | None, of_ray: dict[str, Any]
) -> "Callable[..., StreamedResult] | None":
    """What refines in stages, in this process or on a cluster; None: nothing, it is refined in memory."""
    from entourage.runs.streamed.refine import is_streamed, refine_streamed

    check_engine(engine, of_ray)
    if engine == "ray":
        from entourage.engine.refine import check_folder_to_refine, refine_on_ray

        check_folder_to_refine(request)
        is_streamed(request, in_memory_only)  # refuses what cannot be followed
        address, partitions = of_ray.values()
        return functools.partial(refine_on_ray, address=address, partitions=partitions)
    return refine_streamed if is_streamed(request, in_memory_only) else None


def _refine_in_stages(
    request: "StreamedRequest", refine_request: "Callable[..., StreamedResult]", as_json: bool
) -> None:
    from entourage.runs.unfinished import resume_advice
    from entourage.runtime.progress import terminal_progress

    try:
        with terminal_progress(log=not as_json, patient=True) as progress:
            result = refine_request(request, progress=progress)
    except KeyboardInterrupt as stopped:
        typer.echo(f"stopped; {resume_advice(getattr(stopped, 'kept', None), 'what is done')}", err=True)
        raise
    print_warnings(list(result.warnings))
    shown = facts({**result.protocol, **result.metrics}, percent={"estimated_purity"})
    print_report(result.document(), as_json, shown, f"Written to {result.written}")
