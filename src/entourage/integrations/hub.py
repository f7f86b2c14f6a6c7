"""The Hugging Face hub: refiners, encoders and runs saved with a model card, opened by name, and pushed.

Refiners have the same as methods: `ContextRefiner.from_pretrained(name)`, `save_pretrained`, `push_to_hub`.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from entourage.encoders.saving import load_encoder, save_encoder, saved_encoder
from entourage.errors import FileError, InputError
from entourage.refiner.recipes import load_refiner
from entourage.refiner.saving import SavedRefiner
from entourage.runs.layout import CONFIG, METRICS, RUN
from entourage.runs.open import open_run
from entourage.runs.refinement_run import RefinementRun
from entourage.runs.training_run import TrainingRun
from entourage.stores import StrPath, new_folder
from entourage.stores.hub import fetched, pushed
from entourage.stores.model_card import LIMITS_OF_REFINERS, ModelCard, write_card

__all__ = ["from_pretrained", "model_card", "push_to_hub", "save_pretrained"]

_LIMITS_OF_ENCODERS = (
    "Its scores are of classes like those it was trained on; on others it may do worse.",
    "Pictures are prepared as its config.json says; vectors of pictures prepared otherwise are others.",
)


def save_pretrained(model: Any, folder: StrPath, *, overwrite: bool = False) -> None:
    """Write a refiner, an encoder or a run into a new folder, with a model card.

    Parameters
    ----------
    model : refiner, encoder or run
        A fitted refiner, one of entourage.encoders, or what `entourage.runs.open.open_run` returns.
    folder : path
    overwrite : bool
        Whether an existing one may be replaced.
    """
    if isinstance(model, SavedRefiner):
        model.save_pretrained(folder, overwrite=overwrite)
        return
    card = model_card(model)  # refuses what is none of them
    with new_folder(folder, overwrite=overwrite) as filling:
        if isinstance(model, RefinementRun | TrainingRun):
            shutil.copytree(model.folder, filling, dirs_exist_ok=True)
        else:
            save_encoder(filling, model, overwrite=True)
        write_card(filling, card)


def from_pretrained(name: StrPath, **options: Any) -> Any:
    """Open a refiner, an encoder or a run, from a folder or from the Hugging Face hub.

    Parameters
    ----------
    name : str or path
        A folder, or owner/name of a repository on the hub.
    **options
        Of the hub: revision, token, cache_dir, local_files_only.

    Returns
    -------
    ContextRefiner, PaperRefiner, Encoder, RefinementRun or TrainingRun
        Whichever it is.
    """
    folder = fetched(name, **options)
    if (folder / RUN).is_file() or ((folder / METRICS).is_file() and (folder / CONFIG).is_file()):
        return open_run(folder)
    if saved_encoder(folder) == folder:
        return load_encoder(folder)
    if not (folder / CONFIG).is_file():
        raise FileError(f"{folder} has no {CONFIG} and no {RUN}; wanted a refiner, an encoder or a run of entourage")
    return load_refiner(folder)


def push_to_hub(model: Any, repo_id: str, **options: Any) -> str:
    """Write a refiner, an encoder or a run to a repository of the Hugging Face hub, which is created if need be.

    **All of a run is sent: its vectors, labels and texts too.**

    Parameters
    ----------
    model
        As in `save_pretrained`.
    repo_id : str
        owner/name.
    **options
        Of the hub: private, token, revision, commit_message.

    Returns
    -------
    str
        The address of the commit.
    """
    return pushed(partial(save_pretrained, model), repo_id, **options)


def model_card(model: Any) -> ModelCard:
    """What there is to say of a refiner, an encoder or a run.

    Parameters
    ----------
    model
        As in `save_pretrained`.

    Returns
    -------
    ModelCard
    """
    if isinstance(model, SavedRefiner):
        return model.model_card()
    if isinstance(model, RefinementRun):
        return _of_refinement(model)
    if isinstance(model, TrainingRun):
        return _of_training(model)
    if not hasattr(model, "state_dict") or not hasattr(model, "dim"):
        raise InputError(f"the model is a {type(model).__name__}; wanted a refiner, an encoder or a run of entourage")
    return ModelCard(
        title=type(model).__name__,
        summary=f"An encoder: pictures or vectors in, unit vectors of {model.dim} numbers out.",
        usage=_usage("encoder"),
        data={"dimensions of a vector": model.dim},
        protocol=dict(getattr(model, "options", {})),
        scores={},
        limits=_LIMITS_OF_ENCODERS,
    )


def _of_refinement(run: RefinementRun) -> ModelCard:
    scores = {"before": run.document.get("metrics_before") or {}, "after": run.document.get("metrics") or {}}
    gallery = {} if run.context is None else {"gallery items": len(run.context)}
    return ModelCard(
        title="A refinement",
        summary="Vectors before and after they were refined by their neighbours, with all scores.",
        usage=_usage("run"),
        data={"items": len(run.items), **gallery, "dimensions of a vector": run.items.dim},
        protocol=run.document["protocol"],
        scores=scores,
        limits=(*LIMITS_OF_REFINERS[1:-1], *run.document.get("warnings", ())),
    )


def _of_training(run: TrainingRun) -> ModelCard:
    return ModelCard(
        title=f"An encoder trained by {run.system}",
        summary="An encoder, with its settings, its log and its scores on classes that it has not seen.",
        usage=_usage("run"),
        data={"source": Path(run.config["data"]["source"]).name, **run.config["data"]["options"]},
        protocol=run.document["protocol"],
        scores={"": run.document["metrics"]},
        limits=(*_LIMITS_OF_ENCODERS, *run.document.get("warnings", ())),
    )


def _usage(name: str) -> str:
    return f'from entourage.integrations.hub import from_pretrained\n\n{name} = from_pretrained("REPOSITORY")'
