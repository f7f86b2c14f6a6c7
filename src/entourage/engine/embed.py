"""Embedding pictures on a cluster: a task for each shard; the process that hands them out only puts shards together.

A worker opens pictures and encoders by their names, which all machines must see, and keeps them for its next task.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from entourage import data
from entourage.data.image_set import Items
from entourage.data.joining import load_splits
from entourage.encoders.protocol import Encoder
from entourage.encoders.shards import EmbeddedFile, Plan, embed_to_file, write_shard
from entourage.engine.cluster import Cluster, ray_cluster
from entourage.runs.encoders import encoder_of
from entourage.runtime.progress import ShowProgress, shows_progress
from entourage.values import LabelArray

__all__ = ["Pictures", "embed_by_tasks", "embed_on_ray"]


@dataclass(frozen=True)
class Pictures:
    """What is embedded, and by what, in names."""

    source: str
    """A dataset by name, or a path, as `data.load` takes it."""
    split: str
    models: tuple[str, ...]
    """Runs, saved encoders or Hugging Face models."""
    root: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    """Options of `data.load`."""

    @classmethod
    def of(
        cls, source: str, split: str, models: Iterable[str], root: Path | None, options: dict[str, Any]
    ) -> "Pictures":
        """Paths are absolute: workers stand in other folders than this process, and may know no ENTOURAGE_DATA."""
        names = tuple(_absolute(each) for each in models)
        if source in data.DATASETS:
            where = root or os.environ.get("ENTOURAGE_DATA")
        else:
            source, where = _absolute(source), root
        return cls(source, split, names, None if where is None else _absolute(where), tuple(sorted(options.items())))

    def load(self) -> tuple[Items, LabelArray | None]:
        """The pictures and, if several splits are asked for, which of them each is from."""
        return load_splits(self.source, self.split, self.root, **dict(self.options))

    def encoders(self) -> list[Encoder]:
        """What embeds them."""
        return [encoder_of(each) for each in self.models]


@shows_progress
def embed_on_ray(
    pictures: Pictures,
    out: str | PathLike[str],
    address: str | None = None,
    *,
    progress: ShowProgress = None,
    **options: Any,
) -> EmbeddedFile:
    """Embed pictures on a Ray cluster.

    Parameters
    ----------
    pictures : Pictures
        Files and folders that all machines of the cluster see, as they must the folder of `out`.
    out : path-like
        As in `embed_to_file`.
    address : str, optional
        That of the cluster; None: one on this machine.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).
    **options
        Further ones of `embed_to_file`.

    Returns
    -------
    EmbeddedFile
        What one process would have written. No cluster is started before all that can be refused is.
    """

    def by(plan: Plan, missing: list[int]) -> Iterable[int]:
        with ray_cluster(address, gpus=plan.device != "cpu") as cluster:
            yield from embed_by_tasks(cluster, pictures, plan, missing)

    items, splits = pictures.load()
    return embed_to_file(pictures.encoders(), items, out, splits=splits, by=by, progress=progress, **options)


def embed_by_tasks(cluster: Cluster, pictures: Pictures, plan: Plan, missing: list[int]) -> Iterable[int]:
    """As `embed_on_ray`, by whoever does the tasks; yields the number of each shard that is done."""
    for number, _ in cluster.each(_embed_shard, missing, pictures, plan):
        yield number


def _embed_shard(number: int, pictures: Pictures, plan: Plan) -> None:
    write_shard(plan, number, *_opened(pictures))


@lru_cache(maxsize=1)
def _opened(pictures: Pictures) -> tuple[list[Encoder], Items]:
    return pictures.encoders(), pictures.load()[0]


def _absolute(name: str | PathLike[str]) -> str:
    """A path as all see it; what is no path here is the name of a dataset or of a model."""
    path = Path(name)
    return str(path.absolute()) if path.exists() else str(name)
