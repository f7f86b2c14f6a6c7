"""A run of `entourage train`, opened again: its log, its scores, and how its encoder sees the test set.

The pictures are loaded again from where config.json says they were.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from entourage import data
from entourage.errors import FileError
from entourage.evaluation import evaluate_embeddings
from entourage.neighbors import search
from entourage.runs import CONFIG, ENCODER, LOG, METRICS, encoder_of, partial_of
from entourage.store.vectors import FORMATS
from entourage.values import Embeddings, Neighbors

__all__ = ["Training", "open_training"]

_NEAREST = 10


@dataclass(frozen=True, eq=False)
class Training:
    """What a run folder holds. config and document: what config.json and metrics.json hold; log: its lines."""

    folder: Path
    config: dict
    document: dict
    log: list[dict]
    _made: dict = field(default_factory=dict, repr=False)

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

    def tests(self) -> tuple:
        """The queries and the gallery, image sets or Embeddings; the gallery is None where queries are searched among
        themselves."""

        def load() -> tuple:
            told = self.config["data"]
            place, options = (told["source"], told["root"]), told["options"]
            names = [name for name in data.splits(*place, **options) if name != "train"]
            sets = [data.load(place[0], name, place[1], **options) for name in names]
            return sets[0], sets[1] if len(sets) > 1 else None

        return self._once("tests", load)

    def embedded(self, *, progress=None) -> tuple[Embeddings, Embeddings | None]:
        """The same as the encoder sees them. A picture that cannot be decoded raises."""
        return self._once("embedded", lambda: tuple(self._embedded(items, progress) for items in self.tests()))

    def neighbors(self, *, progress=None) -> Neighbors:
        """The nearest items of each query."""

        def find() -> Neighbors:
            queries, gallery = self.embedded(progress=progress)
            available = len(gallery if gallery is not None else queries) - 1
            return search(queries, gallery, min(_NEAREST, available), progress=progress)

        return self._once("neighbors", find)

    def per_query(self, *, progress=None) -> dict[str, np.ndarray]:
        """ "recall@1" and "map@r" of each query, (N,)."""

        def score() -> dict:
            scores = evaluate_embeddings(*self.embedded(progress=progress), nmi=False, progress=progress)
            return {"recall@1": scores.recall_at_1, "map@r": scores.average_precision}

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

    def _embedded(self, items, progress) -> Embeddings | None:
        from entourage.embedding import embed

        if items is None:
            return None
        shots = {name: getattr(items, name, None) for name in ("cameras", "sequences")}
        vectors = embed(self.encoder(), items, progress=progress)
        return Embeddings.from_vectors(vectors, items.ids, items.labels, **shots)

    def _once(self, name: str, make: Callable):
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


def open_training(folder) -> Training:
    """A finished run as `entourage train` wrote it."""
    from entourage.training.log import read_log

    folder = Path(folder)
    if folder.name.endswith(".partial") or (not folder.exists() and partial_of(folder).is_dir()):
        raise FileError(f"{folder} is a run that has not ended; finish it with `entourage train ... --resume`")
    if not (folder / ENCODER).is_dir() or not (folder / CONFIG).is_file():
        raise FileError(f"{folder} is no run of `entourage train`; wanted a folder with config.json and encoder/")
    try:
        config, document = (json.loads((folder / name).read_text(encoding="utf-8")) for name in (CONFIG, METRICS))
    except (OSError, ValueError) as error:
        raise FileError(f"{folder} cannot be read as a run ({error}); train it again, or copy it anew") from error
    return Training(folder, config, document, read_log(folder / LOG))
