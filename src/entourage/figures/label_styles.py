"""How labels are told apart among many dots: the most frequent ones by a colour and a shape of their own."""

import numpy as np

__all__ = ["NAMED", "REST", "THIN", "far_apart", "styles_of"]

NAMED = 24
"""So many labels at most have a style of their own: each of the shapes in two colours."""
REST = "0.62"
"""The colour of all others."""
THIN = "PX*"
"""Shapes that look smaller than they are."""

_COLOURS = ("#1f6fb4", "#c4314b", "#5b8c2a", "#8250a8", "#c27a0e", "#0f8b8d", "#9a4d28", "#c7488f")
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*", "p", "<", "h", ">")


def styles_of(labels: np.ndarray | None, places: np.ndarray) -> list[tuple[np.ndarray, str, str, str | None]]:
    """(rows, colour, shape, name) of each label that has a style of its own; before them, of the rest, without a name.

    labels (N,) or None; places (N, 2): labels that lie near each other get different colours.
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


def far_apart(places: np.ndarray) -> list[str]:
    """A colour for each of the places (M, 2), M ≤ NAMED: never the same twice with one shape, and far from its like."""
    chosen: list[int] = []
    for number, place in enumerate(places):
        nearest = np.full(len(_COLOURS), np.inf)
        for other, colour in enumerate(chosen):
            same_shape = (number - other) % len(_SHAPES) == 0
            distance = -1.0 if same_shape else np.linalg.norm(place - places[other])
            nearest[colour] = min(nearest[colour], distance)
        chosen.append(int(nearest.argmax()))
    return [_COLOURS[colour] for colour in chosen]
