"""The files of a refinement run: vectors before and after, their neighbours, and how they score."""

import math
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from entourage import __version__
from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import Scores, evaluate_embeddings
from entourage.evaluation.movement import cosines
from entourage.neighbors import own_gallery_rows, search
from entourage.runs.layout import (
    CONTEXT,
    CONTEXT_REFINED,
    ITEMS,
    METRICS,
    MODEL,
    NEIGHBORS,
    QUERIES,
    REFINED,
    RUN,
    TEXTS,
)
from entourage.runs.media import Media
from entourage.runs.refinement_run import KIND, NEAREST
from entourage.runs.refiners import RunRecord
from entourage.runtime.progress import Progress
from entourage.runtime.versions import library_versions
from entourage.runtime.warnings import collected_warnings
from entourage.stores import write_json
from entourage.values import Embeddings, Neighbors, brief, labels_of

if TYPE_CHECKING:
    from entourage.refiner import ContextRefiner, PaperRefiner

__all__ = ["RefinedSets", "fill_run"]

MOST_RANKED = 10**11
"""Pairs of queries and items; all of a gallery is ranked for every query, exactly."""

_Arrays = dict[str, Any]  # by name; Any, as mypy reads each of them as the option allow_pickle of np.savez


class RefinedSets(NamedTuple):
    """Items before and after, and the gallery likewise, where there is one."""

    items: Embeddings
    refined: Embeddings
    context: Embeddings | None = None
    context_refined: Embeddings | None = None

    def __repr__(self) -> str:
        return brief(self)

    @property
    def before(self) -> tuple[Embeddings, Embeddings | None]:
        return self.items, self.context

    @property
    def after(self) -> tuple[Embeddings, Embeddings | None]:
        return self.refined, self.context_refined


def fill_run(
    folder: Path,
    sets: RefinedSets,
    record: RunRecord,
    *,
    media: Media,
    started: float,
    model: "ContextRefiner | PaperRefiner | None" = None,
    at: tuple[int, ...] | None = None,
    nmi: bool = False,
    progress: Progress | None = None,
) -> dict:
    """Fill an empty folder with a refinement run.

    Parameters
    ----------
    folder : Path
        An empty folder.
    sets : RefinedSets
        Items and gallery, before and after.
    record : RunRecord
        What the run records about the refiner; the protocol of the scores and the warnings issued while scoring are
        added. Its seed is also that of the clusters for NMI.
    media : Media
        Where pictures or texts of the items come from.
    started : float
        When the run began, by time.perf_counter.
    model : ContextRefiner or PaperRefiner, optional
        The fitted refiner to save.
    at : tuple of int, optional
        At which k to measure, as `evaluate_embeddings` takes it.
    nmi : bool
        Whether to cluster the items for NMI.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    dict
        The content of metrics.json.
    """
    for name, embeddings in zip((ITEMS, REFINED, CONTEXT, CONTEXT_REFINED), sets, strict=True):
        if embeddings is not None:
            _save(folder / name, embeddings)
    if model is not None:
        model.save(folder / MODEL)
    if media.texts is not None:
        gallery = None if media.context_texts is None else list(media.context_texts)
        write_json(folder / TEXTS, {"items": list(media.texts), "context": gallery})
    nearest = {"before": _nearest(*sets.before, progress), "after": _nearest(*sets.after, progress)}
    _save_nearest(folder / NEIGHBORS, nearest)
    with collected_warnings() as given:
        before, after = (_scores(*each, at, nmi, record.seed, progress) for each in (sets.before, sets.after))
    if before and after:
        _save_queries(folder / QUERIES, {"before": before, "after": after})
    document = _document(before, after, record.protocol, list(dict.fromkeys([*record.warnings, *given])), sets.items)
    document |= {"movement": _movement(sets.items, sets.refined, nearest)}
    write_json(folder / METRICS, document)
    run = {"entourage": __version__, "kind": KIND, "settings": record.settings, "seed": record.seed}
    run |= {"seconds": round(time.perf_counter() - started, 1), "versions": library_versions()}
    write_json(folder / RUN, run | {"media": _described(media)})
    return document


def _nearest(items: Embeddings, context: Embeddings | None, progress: Progress | None) -> Neighbors:
    gallery = items if context is None else context
    available = len(gallery) - bool((own_gallery_rows(items, gallery) >= 0).any())
    return search(items, context, min(NEAREST, available), progress=progress)


def _scores(
    items: Embeddings,
    context: Embeddings | None,
    at: tuple[int, ...] | None,
    nmi: bool,
    seed: int,
    progress: Progress | None,
) -> Scores | None:
    """None where labels are not known, tell nothing or are too many to rank by; the latter two with a warning."""
    if items.labels is None or (context is not None and context.labels is None):
        return None
    gallery = len(items if context is None else context)
    if len(items) * gallery > MOST_RANKED:
        warnings.warn(
            f"not scored: to rank {gallery:,} items for each of {len(items):,} queries may take hours; wanted at most "
            f"{MOST_RANKED:,} pairs ({math.isqrt(MOST_RANKED):,} items among themselves): score fewer rows with "
            "`entourage evaluate`",
            EntourageWarning,
            stacklevel=2,
        )
        return None
    try:
        return evaluate_embeddings(items, context, at=at, nmi=nmi, seed=seed, progress=progress)
    except InputError as error:
        warnings.warn(f"not scored: {error}", EntourageWarning, stacklevel=2)
        return None


def _document(
    before: Scores | None, after: Scores | None, protocol: dict, warnings: list[str], queries: Embeddings
) -> dict:
    if not (before and after):
        return {"protocol": protocol, "metrics": {}, "metrics_before": {}, "intervals": {}, "warnings": warnings}
    from entourage.evaluation.bootstrap import intervals_over_classes, resampled

    labels = labels_of(queries)
    intervals = intervals_over_classes(after.per_query, before.per_query, labels)
    return {
        "protocol": protocol | after.protocol | {"intervals": resampled(labels)},
        "metrics": after.metrics,
        "metrics_before": before.metrics,
        "intervals": {name: interval.document() for name, interval in intervals.items()},
        "warnings": warnings,
    }


def _movement(items: Embeddings, refined: Embeddings, nearest: dict[str, Neighbors]) -> dict:
    """How much changed, labels or not: how many of the nearest stayed so, and cosines to the input."""
    before, after = nearest["before"], nearest["after"]
    kept = {f"share_of_{before.k}_nearest_kept": float(before.kept_in(after).mean() / before.k)}
    return kept | cosines(items, refined.vectors)


def _described(media: Media) -> dict | None:
    if media.pictures is not None:
        return {"pictures": asdict(media.pictures)}
    return None if media.texts is None else {"texts": TEXTS}


def _save(path: Path, items: Embeddings) -> None:
    columns = {"labels": items.labels, "cameras": items.cameras, "sequences": items.sequences}
    columns |= {"ids": items.ids} if items.named else {}
    known: _Arrays = {name: column for name, column in columns.items() if column is not None}
    np.savez(path, vectors=items.vectors, **known)


def _save_nearest(path: Path, nearest: dict[str, Neighbors]) -> None:
    arrays: _Arrays = {f"rows_{when}": found.rows for when, found in nearest.items()}
    arrays |= {f"similarities_{when}": found.similarities for when, found in nearest.items()}
    np.savez(path, **arrays)


def _save_queries(path: Path, scores: dict[str, Scores]) -> None:
    arrays: _Arrays = {f"recall@1_{when}": each.recall_at_1 for when, each in scores.items()}
    arrays |= {f"map@r_{when}": each.average_precision for when, each in scores.items()}
    np.savez(path, **arrays)
