"""Which items meet in a training batch."""

import numpy as np
from numpy.typing import ArrayLike

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


def usable_classes(labels: ArrayLike) -> np.ndarray:
    """The classes with at least two items: only they have a positive pair to learn from.

    Parameters
    ----------
    labels : array, shape (N,)
        The class of each item, integers or text.

    Returns
    -------
    ndarray, shape (C,)
        The classes, sorted.
    """
    classes, counts = np.unique(labels, return_counts=True)
    return classes[counts >= 2]


def check_usable_classes(labels: ArrayLike) -> np.ndarray:
    """The usable classes, of which training needs two at least.

    Parameters
    ----------
    labels : array, shape (N,)
        The class of each item, integers or text.

    Returns
    -------
    ndarray, shape (C,)
        The classes with two or more items, sorted.

    Raises
    ------
    InputError
        If there are fewer than two.
    """
    classes = usable_classes(labels)
    if len(classes) < 2:
        seen = "is 1 class" if len(classes) == 1 else "are 0 classes"
        raise InputError(f"there {seen} with two or more items; wanted at least two such classes: add labelled items")
    return classes


def hold_out_classes(labels: ArrayLike, share: float, seed: int) -> np.ndarray:
    """Choose classes that do not train, by whose items the best epoch is chosen.

    At least two classes are held out and two stay, so that both sides can be judged; with fewer than four usable
    classes none is held out.

    Parameters
    ----------
    labels : array, shape (N,)
        The class of each item.
    share : float
        Share of the usable classes to hold out.
    seed : int
        Decides which.

    Returns
    -------
    ndarray of bool, shape (N,)
        Whether each item belongs to a held-out class.
    """
    labels = np.asarray(labels)
    classes = usable_classes(labels)
    if share == 0 or len(classes) < 4:
        return np.zeros(len(labels), bool)
    count = int(np.clip(round(share * len(classes)), 2, len(classes) - 2))
    held_out = generator(seed).choice(classes, count, replace=False)
    return np.isin(labels, held_out)


def class_balanced_batches(labels: ArrayLike, n_classes: int, per_class: int, *, seed: int, epoch: int) -> np.ndarray:
    """Draw one epoch of batches, each of some classes and equally many items of each of them.

    An epoch draws about as many items as there are. The batches depend on (labels, seed, epoch) alone, so a resumed
    run draws what it would have drawn.

    Parameters
    ----------
    labels : array, shape (N,)
        The class of each item.
    n_classes : int
        Classes in a batch, drawn anew for each; all usable ones where there are fewer.
    per_class : int
        Items of each of them, without repetition unless a class has fewer.
    seed, epoch : int
        Decide what is drawn.

    Returns
    -------
    ndarray of int, shape (B, n_classes * per_class)
        The rows of the items of each batch.
    """
    check_usable_classes(labels)
    return _balanced(np.asarray(labels), n_classes, per_class, generator(seed, epoch))


def cluster_batches(
    labels: ArrayLike,
    clusters: ArrayLike,
    n_classes: int,
    per_class: int,
    *,
    seed: int,
    epoch: int,
    at_least: int = 1,
) -> list[np.ndarray]:
    """Draw one epoch of class-balanced batches, each from one cluster only.

    Inside a cluster a class counts if it has two items there; a cluster with fewer than two such classes is left out,
    and one with fewer classes than asked gives smaller batches. The clusters take turns, each as often as its size asks
    for, evenly spread over the epoch. The cluster of a batch is clusters[batch[0]].

    Parameters
    ----------
    labels : array, shape (N,)
        The class of each item.
    clusters : array of int, shape (N,)
        The cluster of each item, 0 or more.
    n_classes, per_class : int
        Classes in a batch, and items of each of them.
    seed, epoch : int
        Decide what is drawn.
    at_least : int
        Clusters whose batches would have fewer items than this are left out.

    Returns
    -------
    list of ndarray of int, shape (b,) each
        The rows of the items of each batch.

    Examples
    --------
    >>> labels, clusters = np.array([0, 0, 1, 1, 0, 0, 2, 2]), np.array([5, 5, 5, 5, 8, 8, 8, 8])
    >>> [clusters[batch].tolist() for batch in cluster_batches(labels, clusters, 2, 2, seed=0, epoch=1)]
    [[5, 5, 5, 5], [8, 8, 8, 8]]
    """
    labels, clusters = np.asarray(labels), np.asarray(clusters)
    if len(labels) != len(clusters):
        raise InputError(f"there are {len(clusters)} cluster codes for {len(labels)} labels; wanted one for each item")
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
            f"no cluster has {needed} classes with two or more items each; wanted at least one such cluster: "
            "use fewer clusters, larger batches or fewer processes, or add items"
        )
    return [rows for *_, rows in sorted(drawn, key=lambda batch: batch[:2])]


def share_of_rank(batch: np.ndarray, rank: int, world_size: int) -> np.ndarray:
    """The part of a batch that one process works on.

    Parameters
    ----------
    batch : ndarray of int, shape (b,)
        Rows; the same batch in every process.
    rank : int
        The number of the process.
    world_size : int
        How many processes there are.

    Returns
    -------
    ndarray of int
        Its rows; the shares of all processes, joined in the order of their ranks, are the batch.

    Examples
    --------
    >>> [share_of_rank(np.arange(5), rank, 2).tolist() for rank in (0, 1)]
    [[0, 1, 2], [3, 4]]
    """
    if len(batch) < world_size:
        raise InputError(
            f"a batch has {len(batch)} items for {world_size} processes; wanted at least one item for each: "
            "use larger batches or fewer processes"
        )
    return np.array_split(batch, world_size)[rank]


def _balanced(labels: np.ndarray, n_classes: int, per_class: int, rng: np.random.Generator) -> np.ndarray:
    classes = usable_classes(labels)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], classes)
    ends = np.searchsorted(labels[order], classes, side="right")
    n_classes = min(n_classes, len(classes))
    n_items = int((ends - starts).sum())
    batches = []
    for _ in range(max(1, round(n_items / (n_classes * per_class)))):
        chosen = rng.choice(len(classes), n_classes, replace=False)
        batches.append([_drawn(rng, order[starts[c] : ends[c]], per_class) for c in chosen])
    return np.array(batches).reshape(len(batches), -1)


def _drawn(rng: np.random.Generator, rows: np.ndarray, count: int) -> np.ndarray:
    return rng.choice(rows, count, replace=len(rows) < count)
