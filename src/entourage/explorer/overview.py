"""What the page says of the whole set: scores, classes, the doctor's verdict, and labels that may be wrong."""

from typing import Any, NamedTuple

import numpy as np

from entourage.comparison.diagnosis import examine
from entourage.explorer.scene import Scene
from entourage.neighbors.copies import distinct_items
from entourage.runtime.threads import blocks
from entourage.values import FloatArray, IntArray

__all__ = ["Suspect", "copies_across_labels", "doctor_of", "overview", "suspects"]

MOST_EXAMINED = 100_000  # items; the doctor refines them and ranks all of them

_CLASSES = 8  # that gained most, and that lost most
_UNCHANGED = 1e-9
_SUSPECT = 0.6  # the share of trust that goes to another label
_COMPARED = 7_200_000  # pairs of neighbours that are compared at once
_TRUSTED = 0.5  # how much those neighbours are trusted, on average


def overview(scene: Scene) -> dict[str, Any]:
    """Scores before and after with their intervals, how many queries gained and lost, and which classes."""
    run = scene.run
    document = run.document
    scores = [
        {
            "name": name,
            "before": document["metrics_before"][name],
            "after": after,
            "interval": _interval(document["intervals"].get(name)),
        }
        for name, after in document["metrics"].items()
    ]
    protocol = {name: value for name, value in document["protocol"].items() if isinstance(value, str | int | float)}
    answer = {"scores": scores, "protocol": protocol, "warnings": document["warnings"]}
    return answer | {"movement": document.get("movement", {})} | _gained(scene)


def _interval(found: dict | None) -> dict | None:
    if found is None:
        return None
    return {name: found[name] for name in ("low", "high") if name in found} or None


def _gained(scene: Scene) -> dict[str, Any]:
    scores, labels = scene.run.per_query, scene.labels
    if scores is None or labels is None:
        return {"tally": None, "classes": []}
    before, after = (scores[when]["map@r"] for when in ("before", "after"))
    gains = after - before
    names, codes = labels[0], labels[1][: scene.n_items]
    sizes = np.maximum(np.bincount(codes, minlength=len(names)), 1)
    means = [np.bincount(codes, weights=each, minlength=len(names)) / sizes for each in (before, after)]
    change = means[1] - means[0]
    order = np.argsort(-change, kind="stable")
    chosen = [*order[:_CLASSES][change[order[:_CLASSES]] > _UNCHANGED]]
    chosen += [code for code in order[::-1][:_CLASSES][::-1] if change[code] < -_UNCHANGED]
    classes = [
        {
            "label": int(code),
            "items": int(sizes[code]),
            "before": round(float(means[0][code]), 4),
            "after": round(float(means[1][code]), 4),
        }
        for code in chosen
    ]
    better, worse = int((gains > _UNCHANGED).sum()), int((gains < -_UNCHANGED).sum())
    return {"tally": {"better": better, "worse": worse, "same": len(gains) - better - worse}, "classes": classes}


def doctor_of(scene: Scene) -> dict[str, Any]:
    """The doctor's verdict on the raw vectors that are searched, and what it found."""
    items = scene.run.items if scene.run.context is None else scene.run.context
    if len(items) > MOST_EXAMINED:
        said = f"{len(items):,} items take the doctor too long for a page: ask `entourage doctor`, of a part of them"
        return {"verdict": said, "findings": []}
    found = examine(items, progress=scene.progress)
    findings = [
        {"name": each.name.replace("_", " "), "value": str(each), "note": each.note}
        for each in found.findings
        if each.value is not None
    ]
    return {"verdict": found.verdict, "findings": findings}


class Suspect(NamedTuple):
    """An item whose neighbours trust each other but have another label than it."""

    row: int
    suggested: int
    """The label that they have."""
    share: float
    """How much of the item's trust they have, from 0 to 1."""
    neighbors: IntArray
    """Those of them, as points."""


def suspects(scene: Scene) -> list[Suspect]:
    """Items of the pool whose trusted neighbours agree on another label, the surest first."""
    if scene.labels is None:
        return []
    graph, trusted = scene.weighted.graph, scene.weighted.trust  # (G, k)
    rows, labels = graph.gallery_rows + scene.pool_start, scene.labels[1]
    if not trusted.shape[1] or (labels[rows] < 0).any():
        return []
    found: list[tuple[float, Suspect]] = []
    for part in blocks(len(rows), max(1, _COMPARED // trusted.shape[1] ** 2)):
        near = rows[graph.neighbors.rows[part]]  # (B, k)
        found += _suspects_among(rows[part], near, labels, trusted[part])
    return [each for _, each in sorted(found, key=lambda pair: -pair[0])]


def _suspects_among(
    rows: IntArray, near: IntArray, labels: IntArray, trusted: FloatArray
) -> list[tuple[float, Suspect]]:
    """How sure, and what, for those of some points (B,) with neighbours (B, k) whose label may be wrong."""
    others = labels[near]  # (B, k)
    same = others[:, :, None] == others[:, None, :]
    mass = (same * trusted[:, None, :]).sum(axis=2)  # (B, k): the trust that goes to the label of each neighbour
    mass[others == labels[rows][:, None]] = -1
    best = mass.argmax(axis=1)
    at = np.arange(len(rows))
    most, theirs = mass[at, best], same[at, best]
    share = most / np.maximum(trusted.sum(axis=1), 1e-9)
    trust = np.where(theirs, trusted, 0)
    strength = (trust**2).sum(axis=1) / np.maximum(trust.sum(axis=1), 1e-9)  # the mean, each counted by its trust
    sure = np.flatnonzero((share >= _SUSPECT) & (strength >= _TRUSTED))
    suggested = others[at, best]
    return [
        (
            float(share[node] * most[node]),
            Suspect(int(rows[node]), int(suggested[node]), float(share[node]), near[node][theirs[node]]),
        )
        for node in sure
    ]


def copies_across_labels(scene: Scene, most: int = 500) -> list[tuple[int, int]]:
    """Pairs of points with nearly equal vectors and different labels."""
    if scene.labels is None:
        return []
    pool, labels = scene.pool["before"].items, scene.labels[1][scene.pool_start :]
    known = scene.network.base_map is None  # then the graph is of these vectors, and has looked for copies
    stands_for = scene.weighted.graph.stands_for if known else distinct_items(pool)[1]
    copied = np.bincount(stands_for)[stands_for] > 1  # few, as a rule
    order = np.flatnonzero(copied)
    order = order[np.argsort(stands_for[order], kind="stable")]
    pairs: list[tuple[int, int]] = []
    for group in np.split(order, np.flatnonzero(np.diff(stands_for[order])) + 1):
        if len(group) > 1:
            first = group[0]
            pairs += [(int(first), int(other)) for other in group[1:] if labels[other] != labels[first]]
    return [(one + scene.pool_start, other + scene.pool_start) for one, other in pairs[:most]]
