"""Which items meet in a training batch."""

import numpy as np

from entourage.errors import InputError
from entourage.runtime.randomness import generator

__all__ = [
    "check_usable_classes",
    "class_balanced_batches",
    "cluster_batches",
    "hold_out_classes",
    "share_of_rank",
    "usable_classes",
]


def usable_classes(labels) -> np.ndarray:
    """Classes with at least two items: only they have a positive pair to learn from."""
    classes, counts = np.unique(labels, return_counts=True)
    return classes[counts >= 2]


def check_usable_classes(labels) -> np.ndarray:
    """The usable classes, if there are two at least."""
    classes = usable_classes(labels)
    if len(classes) < 2:
        raise InputError(
            f"{len(classes)} class{'' if len(classes) == 1 else 'es'} with two or more items; "
            "wanted at least two such classes to learn from: bring more labelled items"
        )
    return classes


def hold_out_classes(labels, share: float, seed: int) -> np.ndarray:
    """Whether each item belongs to a held-out class, (N,) bool: a seeded choice of `share` of the usable classes.

    At least two classes are held out and two stay, so both sides can be judged; with fewer than four usable
    classes none is held out.
    """
    classes = usable_classes(labels)
    if share == 0 or len(classes) < 4:
        return np.zeros(len(labels), bool)
    count = int(np.clip(round(share * len(classes)), 2, len(classes) - 2))
    held_out = generator(seed).choice(classes, count, replace=False)
    return np.isin(labels, held_out)


def class_balanced_batches(labels, n_classes: int, per_class: int, *, seed: int, epoch: int) -> np.ndarray:
    """One epoch of batches, (B, n_classes * per_class) rows: n_classes drawn anew for each, per_class items from
    each of them without repetition (with, where a class has fewer).

    B is such that an epoch draws about as many items as there are. Fewer usable classes than asked: all are
    taken. The batches depend on (labels, seed, epoch) alone, so a resumed run draws what it would have drawn.
    """
    check_usable_classes(labels)
    return _balanced(labels, n_classes, per_class, generator(seed, epoch))


def cluster_batches(
    labels, clusters, n_classes: int, per_class: int, *, seed: int, epoch: int, at_least: int = 1
) -> list[np.ndarray]:
    """One epoch of class-balanced batches, each from one cluster only; clusters (N,) is a whole number ≥ 0 per item.

    Inside a cluster a class counts if it has two items there; a cluster with fewer than two such classes is left out,
    and one with fewer classes than asked gives smaller batches; those of fewer than `at_least` items are left out too.
    The clusters take turns, each as often as its size asks for, evenly spread over the epoch. The cluster of a batch is
    clusters[batch[0]].

    >>> labels, clusters = np.array([0, 0, 1, 1, 0, 0, 2, 2]), np.array([5, 5, 5, 5, 8, 8, 8, 8])
    >>> [clusters[batch].tolist() for batch in cluster_batches(labels, clusters, 2, 2, seed=0, epoch=1)]
    [[5, 5, 5, 5], [8, 8, 8, 8]]
    """
    labels, clusters = np.asarray(labels), np.asarray(clusters)
    if len(labels) != len(clusters):
        raise InputError(f"{len(clusters)} cluster codes for {len(labels)} labels; wanted one per item")
    needed = max(2, -(-at_least // per_class))  # classes
    drawn = []  # (when in the epoch, cluster, rows)
    for cluster in np.unique(clusters).tolist():
        members = np.flatnonzero(clusters == cluster)
        if min(len(usable_classes(labels[members])), n_classes) < needed:
            continue
        rng = generator(seed, epoch, cluster)
        batches = members[_balanced(labels[members], n_classes, per_class, rng)]
        drawn += [((turn + 0.5) / len(batches), cluster, rows) for turn, rows in enumerate(batches)]
    if not drawn:
        raise InputError(
            f"no cluster gives batches of {needed} classes with two or more items each; wanted at least one such "
            "cluster: use fewer clusters, larger batches or fewer processes, or bring more items"
        )
    return [rows for *_, rows in sorted(drawn, key=lambda batch: batch[:2])]


def share_of_rank(batch: np.ndarray, rank: int, world_size: int) -> np.ndarray:
    """The rows of a batch (b,) that process `rank` of `world_size` works on: the shares of all, joined in the order
    of their ranks, are the batch itself.

    >>> [share_of_rank(np.arange(5), rank, 2).tolist() for rank in (0, 1)]
    [[0, 1, 2], [3, 4]]
    """
    if len(batch) < world_size:
        raise InputError(
            f"a batch of {len(batch)} items for {world_size} processes; wanted at least one item for each: "
            "use larger batches or fewer processes"
        )
    return np.array_split(batch, world_size)[rank]


def _balanced(labels, n_classes: int, per_class: int, rng) -> np.ndarray:
    classes = usable_classes(labels)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], classes)
    ends = np.searchsorted(labels[order], classes, side="right")
    n_classes = min(n_classes, len(classes))
    n_items = int((ends - starts).sum())
    batches = []
    for _ in range(max(1, round(n_items / (n_classes * per_class)))):
        chosen = rng.choice(len(classes), n_classes, replace=False)
        batches.append([_draw(rng, order[starts[c] : ends[c]], per_class) for c in chosen])
    return np.array(batches).reshape(len(batches), -1)


def _draw(rng, rows, count: int) -> np.ndarray:
    return rng.choice(rows, count, replace=len(rows) < count)
