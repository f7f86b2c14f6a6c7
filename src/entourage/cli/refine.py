"""`entourage refine`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.kept_run import KeptRun
from entourage.cli.options import DataOptions, Json, Overwrite, Root, Vectors, is_same
from entourage.cli.output import facts, print_report, print_warnings, side_by_side
from entourage.errors import FileError, InputError
from entourage.runtime.extras import require
from entourage.runtime.warnings import collected_warnings

__all__ = ["refine"]

_AMONG_THEMSELVES = "whose network refines vectors among themselves; put queries and gallery into one file"
_REFUSED_BY_RUNS = {
    "--context": _AMONG_THEMSELVES,
    "--context-out": _AMONG_THEMSELVES,
    "--steps": "whose network takes the steps it was trained with; leave it out",
}
_WANTED = "wanted a folder written by `entourage fit`, or a run of `entourage train --system intra-batch`"


def refine(
    vectors: Vectors,
    out: Annotated[
        Path | None, typer.Option(help="File for the refined vectors, in the format of VECTORS; not needed with --run.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A folder written by `entourage fit`, or a run of `entourage train --system intra-batch`. "
            "Default: the universal refiner, no labels needed."
        ),
    ] = None,
    context: Annotated[
        Path | None, typer.Option(help="Raw vectors of a gallery to find neighbours in. Default: VECTORS themselves.")
    ] = None,
    context_out: Annotated[
        Path | None, typer.Option(help="File for the refined gallery, to search the refined queries in.")
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
        typer.Option(help="Without --model: how many neighbours an item looks at; `doctor` suggests it. Default: 12."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many steps.")] = None,
    run: Annotated[
        Path | None, typer.Option(help="Folder to keep it all in, for `entourage plot` and `entourage report`.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="With --run: labels of VECTORS, for scores and pictures, never to refine by.")
    ] = None,
    context_labels: Annotated[str | None, typer.Option(help="With --run: labels of the gallery.")] = None,
    pictures: Annotated[
        str | None, typer.Option(help="With --run: the images VECTORS were made of: a dataset, a folder or a .csv.")
    ] = None,
    split: Annotated[
        str, typer.Option(help="With --pictures: their split; of queries and a gallery `query,gallery`.")
    ] = "test",
    root: Root = None,
    data_options: DataOptions = None,
    texts: Annotated[
        Path | None, typer.Option(help="With --run: the texts VECTORS were made of: .json, .txt or .csv.")
    ] = None,
    context_texts: Annotated[Path | None, typer.Option(help="With --texts: those of the gallery.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Refine VECTORS, with a model or without.

    They are written in the same format, ids and order kept.
    """
    from entourage.neighbors import check_same_encoder
    from entourage.stores import read_vectors

    kept = KeptRun(run, labels, context_labels, pictures, split, root, data_options, texts, context_texts)
    kept.check(vectors, context, overwrite=overwrite)
    _check_outputs(vectors, context, out, context_out, run, overwrite)
    if model is not None and neighbors is not None:
        raise InputError(f"--neighbors is {neighbors} but {model} was fitted with its own; leave it out or fit again")
    items = read_vectors(vectors, labels=False)
    if model is not None and (model / "network").is_dir():
        refused = {"--context": context, "--context-out": context_out, "--steps": steps}
        groups = {"by": context_by or "reciprocal"} | ({} if context_size is None else {"size": context_size})
        return _refine_by_run(vectors, items, model, groups, out, refused, kept, overwrite, as_json)
    if model is not None:
        _check_refiner(model)
    for option, value in {"--context-by": context_by, "--context-size": context_size}.items():
        if value is not None:
            raise InputError(f"{option} is {value} without a run of the system intra-batch; leave it out")
    gallery = None if is_same(context, vectors) else read_vectors(context, labels=False)
    if gallery is not None and model is None:  # a model says itself what it wants
        check_same_encoder(items, gallery)
    known = kept.read(vectors, context if gallery is not None else None)

    from entourage.evaluation.movement import cosines
    from entourage.refiner import ContextRefiner, load_refiner
    from entourage.runtime.progress import terminal_progress
    from entourage.stores import write_like

    with terminal_progress() as progress:
        if model is None:
            refiner = ContextRefiner(neighbors).fit(items if gallery is None else gallery, progress=progress)
        else:
            refiner = load_refiner(model)
        if known is None:
            refined = refiner.transform(items, gallery, steps=steps, progress=progress).vectors
        else:
            by = "universal, no labels" if model is None else str(model)
            refinement = kept.keep(refiner, known, steps, by, overwrite=overwrite, progress=progress)
            refined = refinement.refined.vectors
        if out is not None:
            write_like(vectors, out, refined)
        if context_out is not None:
            among = items if gallery is None else gallery
            write_like(context, context_out, refiner.transform(among, steps=steps, progress=progress).vectors)
    warnings = refiner.report()["warnings"] if model is None else []
    if known is not None:
        warnings = refinement.document["warnings"]  # with those of the scores
    if gallery is not None and context_out is None and out is not None:
        warnings = [*warnings, "search the refined queries in the refined gallery only: add --context-out to refine it"]
    print_warnings(warnings)
    protocol = {
        "items": len(items),
        "model": "universal, no labels" if model is None else str(model),
        "context": "transductive: the vectors themselves" if gallery is None else f"gallery: {len(gallery)} items",
        "neighbors": f"{refiner.n_neighbors_}, exact, ties by id",
        "own_item": _own_item(items, gallery),
        "steps": refiner.n_steps_ if steps is None else steps,
    }
    metrics = dict(refiner.report()["metrics"]) if model is None else {}
    metrics |= cosines(items, refined)
    document = {"protocol": protocol, "metrics": metrics, "warnings": warnings}
    written = {"out": out, "context_out": context_out, "run": run}
    document |= {name: str(place) for name, place in written.items() if place is not None}
    _print(document, None if known is None else refinement, as_json)


