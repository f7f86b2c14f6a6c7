"""A training run, opened again: its log, its scores, and how its encoder sees the test set.

The pictures are loaded again from where config.json says they were.
"""

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from entourage import data
from entourage.data.image_set import Items
from entourage.errors import FileError, InputError
from entourage.evaluation import evaluate_embeddings
from entourage.neighbors import search
from entourage.runs.documents import TrainingConfig, TrainingMetrics
from entourage.runs.encoders import check_ended, encoder_of, warn_of_corrupt
from entourage.runs.layout import CONFIG, ENCODER, LOG, METRICS, is_partial
from entourage.runs.media import files_of
from entourage.runs.scoring import embed_images
from entourage.runtime.config import from_toml, to_dict
from entourage.runtime.declared import COUNT
from entourage.runtime.progress import Progress
from entourage.stores import StrPath
from entourage.stores.columns import FORMATS
from entourage.stores.documents import read_document
from entourage.stores.logs import read_log
from entourage.systems import system_named
from entourage.systems.settings import EncoderSettings
from entourage.values import Embeddings, IntArray, Neighbors, brief

if TYPE_CHECKING:
    from entourage.encoders.protocol import Encoder
    from entourage.figures.appearance import Appearance

__all__ = ["TrainingRun", "open_training"]

_NEAREST = 10


class _Epoch(TypedDict):
    """A line of the log."""

    epoch: COUNT
    loss: float | None
    score: float | None


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """A training run: its settings, log and scores. N queries that can be decoded."""

    folder: Path
    config: dict
    """What config.json holds."""
    document: dict
    """What metrics.json holds."""
    log: list[dict]
    """The lines of the log, one per epoch."""
    progress: Progress | None = field(default=None, repr=False)
    """Called as progress(title, done, total) while something of the run is computed."""

    __repr__ = brief

    @property
    def system(self) -> str:
        """The system that trained the encoder."""
        return self.config["system"]

    @property
    def has_pictures(self) -> bool:
        """Whether it was trained on pictures, not on a file of vectors."""
        return Path(self.config["data"]["source"]).suffix.lower() not in FORMATS

    @cached_property
    def encoder(self) -> "Encoder":
        """The encoder of the epoch that was kept."""
        return encoder_of(self.folder)

    @cached_property
    def loaded(self) -> tuple[Items, Items | None]:
        """The queries and the gallery, image sets or Embeddings, with pictures that cannot be decoded among them.

        The gallery is None where queries are searched among themselves.
        """
        described = self.config["data"]
        source, root, options = described["source"], described["root"], described["options"]
        names = [name for name in data.splits(source, root, **options) if name != "train"]
        sets = [data.load(source, name, root, **options) for name in names]
        return sets[0], sets[1] if len(sets) > 1 else None

    def picture_files(self) -> list[Path]:
        """Return the files of the pictures of the test classes, as far as they are still there."""
        return files_of(self.loaded)

    @cached_property
    def tests(self) -> tuple[Items, Items | None]:
        """The queries and the gallery without pictures that cannot be decoded, row by row as embedded and scored."""
        (queries, gallery), (found, *others) = self.loaded, self._embedded
        return queries.take(found[0]), None if gallery is None else gallery.take(others[0][0])

    @cached_property
    def embedded(self) -> tuple[Embeddings, Embeddings | None]:
        """The queries and the gallery of `tests` as the encoder sees them."""
        (_, queries), *others = self._embedded
        return queries, others[0][1] if others else None

    @cached_property
    def neighbors(self) -> Neighbors:
        """The nearest items of each query."""
        queries, gallery = self.embedded
        available = len(gallery if gallery is not None else queries) - 1
        return search(queries, gallery, min(_NEAREST, available), progress=self.progress)

    @cached_property
    def per_query(self) -> dict[str, NDArray[np.float64]]:
        """Every metric of each query, (N,): "recall@1", "map@r" and so on."""
        return evaluate_embeddings(*self.embedded, nmi=False, progress=self.progress).per_query

    @cached_property
    def appearance(self) -> "Appearance":
        """How figures show the queries."""
        from entourage.figures.appearance import Appearance

        return Appearance.of(self.tests[0])

    @cached_property
    def gallery_appearance(self) -> "Appearance":
        """How figures show the items that are searched in."""
        from entourage.figures.appearance import Appearance

        gallery = self.tests[1]
        return self.appearance if gallery is None else Appearance.of(gallery)

    @cached_property
    def _embedded(self) -> list[tuple[IntArray, Embeddings]]:
        """Of the queries and, where there is one, the gallery: the rows that can be decoded, and their embeddings."""
        sets = [items for items in self.loaded if items is not None]
        embedded = [embed_images(self.encoder, items, progress=self.progress) for items in sets]
        corrupt = dict.fromkeys(path for *_, corrupt in embedded for path in corrupt)
        warn_of_corrupt(list(corrupt), sum(map(len, sets)))
        return [(rows, items) for rows, items, _ in embedded]


def open_training(folder: StrPath, *, progress: Progress | None = None) -> TrainingRun:
    """Open a finished training run.

    Parameters
    ----------
    folder : path
        Written by `entourage train`.
    progress : callable, optional
        Called as progress(title, done, total) while something of the run is computed.

    Returns
    -------
    TrainingRun
        The opened run.
    """
    folder = Path(folder)
    if is_partial(folder) or not folder.exists():
        check_ended(folder)
    if not (folder / ENCODER).is_dir() or not (folder / CONFIG).is_file():
        raise FileError(f"{folder} is no run; wanted a folder that `entourage train` or `entourage refine --run` wrote")
    config, document = _config(folder / CONFIG), read_document(folder / METRICS, TrainingMetrics)
    if "recall@1" not in document["metrics"]:
        raise FileError(f"{folder / METRICS}: metrics.recall@1 is missing; train it again, or copy it again")
    return TrainingRun(folder, config, document, read_log(folder / LOG, _Epoch), progress)


def _config(path: Path) -> dict:
    """What config.json holds, its settings checked as those of its system; those it lacks have their defaults."""
    config = read_document(path, TrainingConfig)
    try:
        settings = system_named(config["system"]).settings
        given = config["settings"]
        known = {each.name: given[each.name] for each in fields(settings) if each.name in given}
        trained_once = {"refit": False}  # as runs were before there was a choice
        checked: EncoderSettings = from_toml(settings, overrides=trained_once | known)
        data.check_option_names(config["data"]["options"])
    except InputError as error:
        raise FileError(f"{path}: {error}; train it again, or copy it again") from error
    return config | {"settings": to_dict(checked) | config["settings"]}
