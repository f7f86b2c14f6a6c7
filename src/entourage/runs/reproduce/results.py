"""What was measured of a table, one JSON file, written row by row so that a kill costs one row at most.

    {"table": ..., "scale": ..., "measured": {DATASET: {ROW: {SEED: {"of": ..., "seconds": ..., "values": {...}}}}},
     "protocol": {DATASET: {...}}, "figures": {DATASET: [...]}}

"of" names the settings a value was measured with: values of other settings are never shown as these.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from entourage.errors import InputError
from entourage.stores import whole_file
from entourage.stores.documents import read_document

__all__ = ["Results", "mean_and_spread"]


class _Entry(TypedDict):
    of: str
    seconds: float | None
    values: dict[str, Any]


class _Document(TypedDict):
    table: str
    scale: str
    protocol: dict[str, Any]
    measured: dict[str, dict[str, dict[str, _Entry]]]
    figures: dict[str, list[str]]


class Results:
    """The measured values of one table, in a file."""

    def __init__(self, file: Path, table: str, scale: str) -> None:
        self.file = file
        self.content: dict[str, Any] = {"table": table, "scale": scale, "protocol": {}, "measured": {}, "figures": {}}
        if file.exists():
            self.content |= read_document(file, _Document)
            if (self.content["table"], self.content["scale"]) != (table, scale):
                raise InputError(
                    f"{file} holds {self.content['table']} at scale {self.content['scale']}; wanted {table} at scale "
                    f"{scale}: choose another --out"
                )

    @property
    def datasets(self) -> list[str]:
        """The datasets that something was measured of."""
        return list(self.content["measured"])

    def values(self, dataset: str, row: str) -> dict[int, dict[str, Any]]:
        """Values of a row by seed, in the order of the seeds."""
        entries = self.content["measured"].get(dataset, {}).get(row, {})
        return {int(seed): entries[seed]["values"] for seed in sorted(entries, key=int)}

    def has(self, dataset: str, row: str, seed: int, of: str) -> bool:
        """Whether a row is measured; one that was measured with other settings is refused."""
        entry = self.content["measured"].get(dataset, {}).get(row, {}).get(str(seed))
        if entry is not None and entry["of"] != of:
            raise InputError(
                f"{self.file} holds {row} of {dataset}, seed {seed}, measured with other settings; measure it anew "
                "(--overwrite), or choose another --out"
            )
        return entry is not None

    def add(self, dataset: str, row: str, seed: int, entry: dict[str, Any]) -> None:
        """Keep what was measured of a row."""
        self.content["measured"].setdefault(dataset, {}).setdefault(row, {})[str(seed)] = entry
        self.write()

    def forget(self, dataset: str) -> None:
        """Forget what was measured on a dataset."""
        for part in ("measured", "figures"):
            self.content[part].pop(dataset, None)

    def write(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self.file) as temporary:
            temporary.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")


def mean_and_spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation over the seeds; None where there is one seed.

    >>> mean_and_spread([1.0, 3.0])
    (2.0, 1.4142135623730951)
    """
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None
