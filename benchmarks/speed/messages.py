"""The intra-batch network at test time, 10,000 items of 512 dimensions at most: contexts and messages by default.

The peer is the network run on whole groups: what an item asks and offers is computed anew in every group it stands in,
and all items of a group take the last step, though the anchor's output alone is kept. It is given the same contexts.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch.nn import functional as F

from entourage.runtime.randomness import seeded_weights
from entourage.systems.intra_batch.contexts import Contexts, find_contexts
from entourage.systems.intra_batch.inference import refine_in_contexts
from entourage.systems.intra_batch.network import MessagePassing
from entourage.values import Embeddings
from samples import DIMENSIONS, clustered_items
from timing import Result, best_times

__all__ = ["run"]

MOST_ITEMS = 10_000
AT_ONCE = 1024  # groups


def run(n: int, quick: bool) -> Iterator[Result]:
    items = Embeddings.from_vectors(clustered_items(min(n, MOST_ITEMS))[0])
    contexts = find_contexts(items)
    for steps in (1, 2):
        yield refinement(items, contexts, steps)


def refinement(items: Embeddings, contexts: Contexts, steps: int) -> Result:
    network = seeded_weights(0, lambda: MessagePassing(DIMENSIONS, steps)).eval()
    refined = {}
    contenders = {
        "contexts": lambda: find_contexts(items),
        "network": lambda: refined.update(ours=refine_in_contexts(network, items.vectors, contexts)),
        "whole groups": lambda: refined.update(theirs=whole_groups(network, items.vectors, contexts)),
    }
    seconds = best_times(contenders, repeats=2)
    difference = float(np.abs(refined["ours"] - refined["theirs"]).max())
    assert difference < 1e-4, difference
    sizes = {"n": len(items), "d": items.dim, "group": contexts.groups.shape[1], "steps": steps}
    both = seconds["contexts"] + seconds["network"]
    detail = sizes | {"threads": torch.get_num_threads(), "seconds": seconds, "per_second": len(items) / both}
    name = f"messages, {steps} step{'s' if steps > 1 else ''}"
    ratio = seconds["whole groups"] / seconds["network"]
    return Result(name, "entourage", "the network on whole groups", ratio, None, detail)


@torch.no_grad()
def whole_groups(network: MessagePassing, vectors: np.ndarray, contexts: Contexts) -> np.ndarray:
    groups, anchors = torch.from_numpy(contexts.groups), torch.from_numpy(contexts.anchors[:, 0])
    items, refined = torch.from_dlpack(vectors), []
    for some, places in zip(groups.split(AT_ONCE), anchors.split(AT_ONCE), strict=True):
        refined.append(network(items[some])[torch.arange(len(some)), places])
    return F.normalize(torch.cat(refined), dim=1).numpy()
