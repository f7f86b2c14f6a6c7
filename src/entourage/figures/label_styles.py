"""Colours and shapes that distinguish labels among many dots: the most frequent labels have their own."""

import numpy as np

from entourage.values import FloatArray, IntArray, LabelArray

__all__ = ["NAMED", "REST", "THIN", "far_apart", "styles_of"]

NAMED = 24
"""How many labels have a style of their own at most: each of the shapes in two colours."""
REST = "0.62"
"""The colour of all others."""
THIN = "PX*"
"""Shapes that look smaller than they are."""

_COLOURS = ("#1f6fb4", "#c4314b", "#5b8c2a", "#8250a8", "#c27a0e", "#0f8b8d", "#9a4d28", "#c7488f")
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*", "p", "<", "h", ">")


def styles_of(labels: LabelArray | None, places: FloatArray) -> list[tuple[IntArray, str, str, str | None]]:
    """Choose colours and shapes for labels.

    Parameters
    ----------
    labels : array of shape (N,) or None
    places : array of shape (N, 2)
        Where the items are drawn; labels that lie near each other get different colours.

    Returns
    -------
    list of (rows, colour, shape, name)
        For each of the most frequent labels its rows, style and name. Before them, where there are more labels, the
        rows of all others, whose name is None; without labels, that entry alone.
    """
    if labels is None:
        return [(np.arange(len(places)), _COLOURS[0], "o", None)]
    kinds, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:NAMED]
    groups = [np.flatnonzero(codes == code) for code in frequent]
    colours = far_apart(np.array([np.median(places[rows], axis=0) for rows in groups]))
    shapes = [_SHAPES[place % len(_SHAPES)] for place in range(len(groups))]
    named = zip(groups, colours, shapes, kinds[frequent].astype(str).tolist(), strict=True)
    rest = np.flatnonzero(~np.isin(codes, frequent))
    return [(rest, REST, "o", None), *named] if len(rest) else list(named)


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
