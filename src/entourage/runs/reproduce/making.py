"""What rows are made of, each made once and kept: trainings, the vectors of their encoders, refiners.

    OUT/work/DATASET-SYSTEM-KEY/       a run of `entourage train`; KEY names its settings and data
    OUT/work/DATASET-SYSTEM-KEY.SPLIT.npz
    OUT/work/KEY-RECIPE/               a refiner of `entourage fit`

Tables share them. What a kill interrupts is resumed: a training after its last epoch, all else from its beginning.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from entourage import data
from entourage.data.image_set import Items
from entourage.runs.fit import checkpoint_for, fit_to_folder
from entourage.runs.layout import CONFIG, ENCODER, partial_of
from entourage.runs.reproduce.scale import Scale, data_name
from entourage.runs.reproduce.tables import Recipe
from entourage.runs.scoring import embed_images
from entourage.runs.train import TrainRequest, train_run
from entourage.runs.training_run import TrainingRun, open_training
from entourage.runtime.config import to_dict
from entourage.runtime.progress import Progress
from entourage.stores import read_vectors, whole_file
from entourage.systems.settings import NOT_DECISIVE, EncoderSettings
from entourage.values import Embeddings

if TYPE_CHECKING:
    from entourage.refiner import ContextRefiner, PaperRefiner

__all__ = ["Made", "Making", "Order", "decisive"]

WORK = "work"


@dataclass(frozen=True)
class Order:
    """What a row asks for: a recipe as it is followed at this scale, on a dataset, from a seed."""

    recipe: Recipe
    dataset: str
    seed: int
    begin: Recipe | None = None
    """The recipe of the encoder that its training begins with."""


class Made(NamedTuple):
    """A training, and the name it is kept under."""

    run: TrainingRun
    key: str


class Making:
    """Makes what is asked for, unless it is there."""

    def __init__(self, out: Path, scale: Scale, progress: Progress | None = None) -> None:
        self.folder, self.scale, self.progress = out / WORK, scale, progress
        self._sets: dict[tuple[str, str], Items] = {}

    # ---- trainings -----------------------------------------------------------------------------------------------

    def trained(self, order: Order) -> Made:
        """The training of a recipe."""
        recipe = order.recipe
        depends: dict[str, str] = {}
        given: dict[str, Any] = {}
        if recipe.teacher:
            teacher = self.trained(Order(Recipe(**recipe.teacher), order.dataset, order.seed))
            depends["teacher"], given["teacher"] = teacher.key, str(teacher.run.folder)
        if order.begin is not None:
            first = self.trained(Order(order.begin, order.dataset, order.seed))
            depends["begin"], given["encoder"] = first.key, str(first.run.folder / ENCODER)
        settings = self.scale.training(recipe, order.dataset, order.seed, **given)
        known = {name: value for name, value in decisive(settings).items() if name not in given}
        options = self.scale.options()
        key = _key(order.dataset, recipe.system, {"settings": known, "data": options, "after": depends})
        folder = self.folder / key
        if not (folder / CONFIG).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            request = TrainRequest(
                order.dataset,
                folder,
                system=recipe.system,
                settings=settings,
                root=self.scale.root,
                data_options=options,
                resume=partial_of(folder).exists(),
                nmi=False,
            )
            train_run(request, progress=self.progress)
        return Made(open_training(folder, progress=self.progress), key)

    # ---- vectors -------------------------------------------------------------------------------------------------

    def items(self, dataset: str, split: str) -> Items:
        """A split of a dataset."""
        if (dataset, split) not in self._sets:
            self._sets[dataset, split] = data.load(dataset, split, self.scale.root, **self.scale.options())
        return self._sets[dataset, split]

    def test_splits(self, dataset: str) -> list[str]:
        """test, or query and gallery."""
        return [name for name in data.splits(dataset, self.scale.root, **self.scale.options()) if name != "train"]

    def vectors(self, made: Made, dataset: str, split: str) -> Embeddings:
        """A split as the encoder of a training sees it."""
        path = self.folder / f"{made.key}.{split}.npz"
        if not path.exists():
            _, items, _ = embed_images(made.run.encoder, self.items(dataset, split), progress=self.progress)
            _write(path, items)
        return read_vectors(path, exclusions=True)

    def embedded(self, order: Order, split: str) -> Embeddings:
        """A split as the encoders of an order see it, one behind the other where they are several."""
        members = [
            self.vectors(self.trained(each), order.dataset, split)
            for each in (_from_seed(order, order.seed + number) for number in range(order.recipe.networks))
        ]
        if len(members) == 1:
            return members[0]
        joined = np.hstack([items.vectors for items in members])
        first = members[0]
        known: dict[str, Any] = {"cameras": first.cameras, "sequences": first.sequences}
        return Embeddings.from_vectors(joined, first.ids, first.labels, **known)

    # ---- refiners ------------------------------------------------------------------------------------------------

    def refiner(self, order: Order) -> "ContextRefiner | PaperRefiner":
        """The refiner of a recipe, fitted to the training classes as its encoder sees them."""
        from entourage.refiner.recipes import RECIPES, load_refiner

        recipe = order.recipe.refine["by"]
        options = self.scale.refiner(order.recipe) if recipe == "paper" else {}
        made = self.trained(order)
        key = _key(made.key, recipe, options)
        folder = self.folder / key
        if not (folder / CONFIG).exists():
            fresh = RECIPES[recipe](**options, random_state=order.seed)
            seen = self.embedded(order, "train")
            checkpoint = checkpoint_for(folder, recipe)
            resume = checkpoint is not None and checkpoint.exists()
            fit_to_folder(fresh, seen, folder, resume=resume, progress=self.progress)
        return load_refiner(folder)


def decisive(settings: EncoderSettings) -> dict[str, Any]:
    """The settings that decide what comes out, by name."""
    return {name: value for name, value in to_dict(settings).items() if name not in NOT_DECISIVE}


def _from_seed(order: Order, seed: int) -> Order:
    return Order(order.recipe, order.dataset, seed, order.begin)


def _key(dataset: str, what: str, depends_on: dict[str, Any]) -> str:
    """A name that is the same for the same settings, and for no others."""
    written = json.dumps([dataset, what, depends_on], sort_keys=True, default=str)
    return f"{data_name(dataset)}-{what}-{hashlib.sha256(written.encode()).hexdigest()[:8]}"


def _write(path: Path, items: Embeddings) -> None:
    columns = {"labels": items.labels, "cameras": items.cameras, "sequences": items.sequences}
    known: dict[str, Any] = {name: column for name, column in columns.items() if column is not None}
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, vectors=items.vectors, ids=items.ids, **known)
