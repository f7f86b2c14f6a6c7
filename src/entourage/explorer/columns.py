"""What points are coloured by: a column of numbers for each, one value before and one after where they differ."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from entourage.explorer.scene import Scene
from entourage.values import FloatArray, Neighbors

__all__ = ["Column", "columns_of"]

_MOST_COLOURED = 0.99  # the share of values that have colours of their own: one hub must not make all others look alike


class Column(NamedTuple):
    """A value of each point."""

    title: str
    says: str
    """What it means, in a sentence."""
    values: NDArray[np.float32]
    """(2, P) before and after; NaN where it is unknown."""
    signed: bool = False
    """Whether 0 is in the middle: above is gain, below is loss."""

    def document(self) -> dict:
        """What the page is told of it."""
        known = self.values[np.isfinite(self.values)]
        low, most = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        high = float(np.quantile(known, _MOST_COLOURED)) if known.size else 1.0
        told = {"title": self.title, "says": self.says, "signed": self.signed}
        return told | {"low": low, "high": high if high > low else most, "most": most}


def columns_of(scene: Scene) -> dict[str, Column]:
    """Everything that points can be coloured by, besides their labels."""
    found = scene.run.neighbors
    columns = {"trust": _trust(scene), "hubness": _hubness(scene, found)}
    if scene.run.gains is not None:
        columns = {"gain": _gain(scene)} | columns
    if scene.labels is not None:
        columns["purity"] = _purity(scene, found)
    return columns


def _gain(scene: Scene) -> Column:
    gains = np.asarray(scene.run.gains)
    says = "Average precision of the item's ranking, after minus before."
    return Column("Gain or loss", says, _both(scene, gains, gains), signed=True)


def _trust(scene: Scene) -> Column:
    rows = np.arange(len(scene))
    groups = [rows[: scene.n_items], rows[scene.n_items :]]
    values = np.concatenate([_trust_of(scene, group) for group in groups if len(group)])
    says = "How much the refiner trusts the item's neighbours, on average, to be of its kind."
    return Column("Trust", says, np.stack([values, values]).astype(np.float32))


def _trust_of(scene: Scene, rows: NDArray[np.int64]) -> FloatArray:
    weights = scene.context_of(rows).weights
    if not weights.shape[1]:
        return np.zeros(len(rows))
    return np.asarray((weights ** (1 / scene.weighted.sharpness)).mean(axis=1))


def _purity(scene: Scene, found: dict[str, Neighbors]) -> Column:
    assert scene.labels is not None
    codes = scene.labels[1]
    own = codes[: scene.n_items, None]
    shares = [(codes[found[when].rows + scene.pool_start] == own).mean(axis=1) for when in ("before", "after")]
    says = f"Share of the {found['before'].k} nearest that have the item's label."
    return Column("Purity", says, _both(scene, *shares))


def _hubness(scene: Scene, found: dict[str, Neighbors]) -> Column:
    size = len(scene) - scene.pool_start
    counts = [np.bincount(found[when].rows.ravel(), minlength=size) for when in ("before", "after")]
    values = np.full((2, len(scene)), np.nan, np.float32)
    values[:, scene.pool_start :] = counts
    return Column("Hubness", f"How many items have it among their {found['before'].k} nearest.", values)


def _both(scene: Scene, before: FloatArray, after: FloatArray) -> NDArray[np.float32]:
    """Values of the items before and after; those of a gallery are unknown."""
    values = np.full((2, len(scene)), np.nan, np.float32)
    values[0, : scene.n_items], values[1, : scene.n_items] = before, after
    return values
