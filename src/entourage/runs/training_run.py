"""A run of `entourage train`, opened again: its log, its scores, and how its encoder sees the test set.

The pictures are loaded again from where config.json says they were.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from entourage import data
from entourage.errors import FileError
from entourage.evaluation import evaluate_embeddings
from entourage.neighbors import search
from entourage.runs.train import CONFIG, ENCODER, LOG, METRICS, embed_tests, encoder_of, left_out, partial_of
from entourage.runtime.once import Once
from entourage.stores.logs import read_log
from entourage.stores.vectors import FORMATS
from entourage.values import Embeddings, Neighbors

__all__ = ["TrainingRun", "open_training"]

_NEAREST = 10


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """What a run folder holds. config and document: what config.json and metrics.json hold; log: its lines."""

    folder: Path
    config: dict
    document: dict
    log: list[dict]
    _once: Once = field(default_factory=Once, repr=False)

    @property
    def system(self) -> str:
        return self.config["system"]

    @property
    def has_pictures(self) -> bool:
        """Whether it was trained on pictures, not on a file of vectors."""
        return Path(self.config["data"]["source"]).suffix.lower() not in FORMATS

    def encoder(self):
        """The encoder that was kept."""
        return self._once("encoder", lambda: encoder_of(self.folder))

    def loaded(self) -> tuple:
        """The queries and the gallery, image sets or Embeddings, with pictures that cannot be decoded among them; the
        gallery is None where queries are searched among themselves."""

        def load() -> tuple:
            told = self.config["data"]
            place, options = (told["source"], told["root"]), told["options"]
            names = [name for name in data.splits(*place, **options) if name != "train"]
            sets = [data.load(place[0], name, place[1], **options) for name in names]
            return sets[0], sets[1] if len(sets) > 1 else None

        return self._once("loaded", load)

    def tests(self) -> tuple:
        """The same without pictures that cannot be decoded, which scores leave out as well: row by row as embedded."""

        def take() -> tuple:
            sets = zip(self.loaded(), self._embedded(None), strict=True)
            return tuple(items if found is None else items.take(found[0]) for items, found in sets)

        return self._once("tests", take)

    def embedded(self, *, progress=None) -> tuple[Embeddings, Embeddings | None]:
        """The tests as the encoder sees them."""
        return tuple(None if found is None else found[1] for found in self._embedded(progress))

    def neighbors(self, *, progress=None) -> Neighbors:
        """The nearest items of each query."""

        def find() -> Neighbors:
            queries, gallery = self.embedded(progress=progress)
            available = len(gallery if gallery is not None else queries) - 1
            return search(queries, gallery, min(_NEAREST, available), progress=progress)

        return self._once("neighbors", find)

    def per_query(self, *, progress=None) -> dict[str, np.ndarray]:
        """Every metric of each query, (N,): "recall@1", "map@r" and so on."""

        def score() -> dict:
            return evaluate_embeddings(*self.embedded(progress=progress), nmi=False, progress=progress).per_query

        return self._once("per query", score)

    def appearance(self):
        """How the queries look, as figures take it."""
        from entourage.figures.appearance import Appearance

        return Appearance.of(self.tests()[0])

    def gallery_appearance(self):
        """How the items look that are searched in."""
        from entourage.figures.appearance import Appearance

        gallery = self.tests()[1]
        return self.appearance() if gallery is None else Appearance.of(gallery)

    def _embedded(self, progress) -> list[tuple[np.ndarray, Embeddings] | None]:
        """Of the queries and the gallery: the rows that can be decoded, and their embeddings."""

        def embed() -> list:
            sets = [items for items in self.loaded() if items is not None]
            embedded = [embed_tests(self.encoder(), items, progress=progress) for items in sets]
            corrupt = dict.fromkeys(path for *_, corrupt in embedded for path in corrupt)
            left_out(list(corrupt), sum(map(len, sets)))
            found = [(rows, items) for rows, items, _ in embedded]
            return [*found, *[None] * (2 - len(found))]

        return self._once("embedded", embed)


def open_training(folder) -> TrainingRun:
    """A finished run as `entourage train` wrote it."""
    folder = Path(folder)
    if folder.name.endswith(".partial") or (not folder.exists() and partial_of(folder).is_dir()):
        raise FileError(f"{folder} is a run that has not ended; finish it with `entourage train ... --resume`")
    if not (folder / ENCODER).is_dir() or not (folder / CONFIG).is_file():
        raise FileError(f"{folder} is no run of `entourage train`; wanted a folder with config.json and encoder/")
    try:
        config, document = (json.loads((folder / name).read_text(encoding="utf-8")) for name in (CONFIG, METRICS))
    except (OSError, ValueError) as error:
        raise FileError(f"{folder} cannot be read as a run ({error}); train it again, or copy it anew") from error
    return TrainingRun(folder, config, document, read_log(folder / LOG))
