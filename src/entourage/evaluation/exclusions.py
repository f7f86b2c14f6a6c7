"""Which items are too easy to find, or neither right nor wrong, and are left out of a query's ranking.

Where cameras are known: items of the query's label by its own camera, as in person re-identification (Market-1501).
Where sequences are known: items of the query's own sequence, whatever their label, as frames of one video (Open Metric
Learning). Junk: items of a label that says so.

Queries and gallery are Embeddings or image sets alike; N and M items, G rules that apply.
"""

import numpy as np

from entourage.errors import InputError
from entourage.values import Embeddings, shared_codes

__all__ = ["any_match", "described_rules", "groups_left_out", "without_junk"]


def groups_left_out(queries, gallery) -> tuple[np.ndarray, np.ndarray] | None:
    """Groups of the queries (N, G) and of the gallery (M, G): who shares one with a query, in any column, is left out.

    None where neither cameras nor sequences are known.
    """
    columns = []
    for name in ("cameras", "sequences"):
        of_queries, of_gallery = getattr(queries, name, None), getattr(gallery, name, None)
        if (of_queries is None) != (of_gallery is None):
            known, other = ("gallery", "queries") if of_queries is None else ("queries", "gallery")
            raise InputError(
                f"{name} are known of the {known} and not of the {other}; wanted both or neither: add them"
            )
        if of_queries is not None:
            groups = shared_codes(of_queries, of_gallery)
            columns.append(_within_labels(queries, gallery, groups) if name == "cameras" else groups)
    return tuple(np.stack(of_set, axis=1) for of_set in zip(*columns, strict=True)) if columns else None


def any_match(queries, gallery) -> bool:
    """Whether any query has an item to find, by labels, cameras and sequences alone: worth asking before a training."""
    query_codes, gallery_codes = shared_codes(queries.labels, gallery.labels)
    left_out = groups_left_out(queries, gallery)
    if left_out is None:
        counts = np.bincount(gallery_codes, minlength=query_codes.max() + 1)[query_codes]
        return bool((counts > (queries is gallery)).any())
    for code in np.intersect1d(query_codes, gallery_codes):
        of_queries, of_gallery = left_out[0][query_codes == code], left_out[1][gallery_codes == code]
        if (of_queries[:, None] != of_gallery).all(axis=2).any():
            return True
    return False


def without_junk(queries: Embeddings, gallery: Embeddings, junk) -> Embeddings:
    """The gallery without the items of the label `junk`; None for no such label."""
    if junk is None:
        return gallery
    kept = gallery.labels.astype(str) != str(junk)
    if not kept.any():
        raise InputError(f"every item of the gallery is labelled {junk!r}, as junk; wanted some to be found")
    if gallery is queries and not kept.all():
        raise InputError(
            f"{int((~kept).sum())} items to be searched for are labelled {junk!r}, as junk; "
            "wanted junk in a gallery of its own: leave them out"
        )
    return gallery if kept.all() else gallery.take(np.flatnonzero(kept))


def described_rules(gallery: Embeddings, n_junk: int, junk) -> dict[str, str]:
    """What a protocol says of the items left out; nothing where no rule applies."""
    said = {} if junk is None else {"junk": f"{n_junk} gallery items labelled {junk} left out"}
    if gallery.cameras is not None:
        said["same_camera"] = "items of the query's label by its own camera left out"
    if gallery.sequences is not None:
        said["same_sequence"] = "items of the query's own sequence left out"
    if gallery.cameras is not None or gallery.sequences is not None:
        said |= {"map": "whole ranking, divided by R", "map-trapezoid": "the same by trapezoids"}
    return said


def _within_labels(queries, gallery, groups) -> tuple[np.ndarray, np.ndarray]:
    """Groups such that only items of one label share one."""
    labels = shared_codes(queries.labels, gallery.labels)
    count = 1 + max(codes.max() for codes in groups)
    return tuple(label * count + group for label, group in zip(labels, groups, strict=True))
