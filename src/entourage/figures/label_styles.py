"""Colours and shapes that distinguish labels among many dots: the most frequent labels have their own."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from entourage.runtime.randomness import generator
from entourage.values import FloatArray, IntArray, LabelArray

__all__ = ["NAMED", "REST", "THIN", "LabelStyle", "by_frequency", "far_apart", "styles_of"]

NAMED = 24
"""How many labels have a style of their own at most: each of the shapes in two colours."""
REST = "0.62"
"""The colour of all others."""
THIN = "PX*"
"""Shapes that look smaller than they are."""

# As different as eight can be to those who do not tell red from green, and dark enough to write with.
_COLOURS = ("#1f6fb4", "#d95f02", "#1b9e77", "#8a5cf0", "#c4314b", "#5c3a00", "#2a1a8f", "#0095b1")
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*", "p", "<", "h", ">")


class LabelStyle(NamedTuple):
    """How the items of a label are drawn."""

    rows: IntArray
    colour: str
    shape: str
    name: str | None
    """The label; None for the rest, which have no style of their own."""


def by_frequency(counts: IntArray, seed: int = 0) -> IntArray:
    """Order labels by how many items they have, the most frequent first.

    Parameters
    ----------
    counts : array of shape (C,)
        How many items each label has.
    seed : int, default 0
        Decides between equals, which would otherwise be the first of the alphabet.

    Returns
    -------
    array of shape (C,)
        Places in counts.

    Examples
    --------
    >>> by_frequency(np.array([3, 9, 5])).tolist()
    [1, 2, 0]
    """
    drawn = generator(seed).permutation(len(counts))
    return drawn[np.argsort(-np.asarray(counts)[drawn], kind="stable")]


def styles_of(
    labels: LabelArray | None, places: FloatArray, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> list[LabelStyle]:
    """Choose colours and shapes for labels.

    Parameters
    ----------
    labels : array of shape (N,) or None
    places : array of shape (N, 2)
        Where the items are drawn; labels that lie near each other get different colours.
    sizes : dict of int, optional
        How many items each label has in all, where these are a part of them; by default as many as are here.
    seed : int, default 0
        Decides between labels that are equally frequent.

    Returns
    -------
    list of LabelStyle
        One for each of the most frequent labels. Before them, where there are more labels, the rest as one; without
        labels, that entry alone.
    """
    if labels is None:
        return [LabelStyle(np.arange(len(places)), _COLOURS[0], "o", None)]
    kinds, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if sizes is not None:
        counts = np.array([sizes[name] for name in kinds.astype(str).tolist()])
    frequent = by_frequency(counts, seed)[:NAMED]
    groups = [np.flatnonzero(codes == code) for code in frequent]
    colours = far_apart(np.array([np.median(places[rows], axis=0) for rows in groups]))
    shapes = [_SHAPES[place % len(_SHAPES)] for place in range(len(groups))]
    names = kinds[frequent].astype(str).tolist()
    named = [LabelStyle(*each) for each in zip(groups, colours, shapes, names, strict=True)]
    rest = np.flatnonzero(~np.isin(codes, frequent))
    return [LabelStyle(rest, REST, "o", None), *named] if len(rest) else named


def far_apart(places: FloatArray) -> list[str]:
    """Choose a colour for each label such that equal colours lie far apart.

    Parameters
    ----------
    places : array of shape (M, 2)
        Where the labels are drawn, M ≤ NAMED.

    Returns
    -------
    list of M str
        Colours; no two labels have both the same colour and the same shape.
    """
    chosen: list[int] = []
    for number, place in enumerate(places):
        nearest = np.full(len(_COLOURS), np.inf)
        for other, colour in enumerate(chosen):
            same_shape = (number - other) % len(_SHAPES) == 0
            distance = -1.0 if same_shape else float(np.linalg.norm(place - places[other]))
            nearest[colour] = min(nearest[colour], distance)
        chosen.append(int(nearest.argmax()))
    return [_COLOURS[colour] for colour in chosen]
