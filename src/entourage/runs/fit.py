"""A refiner fitted and written as a model folder; an interrupted fit of the published recipe can be resumed."""

from pathlib import Path
from typing import TYPE_CHECKING

from entourage.errors import FileError, InputError
from entourage.runs.layout import checkpoint_of
from entourage.runtime.config import check_known
from entourage.runtime.progress import Progress
from entourage.stores import check_free
from entourage.values import Embeddings

if TYPE_CHECKING:
    from entourage.refiner import ContextRefiner, PaperRefiner

__all__ = ["build_refiner", "check_model_place", "checkpoint_for", "fit_to_folder"]


def build_refiner(
    recipe: str, *, neighbors: int | None = None, blocks: int | None = None, seed: int = 0, **of_the_paper: object
) -> "ContextRefiner | PaperRefiner":
    """An unfitted refiner by the names of the command line; what is None keeps its default.

    Parameters
    ----------
    recipe : "relational" or "paper".
    neighbors : how many neighbours an item looks at.
    blocks : how many steps or blocks.
    seed : decides everything random.
    of_the_paper : other settings of the paper's recipe, by their own names.
    """
    from entourage.refiner.recipes import RECIPES

    check_known(recipe, RECIPES, "--recipe")
    given = {name: value for name, value in of_the_paper.items() if value is not None}
    if given and recipe != "paper":
        name, value = next(iter(given.items()))
        raise InputError(
            f"--{name.replace('_', '-')} is {value} but only --recipe paper uses it; leave it out or change the recipe"
        )
    counts = {"n_neighbors": neighbors, "n_blocks" if recipe == "paper" else "n_steps": blocks}
    given |= {name: value for name, value in counts.items() if value is not None}
    return RECIPES[recipe](**given, random_state=seed)


def checkpoint_for(out: Path, recipe: str) -> Path | None:
    """The checkpoint of a fit that will be written to a model folder; None for a recipe that keeps none."""
    return checkpoint_of(out) if recipe == "paper" else None


def check_model_place(out: Path, *, recipe: str, resume: bool, overwrite: bool) -> None:
    """Refuse a model folder that is in the way, and a checkpoint that nobody spoke of or that is missing.

    Parameters
    ----------
    out : the model folder to be written.
    recipe : "relational", or "paper", which alone keeps a checkpoint.
    resume, overwrite : as `fit_to_folder` takes them.
    """
    if out.is_file() or not out.name:
        raise FileError(f"--out is {out}; wanted the name of a folder for the model: choose another --out")
    check_free(out, overwrite=overwrite)
    checkpoint = checkpoint_for(out, recipe)
    if checkpoint is None:
        if resume:
            raise InputError(f"--resume continues the paper's recipe, but --recipe is {recipe}; leave --resume out")
        return
    if checkpoint.exists() and not (resume or overwrite):
        raise FileError(
            f"{checkpoint} holds an interrupted run; add --resume to continue it, or --overwrite to start again"
        )
    if resume and not checkpoint.exists():
        raise FileError(f"there is no {checkpoint} to resume from; run without --resume to start")


def fit_to_folder(
    refiner: "ContextRefiner | PaperRefiner",
    items: Embeddings,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict:
    """Fit a refiner to labelled items and write it to a model folder; its report.

    The paper's recipe keeps a checkpoint beside the folder until it is written. A fit that fails by its input leaves
    none.

    Parameters
    ----------
    refiner : an unfitted one.
    items : N labelled items.
    out : the model folder.
    resume : whether to go on from the checkpoint of an interrupted fit.
    overwrite : whether an existing model is replaced.
    progress : called as progress(title, done, total).
    """
    check_model_place(out, recipe=refiner.recipe, resume=resume, overwrite=overwrite)
    checkpoint = checkpoint_for(out, refiner.recipe)
    kept = {} if checkpoint is None else {"checkpoint": checkpoint, "resume": resume}
    try:
        refiner.fit(items, **kept, progress=progress)
    except InputError:
        if checkpoint and not resume:  # a run that cannot succeed is of no use to resume
            checkpoint.unlink(missing_ok=True)
        raise
    refiner.save(out, overwrite=overwrite)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    return refiner.report()
