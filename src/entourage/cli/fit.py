"""`entourage fit`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import Json, Labels, Overwrite, Seed, Vectors, check_labelled
from entourage.cli.output import facts, print_report, print_warnings
from entourage.errors import FileError, InputError
from entourage.runtime.extras import require

__all__ = ["fit"]


def fit(
    vectors: Vectors,
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    labels: Labels = None,
    recipe: Annotated[str, typer.Option(help="relational, or paper: as it was published.")] = "relational",
    neighbors: Annotated[
        int | None, typer.Option(help="How many neighbours each item looks at. Default: chosen; paper: 8.")
    ] = None,
    blocks: Annotated[int | None, typer.Option(help="How many steps or blocks. Default: 5; paper: 8.")] = None,
    out_dim: Annotated[int | None, typer.Option(min=1, help="Paper: another size for the refined vectors.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Paper: at most this many passes. Default: 30.")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Paper: stop after this many epochs without a better score. Default: 5.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Paper: of Adam. Default: 0.0001.")] = None,
    seed: Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Paper: go on from the checkpoint of an interrupted run.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Learn from labels to refine VECTORS; write a model folder."""
    from entourage.runtime.progress import terminal_progress
    from entourage.stores import check_free, read_vectors

    require("torch", "learning from labels")
    if out.is_file() or not out.name:
        raise FileError(f"--out is {out}; wanted the name of a folder for the model: choose another --out")
    check_free(out, overwrite=overwrite)
    if resume and recipe != "paper":
        raise InputError(f"--resume goes on with the paper's recipe, but --recipe is {recipe}; leave --resume out")
    checkpoint = _checkpoint_of(out, resume=resume, overwrite=overwrite) if recipe == "paper" else None
    paper_only = {"out_dim": out_dim, "epochs": epochs, "patience": patience, "learning_rate": learning_rate}
    settings = _settings(recipe, neighbors, blocks, paper_only)
    items = read_vectors(vectors, labels=labels)
    check_labelled(items, vectors, "--labels")

    from entourage.refiner.recipes import RECIPES

    refiner = RECIPES[recipe](**settings, random_state=seed)
    kept = {} if checkpoint is None else {"checkpoint": checkpoint, "resume": resume}
    try:
        with terminal_progress() as progress:
            refiner.fit(items, **kept, progress=progress)
    except KeyboardInterrupt:
        if checkpoint and checkpoint.exists():
            typer.echo(f"stopped; {checkpoint} keeps the finished epochs: add --resume to go on", err=True)
        raise
    except InputError:
        if checkpoint and not resume:  # a run that cannot succeed is of no use to resume
            checkpoint.unlink(missing_ok=True)
        raise
    refiner.save(out, overwrite=overwrite)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    report = refiner.report()
    print_warnings(report["warnings"])
    tables = [facts(report["protocol"])] + ([facts(report["metrics"], percent=True)] if report["metrics"] else [])
    print_report(report | {"model": str(out)}, as_json, *tables, f"Written to {out}")


def _settings(recipe: str, neighbors: int | None, blocks: int | None, paper_only: dict) -> dict:
    """What was given, by the names of the recipe's own parameters."""
    if recipe not in ("relational", "paper"):
        raise InputError(f"--recipe is {recipe!r}; wanted relational or paper")
    given = {"n_neighbors": neighbors, "n_steps" if recipe == "relational" else "n_blocks": blocks}
    for name, value in paper_only.items():
        if value is not None and recipe == "relational":
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is {value} but only --recipe paper uses it; leave it out or change the recipe")
    return {name: value for name, value in (given | paper_only).items() if value is not None}


def _checkpoint_of(out: Path, *, resume: bool, overwrite: bool) -> Path:
    checkpoint = out.with_name(out.name + ".checkpoint")
    if checkpoint.exists() and not (resume or overwrite):
        raise FileError(
            f"{checkpoint} keeps an interrupted run; add --resume to go on with it, or --overwrite to start again"
        )
    if resume and not checkpoint.exists():
        raise FileError(f"there is no {checkpoint} to resume from; run without --resume to start")
    return checkpoint
