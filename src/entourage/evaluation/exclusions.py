"""Exclusions: items that are too easy to find, or neither right nor wrong, and are left out of a query's ranking.

- Same camera: items of the query's label that are from the query's own camera, as in person re-identification
  (Market-1501). Applies where cameras are known.
- Same sequence: items of the query's own sequence, whatever their label, such as frames of one video (Open Metric
  Learning). Applies where sequences are known.
- Junk: gallery items of a label that marks them as neither right nor wrong.

N queries, M gallery items, G rules that apply. Queries and gallery may be Embeddings or image sets.
"""

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError
from entourage.values import Embeddings, Labelled, labels_of, shared_codes

__all__ = ["any_match", "described_rules", "groups_left_out", "without_junk"]

_Pair = tuple[NDArray[np.int64], NDArray[np.int64]]


def groups_left_out(queries: Labelled, gallery: Labelled) -> _Pair | None:
    """Express the rules about cameras and sequences as groups.

    Parameters
    ----------
    queries, gallery : Embeddings or image sets
        N and M items with labels and, where known, cameras and sequences. What is known of one must be known of both.

    Returns
    -------
    query_groups : array of shape (N, G)
    gallery_groups : array of shape (M, G)
        Items that share a group with the query, in any of the G columns, are left out of its ranking. None instead of
        both where neither cameras nor sequences are known.
    """
    columns: list[_Pair] = []
    for name in ("cameras", "sequences"):
        of_queries, of_gallery = getattr(queries, name, None), getattr(gallery, name, None)
        if (of_queries is None) != (of_gallery is None):
            known, other = ("gallery", "queries") if of_queries is None else ("queries", "gallery")
            raise InputError(
                f"the {known} have {name} and the {other} have none; wanted both or neither to have them: add them"
            )
        if of_queries is not None and of_gallery is not None:
            groups = shared_codes(of_queries, of_gallery)
            columns.append(_within_labels(queries, gallery, groups) if name == "cameras" else groups)
    if not columns:
        return None
    of_all_queries, of_all_gallery = zip(*columns, strict=True)
    return np.stack(of_all_queries, axis=1), np.stack(of_all_gallery, axis=1)


def any_match(queries: Labelled, gallery: Labelled) -> bool:
    """Whether any query has an item to find; needs no vectors, so it can be checked before training.

    Parameters
    ----------
    queries, gallery : Embeddings or image sets
        Items with labels; the same object twice if they are searched among themselves.

    Returns
    -------
    bool
    """
    query_codes, gallery_codes = shared_codes(labels_of(queries), labels_of(gallery))
    left_out = groups_left_out(queries, gallery)
    if left_out is None:
        counts = np.bincount(gallery_codes, minlength=query_codes.max() + 1)[query_codes]
        return bool((counts > (queries is gallery)).any())
    for code in np.intersect1d(query_codes, gallery_codes):
        of_queries, of_gallery = left_out[0][query_codes == code], left_out[1][gallery_codes == code]
        if (of_queries[:, None] != of_gallery).all(axis=2).any():
            return True
    return False


def without_junk(queries: Embeddings, gallery: Embeddings, junk: str | int | None) -> Embeddings:
    """Leave junk out of a gallery.

    Parameters
    ----------
    queries, gallery : Embeddings
        Junk among the queries is refused, so the gallery must be a set of its own if it has any.
    junk : str, int or None
        The label of items that are neither right nor wrong; None if there is no such label.

    Returns
    -------
    Embeddings
        The other items of the gallery; the gallery itself if there is no junk in it.
    """
    if junk is None:
        return gallery
    kept = labels_of(gallery).astype(str) != str(junk)
    if not kept.any():
        raise InputError(f"every gallery item is labelled {junk!r}, as junk; wanted some items to find: check --junk")
    if gallery is queries and not kept.all():
        raise InputError(
            f"{int((~kept).sum())} queries are labelled {junk!r}, as junk; wanted junk only in a separate gallery: "
            "remove them from the queries"
        )
    return gallery if kept.all() else gallery.take(np.flatnonzero(kept))


def described_rules(gallery: Embeddings, n_junk: int, junk: str | int | None) -> dict[str, str]:
    """Describe the exclusions in the words of a protocol.

    Parameters
    ----------
    gallery : Embeddings
        The gallery without junk.
    n_junk : int
        How many items of junk were left out.
    junk : str, int or None
        Their label.

    Returns
    -------
    dict of str
        What each rule leaves out, by rule; empty where no rule applies.
    """
    described = {} if junk is None else {"junk": f"{n_junk} gallery items labelled {junk} left out"}
    if gallery.cameras is not None:
        described["same_camera"] = "items of the query's label by its own camera left out"
    if gallery.sequences is not None:
        described["same_sequence"] = "items of the query's own sequence left out"
    if gallery.cameras is not None or gallery.sequences is not None:
        described |= {"map": "whole ranking, divided by R", "map-trapezoid": "the same by trapezoids"}
    return described


def _within_labels(queries: Labelled, gallery: Labelled, groups: _Pair) -> _Pair:
    """Divide groups, (N,) and (M,), such that only items of the same label share one."""
    of_queries, of_gallery = shared_codes(labels_of(queries), labels_of(gallery))
    count = 1 + max(int(codes.max()) for codes in groups)
    return of_queries * count + groups[0], of_gallery * count + groups[1]
