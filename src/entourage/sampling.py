"""Which items meet in a training batch."""

import numpy as np

from entourage.errors import InputError

__all__ = ["check_usable_classes", "class_balanced_batches", "hold_out_classes", "usable_classes"]


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
    held_out = np.random.default_rng(seed).choice(classes, count, replace=False)
    return np.isin(labels, held_out)


def class_balanced_batches(labels, n_classes: int, per_class: int, *, seed: int, epoch: int) -> np.ndarray:
    """One epoch of batches, (B, n_classes * per_class) rows: n_classes drawn anew for each, per_class items from
    each of them without repetition (with, where a class has fewer).

    B is such that an epoch draws about as many items as there are. Fewer usable classes than asked: all are
    taken. The batches depend on (labels, seed, epoch) alone, so a resumed run draws what it would have drawn.
    """
    classes = check_usable_classes(labels)
    rng = np.random.default_rng([seed, epoch])
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
