"""The trained network at test time: embeddings refined by messages within contexts found without labels.

    RUN/encoder -> vectors -> find_contexts -> refine_in_contexts -> vectors, to be searched among themselves

N items, d dimensions, groups of s items of which r are anchors: their output is all that is wanted.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from entourage.errors import InputError, ModelError
from entourage.runtime.config import check_known, check_options
from entourage.systems.intra_batch.contexts import Contexts, find_contexts
from entourage.systems.intra_batch.network import MessagePassing
from entourage.systems.intra_batch.saving import TrainedNetwork
from entourage.values import Embeddings

__all__ = ["contexts_for", "refine_by_messages", "refine_in_contexts"]

_VALUES_AT_ONCE = 2**22  # of the embeddings of a block of groups: 16 MiB


def refine_by_messages(
    trained: TrainedNetwork, items: Embeddings, by: str = "reciprocal", *, progress=None, **options
) -> Embeddings:
    """Items with the vectors the network gives them in contexts by name; options: those of `find_contexts`."""
    contexts = contexts_for(trained, items, by, **options)
    refined = refine_in_contexts(trained.network, items.vectors, contexts, progress=progress)
    return items.replace_vectors(refined)


def contexts_for(trained: TrainedNetwork, items: Embeddings, by: str = "reciprocal", **options) -> Contexts:
    """The contexts of items the network can take; clusters make groups like its batches."""
    if not isinstance(items, Embeddings):
        raise InputError(f"the items are a {type(items).__name__}; wanted Embeddings: Embeddings.from_vectors(items)")
    for name in options:
        check_known(name, find_contexts.__kwdefaults__, "an option of contexts")
    check_options(find_contexts, options)
    if items.dim != trained.network.dim:
        raise ModelError(
            f"the vectors have {items.dim} dimensions but the network was trained on {trained.network.dim}; refine the "
            "vectors of its own encoder"
        )
    return find_contexts(items, by, **({"batch": trained.batch} | options))


@torch.no_grad()
def refine_in_contexts(
    network: MessagePassing, vectors: np.ndarray, contexts: Contexts, *, progress=None
) -> np.ndarray:
    """Unit vectors (N, d): what the network makes of each item (N, d) in the group where it is an anchor.

    An item that stands in a group more than once is heard there once.
    """
    network.eval()
    device = next(network.parameters()).device
    items = torch.from_numpy(np.array(vectors, np.float32)).to(device)
    groups, anchors, group_of, heard = (
        torch.from_numpy(np.ascontiguousarray(part)).to(device)
        for part in (contexts.groups, contexts.anchors, contexts.group_of, ~contexts.repeated)
    )
    # No message is sent before the first step: what it asks and offers is one product for each item, not each group.
    first = network.steps[0].messages
    offered = first.query(items), first.key(items), first.value(items)
    refined = torch.empty_like(items)
    at_once = max(1, _VALUES_AT_ONCE // (groups.shape[1] * items.shape[1]))
    for start in range(0, len(groups), at_once):
        block = slice(start, start + at_once)
        counted = None if heard[block].all() else heard[block]  # attention without a mask is faster
        outputs = _outputs(network, items, offered, groups[block], anchors[block], counted)  # (n, r, d)
        rows = groups[block].gather(1, anchors[block])
        own = group_of[rows] == torch.arange(start, start + len(rows), device=device)[:, None]
        refined[rows[own]] = outputs[own]
        if progress:
            progress("passing messages", min(start + at_once, len(groups)), len(groups))
    return F.normalize(refined, dim=1).cpu().numpy()


def _outputs(
    network: MessagePassing, items: Tensor, offered: tuple, groups: Tensor, anchors: Tensor, heard: Tensor | None
) -> Tensor:
    """(n, r, d) of the anchors (n, r) of groups (n, s), heard (n, s) or None for all.

    The last step is taken by the anchors alone, which changes nothing.
    """
    queries, keys, values = offered
    last = len(network.steps) - 1
    h = None
    for number, step in enumerate(network.steps):
        if number == 0:
            rows = groups.gather(1, anchors) if last == 0 else groups
            h, query, key, value = items[rows], queries[rows], keys[groups], values[groups]
        else:
            key, value = step.messages.key(h), step.messages.value(h)
            if number == last:
                h = h.gather(1, anchors[..., None].expand(-1, -1, h.shape[2]))
            query = step.messages.query(h)
        h = step.updated(h, step.messages.mixed(query, key, value, heard))
    return h
