"""`entourage fit`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import Device, IdColumn, Json, LabelColumn, Labels, Overwrite, Seed, Vectors, check_labelled
from entourage.cli.output import facts, print_report, print_warnings
from entourage.runtime.extras import require

__all__ = ["fit"]


def fit(
    vectors: Vectors,
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    labels: Labels = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    recipe: Annotated[str, typer.Option(help="relational, or paper (the method as published).")] = "relational",
    neighbors: Annotated[
        int | None,
        typer.Option(help="Number of neighbours each item attends to. Default: chosen on training classes; paper: 8."),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option(help="Number of steps, or of blocks for paper. Default: chosen on training classes; paper: 8."),
    ] = None,
    protect: Annotated[
        str | None,
        typer.Option(
            help="Relational only: metrics that must not fall in rehearsals, such as recall@10,mrr; an unknown name "
            "lists them all. R@1 never may.",
            metavar="METRIC,...",
        ),
    ] = None,
    out_dim: Annotated[
        int | None,
        typer.Option(
            metavar="<int>", min=1, help="Paper only: dimensions of the refined vectors. Default: as the input."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Paper only: maximum number of epochs. Default: 30.")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Paper only: stop after this many epochs without a better score. Default: 5.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Paper only: learning rate of Adam. Default: 0.0001.")
    ] = None,
    device: Device = "auto",
    seed: Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Paper only: resume from the checkpoint of an interrupted run.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Learn from labels how to refine VECTORS.

    What is learned is written as a model folder, for `refine --model`.
    """
    from entourage.runs.fit import build_refiner, check_model_place, checkpoint_for, fit_to_folder, metrics_to_protect
    from entourage.runs.unfinished import resume_advice
    from entourage.runtime.devices import device_named
    from entourage.runtime.progress import terminal_progress
    from entourage.stores import read_vectors
    from entourage.stores.columns import FORMATS
    from entourage.stores.reading import existing

    require("torch", "learning from labels")
    existing(vectors, FORMATS, "vectors")  # before the output: a name that is mistyped comes first
    check_model_place(out, recipe=recipe, resume=resume, overwrite=overwrite, inputs=(vectors, labels))
    of_the_paper = {"out_dim": out_dim, "epochs": epochs, "patience": patience, "learning_rate": learning_rate}
    refiner = build_refiner(recipe, neighbors=neighbors, blocks=blocks, seed=seed, **of_the_paper)
    protected = metrics_to_protect(protect, recipe)
    device_named(device)  # refuses one that is not there before anything is read
    items = read_vectors(vectors, labels=labels, id_column=id_column, label_column=label_column)
    check_labelled(items, vectors, "--labels")
    try:
        with terminal_progress(log=not as_json, patient=True) as progress:
            report = fit_to_folder(
                refiner,
                items,
                out,
                protect=protected,
                device=device,
                resume=resume,
                overwrite=overwrite,
                progress=progress,
            )
    except KeyboardInterrupt:
        advice = resume_advice(checkpoint_for(out, recipe), "the finished epochs")
        typer.echo(f"stopped; {advice}", err=True)
        raise
    print_warnings(report["warnings"])
    tables = [facts(report["protocol"])] + ([facts(report["metrics"], percent=True)] if report["metrics"] else [])
    print_report(report | {"model": str(out)}, as_json, *tables, f"Written to {out}")
