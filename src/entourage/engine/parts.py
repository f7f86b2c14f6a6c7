"""What tasks leave for each other: arrays of a shard or a partition, in a folder that all machines share.

    NAME_NUMBER.npy      an array, whole from the moment it has its name
    STAGE_NUMBER.json    written last: this task is done, and this is what it had to tell

Both are on the disk before they have their names: what a machine that goes down says it has done is there.

A task that is killed is run again, here or elsewhere, and writes the same under the same names. Whatever it has left
half-written has another name, so that nothing is lost and nothing is there twice.

N items in P partitions. An item has a place from 0 to N - 1: partition after partition, in each in order of
the rows they came from.
"""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entourage.errors import FileError
from entourage.stores.journal import to_disk
from entourage.stores.mapped import MappedVectors
from entourage.stores.reading import readable
from entourage.values import IntArray

__all__ = ["Partitions", "Parts"]


@dataclass(frozen=True)
class Parts:
    """The arrays of shards or partitions in one folder."""

    folder: Path

    def keep(self, name: str, number: int, array: NDArray[Any]) -> None:
        """Write an array; until it is whole it is not there."""
        new = self.folder / f"{name}_{number}.{uuid.uuid4().hex[:8]}.new"
        with new.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        to_disk(new)
        new.replace(self._path(name, number))

    def kept(self, name: str, number: int) -> NDArray[Any]:
        """An array that was written, memory-mapped."""
        path = self._path(name, number)
        if not path.exists():
            raise FileError(f"{path} is missing where it is needed; wanted a folder that all machines share (--work)")
        with readable(path):
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array

    def forget(self, name: str, numbers: range) -> None:
        """Delete what no later stage needs."""
        for number in numbers:
            self._path(name, number).unlink(missing_ok=True)

    def once(self, stage: str, number: int, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What a task has to tell, as JSON holds it; done only if no earlier attempt has got to its end."""
        done = self.folder / f"{stage}_{number}.json"
        if not done.exists():
            told = work()
            new = self.folder / f"{stage}_{number}.{uuid.uuid4().hex[:8]}.new"
            new.write_text(json.dumps(told), encoding="utf-8")
            to_disk(new)
            to_disk(self.folder)  # the names of arrays that the task has made
            new.replace(done)
            return told
        return dict(json.loads(done.read_text(encoding="utf-8")))

    def _path(self, name: str, number: int) -> Path:
        return self.folder / f"{name}_{number}.npy"


@dataclass(frozen=True, eq=False)
class Partitions(Parts):
    """The arrays of partitions, of which rows are asked for by place."""

    offsets: IntArray
    """(P + 1,) the first place of each partition, and N."""

    @property
    def numbers(self) -> list[int]:
        """The partitions that are not empty."""
        return [int(number) for number in np.flatnonzero(np.diff(self.offsets))]

    @property
    def count(self) -> int:
        """N."""
        return int(self.offsets[-1])

    def size(self, number: int) -> int:
        """How many items a partition has."""
        return int(self.offsets[number + 1] - self.offsets[number])

    def places(self, number: int) -> IntArray:
        """The places of the items of a partition."""
        return np.arange(self.offsets[number], self.offsets[number + 1])

    def vectors(self, number: int) -> MappedVectors:
        """x of a partition, (n, d)."""
        return MappedVectors(self.kept("vectors", number), np.asarray(self.kept("factors", number)))

    def at(self, name: str, places: IntArray) -> NDArray[Any]:
        """Rows of an array that every partition has, at any places; "x" stands for vectors of length 1."""
        result: NDArray[Any] | None = None
        for number, some, positions in self._by_partition(places):
            rows = self.vectors(number)[positions] if name == "x" else self.kept(name, number)[positions]
            if result is None:
                result = np.empty((len(places), *rows.shape[1:]), rows.dtype)
            result[some] = rows
        if result is None:
            raise ValueError(f"no place is asked for of {name}; wanted one at least")
        return result

    def _by_partition(self, places: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Each partition among some places: its number, who is in it, and at which positions."""
        owners = np.searchsorted(self.offsets, places, side="right") - 1
        order = np.argsort(owners, kind="stable")
        numbers, firsts = np.unique(owners[order], return_index=True)
        for number, some in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=False):  # there may be none
            yield number, some, places[some] - self.offsets[number]
