"""pytorch-metric-learning: our search as its `knn_func`, our losses in its trainers; its losses in ours need nothing.

N queries, M references, k neighbours, b items of a batch.
"""

from typing import TYPE_CHECKING, Any

from entourage.errors import InputError
from entourage.neighbors import search
from entourage.runtime.extras import optional
from entourage.values import Embeddings, as_embeddings

with optional("training with pytorch-metric-learning"):
    import torch
    from torch import nn

    from entourage.training.losses import build_loss

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["MetricLoss", "knn_func"]


def knn_func(
    query: "Tensor", k: int, reference: "Tensor | None" = None, ref_includes_query: bool = False
) -> "tuple[Tensor, Tensor]":
    """Search exactly by cosine, with ties by row: a `knn_func` for AccuracyCalculator.

    An item is left out of its own neighbours by its row, and not as the first of them, which may be another one if
    vectors are equal.

    Parameters
    ----------
    query : Tensor of shape (N, d)
    k : int
        How many neighbours to find.
    reference : Tensor of shape (M, d), optional
        Where to find them; by default among the queries.
    ref_includes_query : bool
        Whether the first N references are the queries.

    Returns
    -------
    distances : Tensor of shape (N, k)
        Euclidean distances of the vectors scaled to length 1, ascending.
    indices : Tensor of shape (N, k)
        Rows of the references.

    Examples
    --------
    >>> knn_func(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), 1)[1].tolist()
    [[1], [0], [1]]
    """
    if reference is None or reference is query:
        found = search(query, k=k)
    else:
        queries, gallery = as_embeddings(query, name="the queries"), as_embeddings(reference, name="the references")
        if ref_includes_query:  # rows as ids, by which each finds itself
            if len(queries) > len(gallery):
                raise InputError(
                    f"there are {len(queries)} queries and {len(gallery)} references, which should include them; give "
                    "all references, or ref_includes_query=False"
                )
            rows = gallery.ids
            queries, gallery = Embeddings(queries.vectors, rows[: len(queries)]), Embeddings(gallery.vectors, rows)
        found = search(queries, gallery, k)
    similarities = torch.tensor(found.similarities, device=query.device)
    distances = (2 - 2 * similarities).clamp(min=0).sqrt()
    return distances, torch.tensor(found.rows, device=query.device)


class MetricLoss(nn.Module):
    """A loss of Entourage as pytorch-metric-learning calls its own, for its trainers.

    Parameters
    ----------
    loss : str or callable
        A name such as "ms", or any loss(embeddings, labels); see `entourage.training.losses.build_loss`.
    n_classes : int
        How many classes there are, for losses with a proxy for each.
    dim : int
        Dimensions of the embeddings.
    **options
        Options of the named loss.

    Examples
    --------
    >>> loss = MetricLoss("ms")
    >>> round(loss(torch.eye(4), torch.tensor([0, 0, 1, 1])).item(), 3)
    0.657
    """

    def __init__(self, loss: Any = "ms", n_classes: int = 0, dim: int = 0, **options: Any) -> None:
        super().__init__()
        self.loss = build_loss(loss, n_classes, dim, **options)

    def forward(
        self,
        embeddings: "Tensor",
        labels: "Tensor",
        indices_tuple: Any = None,
        ref_emb: Any = None,
        ref_labels: Any = None,
    ) -> "Tensor":
        """The loss () of embeddings (b, d), which are scaled to length 1, with labels (b,)."""
        if indices_tuple is not None or ref_emb is not None:
            raise InputError(
                "a loss of Entourage was given mined pairs or references, which it does not take; leave out the "
                "mining function and the references, or choose a loss that mines by itself, such as triplet"
            )
        value: Tensor = self.loss(nn.functional.normalize(embeddings), labels)
        return value
