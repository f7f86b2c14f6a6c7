"""A refiner fitted and written as a model folder; an interrupted fit of the published recipe can be resumed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entourage.errors import FileError, InputError
from entourage.runs.layout import checkpoint_of
from entourage.runtime.config import check_known
from entourage.runtime.progress import ShowProgress, shows_progress
from entourage.stores import StrPath, check_file, check_folder, check_kept, new_folder
from entourage.stores.journal import standing
from entourage.values import Embeddings

if TYPE_CHECKING:
    from entourage.refiner import ContextRefiner, PaperRefiner

__all__ = ["build_refiner", "check_model_place", "checkpoint_for", "fit_to_folder", "metrics_to_protect"]


def build_refiner(
    recipe: str, *, neighbors: int | None = None, blocks: int | None = None, seed: int = 0, **of_the_paper: object
) -> "ContextRefiner | PaperRefiner":
    """Build an unfitted refiner from options of the command line; an option that is None keeps its default.

    Parameters
    ----------
    recipe : {"relational", "paper"}
        The kind of refiner.
    neighbors : int, optional
        Number of neighbours each item attends to.
    blocks : int, optional
        Number of steps, or of blocks for the paper's recipe.
    seed : int
        Seed of everything drawn at random.
    **of_the_paper
        Other settings of the paper's recipe, by name.

    Returns
    -------
    ContextRefiner or PaperRefiner
        The unfitted refiner.
    """
    from entourage.refiner.recipes import RECIPES

    check_known(recipe, RECIPES, "--recipe")
    given: dict[str, Any] = {name: value for name, value in of_the_paper.items() if value is not None}
    if given and recipe != "paper":
        name, value = next(iter(given.items()))
        raise InputError(
            f"--{name.replace('_', '-')} is {value} but only --recipe paper uses it; leave it out or change the recipe"
        )
    counts = {"n_neighbors": neighbors, "n_blocks" if recipe == "paper" else "n_steps": blocks}
    given |= {name: value for name, value in counts.items() if value is not None}
    return RECIPES[recipe](**given, random_state=seed)


def metrics_to_protect(protect: str | None, recipe: str) -> tuple[str, ...]:
    """Read `--protect recall@10,mrr`, which only the relational recipe knows; empty where it was not given."""
    if protect is None:
        return ()
    if recipe != "relational":
        raise InputError(
            f"--protect is {protect} but only --recipe relational uses it; leave it out or change the recipe"
        )
    from entourage.refiner.settings import check_protected

    return check_protected([name.strip() for name in protect.split(",")], "--protect")


def checkpoint_for(out: Path, recipe: str) -> Path | None:
    """Return the checkpoint of a fit that will be written to a model folder; None for a recipe without checkpoints."""
    return checkpoint_of(out) if recipe == "paper" else None


def check_model_place(
    out: Path, *, recipe: str, resume: bool, overwrite: bool, inputs: Sequence[StrPath | None] = ()
) -> None:
    """Refuse an output that exists, an unexpected checkpoint, and a missing checkpoint to resume from.

    Parameters
    ----------
    out : Path
        The model folder to be written.
    recipe : {"relational", "paper"}
        The kind of refiner; only "paper" keeps a checkpoint.
    resume, overwrite : bool
        As in `fit_to_folder`.
    inputs : sequence of paths
        Files that are read, which no output may replace.
    """
    check_kept((out, checkpoint_for(out, recipe)), inputs)
    check_folder(out, overwrite=overwrite)
    checkpoint = checkpoint_for(out, recipe)
    if checkpoint is None:
        if resume:
            raise InputError(f"--resume continues the paper's recipe, but --recipe is {recipe}; leave --resume out")
        return
    from entourage.training.checkpoint import is_checkpoint

    check_file(checkpoint, overwrite=True, ours=is_checkpoint)
    if checkpoint.exists() and not (resume or overwrite):
        raise FileError(
            f"{checkpoint} holds an interrupted run; add --resume to continue it, or --overwrite to start again"
        )
    if resume and not checkpoint.exists():
        raise FileError(f"there is no {checkpoint} to resume from; run without --resume to start")


@shows_progress
def fit_to_folder(
    refiner: "ContextRefiner | PaperRefiner",
    items: Embeddings,
    out: Path,
    *,
    protect: tuple[str, ...] = (),
    device: str = "auto",
    resume: bool = False,
    overwrite: bool = False,
    progress: ShowProgress = None,
) -> dict:
    """Fit a refiner to labelled items and write it to a model folder.

    The paper's recipe keeps a checkpoint beside the folder until the folder is written. A fit that fails because of its
    input leaves no checkpoint of its own.

    Parameters
    ----------
    refiner : ContextRefiner or PaperRefiner
        The unfitted refiner.
    items : Embeddings
        N labelled items.
    out : Path
        The model folder.
    protect : tuple of str
        For a ContextRefiner: metrics that must not fall in the rehearsals.
    device : str
        Where to work: auto, cpu, cuda or cuda:1.
    resume : bool
        Whether to resume from the checkpoint of an interrupted fit.
    overwrite : bool
        Whether an existing model is replaced.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    dict
        The report of the fit.
    """
    check_model_place(out, recipe=refiner.recipe, resume=resume, overwrite=overwrite)
    checkpoint = checkpoint_for(out, refiner.recipe)
    options: dict[str, Any] = {} if checkpoint is None else {"checkpoint": checkpoint, "resume": resume}
    options |= {"protect": protect} if protect else {}
    earlier = standing(checkpoint) if checkpoint else None
    with new_folder(out, overwrite=overwrite) as filling:  # from the beginning: nobody else fits it meanwhile
        try:
            refiner.fit(items, **options, device=device, progress=progress)
        except InputError:
            # A run that cannot succeed is of no use to resume, but the checkpoint of an earlier one is.
            if checkpoint and not resume and standing(checkpoint) != earlier:
                checkpoint.unlink(missing_ok=True)
            raise
        refiner.save(filling, overwrite=True)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    return refiner.report()
