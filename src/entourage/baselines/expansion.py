"""Query expansion: a vector plus its neighbours, weighted by similarity. Nothing is learned.

alpha-QE is from "Fine-tuning CNN Image Retrieval with No Human Annotation" (Radenović et al. 2019), plain averaging
(alpha = 0) from "Total Recall" (Chum et al. 2007).
"""

from collections.abc import Iterator

import numpy as np

from entourage.baselines.method import Method, VectorMethod, with_vectors
from entourage.neighbors import search, search_blocks
from entourage.neighbors.sharing import nearest_others
from entourage.runtime.checks import check_not_negative, check_share, check_whole
from entourage.values import Embeddings, Neighbors

__all__ = ["QueryExpansion", "QuerySideExpansion", "expand_queries"]


def expand_queries(items: Embeddings, gallery: Embeddings, neighbors: Neighbors, alpha: float = 3.0) -> Embeddings:
    """Expand queries by their neighbours j: normalise(e_q + sum_j max(s_qj, 0)^alpha e_j); alpha = 0 averages.

    items (N, d), neighbors (N, k) with rows of the gallery. Applied to queries and gallery alike it needs no
    training and no labels.
    """
    weights = np.maximum(neighbors.similarities, 0) ** alpha  # (N, k)
    expanded = items.vectors.copy()
    for start in range(0, len(items), 1024):
        block = slice(start, start + 1024)
        expanded[block] += np.einsum("nk,nkd->nd", weights[block], gallery.vectors[neighbors.rows[block]])
    return with_vectors(items, expanded)


class _Expansion(Method):
    """What query expansion on both sides and on one share: their parameters, and the steps."""

    def __init__(self, k: int = 8, alpha: float = 3.0, steps: int = 1, blend: float = 0.0) -> None:
        self.k = k
        self.alpha = alpha
        self.steps = steps
        self.blend = blend

    def _check_settings(self) -> None:
        check_whole("k", self.k, 1)
        check_not_negative("alpha", self.alpha)
        check_whole("steps", self.steps, 1)
        check_share("blend", self.blend)

    def _expanded(self, items: Embeddings, *, gallery_too: bool) -> Embeddings:
        """The expanded items; gallery_too: whether what is added in a step has been expanded in those before."""
        if len(items) == 1:  # nobody to expand by
            return items
        found = nearest_others(items, min(self.k, len(items) - 1))
        expanded = items
        for _ in range(self.steps):
            expanded = expand_queries(expanded, expanded if gallery_too else items, found, self.alpha)
        return self._blended(items, expanded)

    def _expanded_both(
        self, queries: Embeddings, gallery: Embeddings, *, gallery_too: bool
    ) -> tuple[Embeddings, Embeddings]:
        """Queries expanded by the gallery, step by step with it if it is expanded among itself, too."""
        found = search(queries, gallery, min(self.k, len(gallery)))
        inside = nearest_others(gallery, min(self.k, len(gallery) - 1)) if gallery_too else None
        expanded, among = queries, gallery
        for _ in range(self.steps):
            expanded = expand_queries(expanded, among, found, self.alpha)
            among = expand_queries(among, among, inside, self.alpha) if inside else among
        return self._blended(queries, expanded), self._blended(gallery, among) if inside else gallery

    def _blended(self, items: Embeddings, expanded: Embeddings) -> Embeddings:
        if self.blend == 0:
            return expanded
        return with_vectors(items, self.blend * items.vectors + (1 - self.blend) * expanded.vectors)


class QueryExpansion(VectorMethod, _Expansion):
    """alpha query expansion of all items by their own neighbours, `steps` times:

        z_i <- normalise(z_i + sum_j max(s_ij, 0)^alpha z_j),   then normalise(blend * e_i + (1 - blend) * z_i)

    starting from z = e. The neighbours j and their similarities s are those of e in every step. As every item is
    replaced, this is query expansion with database augmentation. Nothing is learned.
    QueryExpansion(k=8, alpha=0) averages each item with its 8 neighbours: "NN only" in Table 4 of Attend to Context.

    **transform depends on what is there: items are expanded by those they are given with and the items of fit**, if
    there was a fit.

    Parameters
    ----------
    k : int
        Number of neighbours of each item; all other items where there are fewer.
    alpha : float
        How fast the weight falls with the similarity; 0 gives every neighbour the weight of the item itself.
    steps : int
    blend : float
        Share of the item's own vector put back at the end.
    """

    def _learn(self, items: Embeddings) -> None:
        self.items_ = items

    def _moved(self, items: Embeddings) -> Embeddings:
        return self._expanded(items, gallery_too=True)

    def _moved_both(self, queries: Embeddings, gallery: Embeddings) -> tuple[Embeddings, Embeddings]:
        return self._expanded_both(queries, gallery, gallery_too=True)


class QuerySideExpansion(_Expansion):
    """alpha query expansion of the query alone, which is searched among the items as they are.

    It gives rankings and no vectors. Parameters are those of QueryExpansion. Nothing is learned.
    """

    def _rank(self, items: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        # Rows of one set name the same item on both sides, so that no query finds itself.
        queries = Embeddings(self._expanded(items, gallery_too=False).vectors, items.ids)
        return search_blocks(queries, Embeddings(items.vectors, items.ids), k)

    def _rank_in(self, queries: Embeddings, gallery: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        return search_blocks(*self._expanded_both(queries, gallery, gallery_too=False), k)