def _print(document: dict, refinement, as_json: bool) -> None:
    """What was done and where it was written, with the scores before and after where they were kept."""
    tables = [facts({**document["protocol"], **document["metrics"]})]
    if refinement is not None and refinement.document["metrics"]:
        scores = {when: refinement.document[key] for when, key in (("before", "metrics_before"), ("after", "metrics"))}
        document |= {"scores": scores}
        tables.append(side_by_side(*scores.items()))
    places = [document[name] for name in ("out", "context_out", "run") if name in document]
    print_report(document, as_json, *tables, "Written to " + " and ".join(places))


def _check_outputs(vectors: Path, context: Path | None, out, context_out, run, overwrite: bool) -> None:
    """Refuse early what could not be written late."""
    from entourage.stores import check_writable_like

    if out is None and run is None:
        raise InputError("there is nothing to write to; wanted --out for the refined vectors, or --run to keep it all")
    for given in filter(None, (vectors, context)):
        for target in filter(None, (out, context_out)):
            if target.exists() and is_same(target, given):
                raise InputError(f"{target} is an input; give what is written a name of its own")
    if out is not None:
        check_writable_like(vectors, out, overwrite=overwrite)
    if context_out is not None:
        if context is None:
            raise InputError(f"--context-out is {context_out} but there is no gallery; add --context or leave it out")
        check_writable_like(context, context_out, overwrite=overwrite)
        if out is not None and context_out.absolute() == out.absolute():
            raise InputError(f"--out and --context-out are both {out}; give the refined gallery a name of its own")


def _check_refiner(model: Path) -> None:
    """Say what a folder is instead; what is wrong inside a refiner's own says its reader."""
    if not model.is_dir():
        raise FileError(f"there is no folder '{model}'; {_WANTED}")
    if model.name == "network" and (model.parent / "encoder").is_dir():
        raise InputError(f"'{model}' is a part of a run; give the run itself, '{model.parent}'")
    if (model / "encoder").is_dir():
        raise InputError(f"'{model}' is a run that keeps no network to refine by; {_WANTED}")


def _refine_by_run(
    vectors: Path, items, run: Path, groups: dict, out, refused: dict, kept: KeptRun, overwrite: bool, as_json: bool
) -> None:
    """By the message-passing network of a run, among the vectors themselves."""
    for option, value in refused.items():
        if value is not None:
            raise InputError(f"{option} is {value} with the run '{run}', {_REFUSED_BY_RUNS[option]}")
    require("torch", "refining by the network of a run")
    from entourage.evaluation.movement import cosines
    from entourage.runs.train import check_own_vectors
    from entourage.runtime.progress import terminal_progress
    from entourage.stores import write_like
    from entourage.systems.intra_batch.contexts import K1
    from entourage.systems.intra_batch.inference import contexts_for, refine_in_contexts
    from entourage.systems.intra_batch.saving import load_network

    known = kept.read(vectors, None)
    trained = load_network(run)
    with collected_warnings(lambda text: print_warnings([text])) as warnings:
        check_own_vectors(vectors, run)
    contexts = contexts_for(trained, items, **groups)
    protocol = {
        "items": len(items),
        "model": str(run),
        "context": f"transductive: groups by {groups['by']}",
        "groups": len(contexts.groups),
        "group_size": contexts.groups.shape[1],
        **({"k1": min(K1, len(items) - 1)} if groups["by"] == "reciprocal" else {}),
        "steps": len(trained.network.steps),
    }
    refinement = None
    with terminal_progress() as progress:
        refined = refine_in_contexts(trained.network, items.vectors, contexts, progress=progress)
        if known is not None:
            options = {"doubts": warnings, "overwrite": overwrite, "progress": progress}
            refinement = kept.keep_groups(refined, known, protocol, groups, **options)
            print_warnings(refinement.document["warnings"][len(warnings) :])
            warnings = refinement.document["warnings"]
        if out is not None:
            write_like(vectors, out, refined)
    document = {"protocol": protocol, "metrics": cosines(items, refined), "warnings": warnings}
    written = {"out": out, "run": kept.folder}
    document |= {name: str(place) for name, place in written.items() if place is not None}
    _print(document, refinement, as_json)


def _own_item(items, gallery) -> str:
    """How an item is kept out of its own context."""
    from entourage.neighbors import own_gallery_rows

    if gallery is None:
        return "left out of its own context"
    if not (items.named and gallery.named):
        return "cannot be recognised in the gallery: no ids in both files"
    return f"left out by id, {(own_gallery_rows(items, gallery) >= 0).sum()} times"
