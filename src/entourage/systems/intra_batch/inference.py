"""Inference with the trained network: embeddings refined by messages within contexts found without labels.

    RUN/encoder -> vectors -> find_contexts -> refine_in_contexts -> vectors, to be searched among themselves

N items, d dimensions, groups of s items of which r are anchors: their output is all that is wanted.
"""

from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from entourage.errors import InputError, ModelError
from entourage.runtime.config import check_name, check_options
from entourage.runtime.progress import Progress
from entourage.systems.intra_batch.contexts import Contexts, find_contexts
from entourage.systems.intra_batch.network import MessagePassing, Messages
from entourage.systems.intra_batch.saving import TrainedNetwork
from entourage.values import Embeddings

__all__ = ["contexts_for", "refine_by_messages", "refine_in_contexts"]

_VALUES_AT_ONCE = 2**22  # of the embeddings of a block of groups: 16 MiB


def refine_by_messages(
    trained: TrainedNetwork,
    items: Embeddings,
    by: str = "reciprocal",
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Embeddings:
    """Refine embeddings by the messages of their contexts.

    Parameters
    ----------
    trained : TrainedNetwork
        The network of a run.
    items : Embeddings
        N vectors of the run's own encoder.
    by : str
        How contexts are found, one of contexts.CONTEXTS.
    progress : Progress, optional
        Called as progress(title, done, total).
    **options
        Options of `find_contexts`.

    Returns
    -------
    Embeddings
        The same items with refined vectors (N, d).
    """
    contexts = contexts_for(trained, items, by, **options)
    refined = refine_in_contexts(trained.network, items.vectors, contexts, progress=progress)
    return items.replace_vectors(refined)


def contexts_for(trained: TrainedNetwork, items: Embeddings, by: str = "reciprocal", **options: Any) -> Contexts:
    """Find contexts for a network; clusters make groups like the batches it was trained on.

    Parameters
    ----------
    trained : TrainedNetwork
        The network of a run.
    items : Embeddings
        Items with as many dimensions as the network takes.
    by : str
        One of contexts.CONTEXTS.
    **options
        Options of `find_contexts`.

    Returns
    -------
    Contexts
        The contexts of the items.
    """
    if not isinstance(items, Embeddings):
        raise InputError(f"the items are a {type(items).__name__}; wanted Embeddings: Embeddings.from_vectors(items)")
    known = [each.name for each in signature(find_contexts).parameters.values() if each.kind is each.KEYWORD_ONLY]
    for name in options:
        check_name(name, known, "option", "of contexts")
    check_options(find_contexts, options)
    if items.dim != trained.network.dim:
        raise ModelError(
            f"the vectors have {items.dim} dimensions but the network was trained on {trained.network.dim}; "
            "wanted vectors of its own encoder: embed with the run"
        )
    return find_contexts(items, by, **({"batch": trained.batch} | options))


@torch.no_grad()
def refine_in_contexts(
    network: MessagePassing, vectors: np.ndarray, contexts: Contexts, *, progress: Progress | None = None
) -> np.ndarray:
    """Pass messages within given contexts.

    Parameters
    ----------
    network : MessagePassing
        Is put into evaluation mode.
    vectors : ndarray of float32, shape (N, d)
        Unit vectors of the items.
    contexts : Contexts
        Their groups; an item that stands in a group more than once sends its message there once.
    progress : Progress, optional
        Called as progress(title, done, total).

    Returns
    -------
    ndarray of float32, shape (N, d)
        Unit vectors: the network's output for each item in the group where it is an anchor.
    """
    network.eval()
    device = next(network.parameters()).device
    items = torch.from_numpy(np.array(vectors, np.float32)).to(device)
    groups, anchors, group_of, sends = (
        torch.from_numpy(np.ascontiguousarray(part)).to(device)
        for part in (contexts.groups, contexts.anchors, contexts.group_of, ~contexts.repeated)
    )
    # No message is sent before the first step: its products are made once for each item, not once for each group.
    first: Messages = network.steps[0].messages
    products = first.query(items), first.key(items), first.value(items)
    refined = torch.empty_like(items)
    at_once = max(1, _VALUES_AT_ONCE // (groups.shape[1] * items.shape[1]))
    for start in range(0, len(groups), at_once):
        block = slice(start, start + at_once)
        senders = None if sends[block].all() else sends[block]  # attention without a mask is faster
        outputs = _outputs(network, items, products, groups[block], anchors[block], senders)  # (n, r, d)
        rows = groups[block].gather(1, anchors[block])
        own = group_of[rows] == torch.arange(start, start + len(rows), device=device)[:, None]
        refined[rows[own]] = outputs[own]
        if progress:
            progress("passing messages", min(start + at_once, len(groups)), len(groups))
    return F.normalize(refined, dim=1).cpu().numpy()


def _outputs(
    network: MessagePassing,
    items: Tensor,
    products: tuple[Tensor, Tensor, Tensor],
    groups: Tensor,
    anchors: Tensor,
    senders: Tensor | None,
) -> Tensor:
    """(n, r, d) of the anchors (n, r) of groups (n, s); senders (n, s): which of a group send, None for all.

    The last step is taken by the anchors alone, which does not change their output.
    """
    queries, keys, values = products
    last = len(network.steps) - 1
    h = items
    for number, step in enumerate(network.steps):
        if number == 0:
            rows = groups.gather(1, anchors) if last == 0 else groups
            h, query, key, value = items[rows], queries[rows], keys[groups], values[groups]
        else:
            key, value = step.messages.key(h), step.messages.value(h)
            if number == last:
                h = h.gather(1, anchors[..., None].expand(-1, -1, h.shape[2]))
            query = step.messages.query(h)
        h = step.updated(h, step.messages.mixed(query, key, value, senders))
    return h
