"""A refinement kept as a folder, to be looked at, drawn and reported later.

    RUN/run.json              kind "refinement", settings, seed, seconds, versions, and how the items look
    RUN/metrics.json          protocol, scores before and after, intervals of their differences, warnings
    RUN/items.npz             raw vectors, ids, labels;   RUN/refined.npz: the refined ones
    RUN/context.npz           of a gallery, where one was given, with RUN/context_refined.npz
    RUN/neighbors.npz         the nearest items of each, before and after
    RUN/queries.npz           recall@1 and AP@R of each query, before and after, where labels are known
    RUN/model/                the refiner, where one did it
    RUN/texts.json            what the items say, where they are texts

Labels are for scores and frames alone: nothing here refines by them.
"""

from entourage.refinements.keeping import keep_refined, keep_refinement, write_refinement
from entourage.refinements.looks import Looks, PictureSource
from entourage.refinements.opening import Refinement, open_refinement

__all__ = [
    "Looks",
    "PictureSource",
    "Refinement",
    "keep_refined",
    "keep_refinement",
    "open_refinement",
    "write_refinement",
]
