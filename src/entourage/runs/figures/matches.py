"""Where the matches of a query stood and where they stand: what average precision lost may lie far down a ranking."""

import numpy as np

from entourage.evaluation.exclusions import groups_left_out
from entourage.neighbors import own_gallery_rows, search
from entourage.runs.refinement_run import RefinementRun
from entourage.values import BoolArray, Embeddings, IntArray, shared_codes

__all__ = ["match_ranks", "moved_matches", "ranks_of"]

_LISTED = 4  # ranks


def moved_matches(run: RefinementRun, row: int) -> str:
    """Say from which ranks to which the matches of a query rose or fell that made its average precision rise or fall.

    Parameters
    ----------
    run : RefinementRun
        With labels.
    row : int
        The query.

    Returns
    -------
    str
        Such as "2 of 9 matches fell from ranks 8, 9 to 31, 40"; empty if it neither rose nor fell.
    """
    gain = 0.0 if run.gains is None else float(run.gains[row])
    if not gain:
        return ""
    before = match_ranks(run.items, row, run.items if run.context is None else run.context)
    after = match_ranks(run.refined, row, run.refined if run.context_refined is None else run.context_refined)
    return _in_words(before, after, rose=gain > 0)


def _in_words(before: IntArray, after: IntArray, *, rose: bool) -> str:
    """Say which of R matches rose, or fell: those that crossed rank R, which alone count, or moved before it.

    >>> _in_words(np.array([1, 2, 3]), np.array([1, 9, 7]), rose=False)
    '2 of 3 matches fell from ranks 2, 3 to 9, 7'
    >>> _in_words(np.array([1, 9]), np.array([1, 2]), rose=True)
    '1 of 2 matches rose from rank 9 to 2'
    """
    count = len(before)
    better, worse = (after, before) if rose else (before, after)
    moved = (better < worse) & (better <= count)
    moved = moved & (worse > count) if (moved & (worse > count)).any() else moved
    rows = np.flatnonzero(moved)[np.argsort(better[moved], kind="stable")]
    ends = [_listed(each[rows]) for each in (before, after)]
    ranks = "rank" if len(rows) == 1 else "ranks"
    which = "the only match" if count == 1 else f"{len(rows):,} of {count:,} matches"
    return f"{which} {'rose' if rose else 'fell'} from {ranks} {ends[0]} to {ends[1]}"


def _listed(ranks: IntArray) -> str:
    more = ", …" if len(ranks) > _LISTED else ""
    return ", ".join(map(str, ranks[:_LISTED])) + more  # without separators: commas are between ranks


def match_ranks(items: Embeddings, row: int, gallery: Embeddings) -> IntArray:
    """Find where the items of a query's label stand in its ranking, as scores rank them.

    Parameters
    ----------
    items : Embeddings
        N items with labels.
    row : int
        The query among them.
    gallery : Embeddings
        What is searched; the items themselves, or others with labels.

    Returns
    -------
    array of shape (R,)
        Ranks, counted from 1, in the order of the matches in the gallery; what scores leave out has none.
    """
    query = items.take([row])
    assert query.labels is not None and gallery.labels is not None  # or there were no scores
    code, codes = shared_codes(query.labels, gallery.labels)
    counted = np.ones(len(gallery), bool)
    groups = groups_left_out(query, gallery)
    if groups is not None:
        counted = ~(groups[0] == groups[1]).any(axis=1)
    ranks = _ranks(items, row, gallery, counted)
    return np.asarray(ranks[(codes == code) & counted & (ranks > 0)])


def ranks_of(items: Embeddings, row: int, gallery: Embeddings, rows: IntArray) -> IntArray:
    """Where these rows of the gallery stand when item `row` is searched in it, counted from 1.

    >>> items = Embeddings.from_vectors([[1.0, 0.0], [0.6, 0.8], [0.8, 0.6]])
    >>> ranks_of(items, 0, items, np.array([1, 2])).tolist()
    [2, 1]
    """
    return _ranks(items, row, gallery, np.ones(len(gallery), bool))[rows]


def _ranks(items: Embeddings, row: int, gallery: Embeddings, counted: BoolArray) -> IntArray:
    """The rank of each gallery item for query `row`, (M,), from 1 among those that count; 0 for the query itself."""
    query, own = items.take([row]), own_gallery_rows(items, gallery)[row]
    if gallery is items and not items.named:  # row numbers are names within one set
        query, gallery = (Embeddings(each.vectors, each.ids) for each in (query, gallery))
    found = search(query, gallery, len(gallery) - int(own >= 0)).rows[0]
    ranks = np.zeros(len(gallery), int)
    ranks[found] = np.cumsum(counted[found])
    return ranks
