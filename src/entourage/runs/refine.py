"""Refining, and keeping all that is needed to show what it did."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from entourage import __version__
from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import Scores, evaluate_embeddings
from entourage.evaluation.movement import cosines
from entourage.neighbors import own_gallery_rows, search
from entourage.runs.media import Looks
from entourage.runs.refinement_run import (
    CONTEXT,
    CONTEXT_REFINED,
    ITEMS,
    KIND,
    METRICS,
    MODEL,
    NEAREST,
    NEIGHBORS,
    QUERIES,
    REFINED,
    RUN,
    TEXTS,
    RefinementRun,
    open_refinement,
)
from entourage.runtime.versions import library_versions
from entourage.runtime.warnings import collected_warnings
from entourage.stores import check_free, new_folder, write_json
from entourage.values import Embeddings

__all__ = ["keep_refined", "keep_refinement", "write_refinement"]


def keep_refinement(
    folder, refiner, items: Embeddings, context: Embeddings | None = None, *, overwrite: bool = False, **options
) -> RefinementRun:
    """Refine the items, among themselves or in a gallery `context`, and keep it as a new folder.

    refiner: a fitted ContextRefiner. Labels of items and context are for scores and frames alone. options: as
    write_refinement takes them.
    """
    folder = check_free(folder, overwrite=overwrite)
    with new_folder(folder) as filling:
        write_refinement(filling, refiner, items, context, **options)
    return open_refinement(folder)


def write_refinement(
    folder,
    refiner,
    items: Embeddings,
    context: Embeddings | None = None,
    *,
    looks: Looks | None = None,
    steps: int | None = None,
    protocol: dict | None = None,
    settings: dict | None = None,
    nmi: bool = False,
    seconds_before: float = 0.0,
    progress=None,
) -> None:
    """Fill an empty folder with a refinement.

    steps: stop after so many. protocol: what else is to be told of the data and the refiner, in metrics.json;
    settings: what else decided it, in run.json. seconds_before: what was spent on it before.
    """
    folder, started = Path(folder), time.perf_counter() - seconds_before
    sets = _refined(refiner, items, context, steps, progress)
    refiner.save(folder / MODEL)
    told = _context(refiner, items, context, steps) | (protocol or {})
    chosen = _settings(refiner, steps) | (settings or {})
    measured = {"nmi": nmi, "seed": refiner.random_state, "progress": progress}
    _write(folder, sets, looks or Looks(), told, chosen, refiner.report()["warnings"], started, measured)


def keep_refined(
    folder,
    items: Embeddings,
    refined: Embeddings,
    *,
    protocol: dict,
    settings: dict,
    looks: Looks | None = None,
    doubts: Sequence[str] = (),
    overwrite: bool = False,
    progress=None,
) -> RefinementRun:
    """Keep what something else than a ContextRefiner made of the items among themselves, in one step.

    There is no model then: the vectors before and after are all that is known of the way between them. doubts: what
    was warned of.
    """
    folder, started = check_free(folder, overwrite=overwrite), time.perf_counter()
    told = {"items": len(items), "steps": 1} | protocol
    measured = {"nmi": False, "seed": 0, "progress": progress}
    with new_folder(folder) as filling:
        sets = _Sets(items, refined)
        _write(Path(filling), sets, looks or Looks(), told, settings, list(doubts), started, measured)
    return open_refinement(folder)


class _Sets(NamedTuple):
    """Items before and after, and the gallery likewise, where there is one."""

    items: Embeddings
    refined: Embeddings
    context: Embeddings | None = None
    context_refined: Embeddings | None = None

    @property
    def before(self) -> tuple:
        return self.items, self.context

    @property
    def after(self) -> tuple:
        return self.refined, self.context_refined


def _write(
    folder: Path, sets: _Sets, looks: Looks, told: dict, settings: dict, doubts: list, started: float, measured: dict
) -> None:
    """All but the model; measured: options of evaluate_embeddings."""
    progress = measured["progress"]
    for name, embeddings in zip((ITEMS, REFINED, CONTEXT, CONTEXT_REFINED), sets, strict=True):
        if embeddings is not None:
            _save(folder / name, embeddings)
    if looks.texts is not None:
        write_json(folder / TEXTS, {"items": list(looks.texts), "context": _listed(looks.context_texts)})
    nearest = {"before": _nearest(*sets.before, progress), "after": _nearest(*sets.after, progress)}
    _save_nearest(folder / NEIGHBORS, nearest)
    with collected_warnings() as heard:
        before, after = _scores(*sets.before, **measured), _scores(*sets.after, **measured)
    if before and after:
        _save_queries(folder / QUERIES, {"before": before, "after": after})
    document = _document(before, after, told, [*doubts, *heard])
    write_json(folder / METRICS, document | {"movement": _movement(sets.items, sets.refined, nearest)})
    run = {"entourage": __version__, "kind": KIND, "settings": settings, "seed": measured["seed"]}
    run |= {"seconds": round(time.perf_counter() - started, 1), "versions": library_versions()}
    write_json(folder / RUN, run | {"looks": _described(looks)})


def _refined(refiner, items, context, steps, progress) -> _Sets:
    refined = items.replace_vectors(refiner.transform(items, context, steps=steps, progress=progress))
    if context is None:
        return _Sets(items, refined)
    gallery = refiner.transform(context, steps=steps, progress=progress)
    return _Sets(items, refined, context, context.replace_vectors(gallery))


def _nearest(items: Embeddings, context: Embeddings | None, progress):
    gallery = items if context is None else context
    available = len(gallery) - bool((own_gallery_rows(items, gallery) >= 0).any())
    return search(items, context, min(NEAREST, available), progress=progress)


def _scores(items: Embeddings, context: Embeddings | None, **options) -> Scores | None:
    """None where labels are not known, or tell nothing; the latter with a warning."""
    if items.labels is None or (context is not None and context.labels is None):
        return None
    try:
        return evaluate_embeddings(items, context, **options)
    except InputError as error:
        warnings.warn(f"not scored: {error}", EntourageWarning, stacklevel=2)
        return None


def _document(before: Scores | None, after: Scores | None, told: dict, doubts: list[str]) -> dict:
    if not (before and after):
        return {"protocol": told, "metrics": {}, "metrics_before": {}, "intervals": {}, "warnings": doubts}
    from entourage.evaluation.bootstrap import paired_bootstraps

    intervals = paired_bootstraps(after.per_query, before.per_query)
    return {
        "protocol": told | after.protocol,
        "metrics": after.metrics,
        "metrics_before": before.metrics,
        "intervals": {name: interval.document() for name, interval in intervals.items()},
        "warnings": doubts,
    }


def _movement(items: Embeddings, refined: Embeddings, nearest: dict) -> dict:
    """How much changed, labels or not: how many of the nearest stayed so, and cosines to the input."""
    before, after = nearest["before"], nearest["after"]
    kept = {f"share_of_{before.k}_nearest_kept": float(before.kept_in(after).mean() / before.k)}
    return kept | cosines(items, refined.vectors)


def _context(refiner, items: Embeddings, context: Embeddings | None, steps: int | None) -> dict:
    among = "transductive: {} neighbours among the items" if context is None else "gallery: {} neighbours of {} items"
    return {
        "items": len(items),
        "context": among.format(refiner.n_neighbors_, *([] if context is None else [len(context)])) + ", labels unused",
        "steps": refiner.n_steps_ if steps is None else steps,
    }


def _settings(refiner, steps: int | None) -> dict:
    chosen = {"recipe": refiner.report()["protocol"]["recipe"]} | refiner.settings()
    taken = int(refiner.n_steps_) if steps is None else steps
    learned = {"n_neighbors": int(refiner.n_neighbors_), "n_steps": int(refiner.n_steps_), "steps": taken}
    scorer = refiner.report()["protocol"].get("scorer")  # "universal", where nothing was learned from labels
    return {"refiner": chosen | ({"scorer": scorer} if scorer else {}) | learned}


def _described(looks: Looks) -> dict | None:
    if looks.pictures is not None:
        return {"pictures": asdict(looks.pictures)}
    return None if looks.texts is None else {"texts": TEXTS}


def _listed(texts) -> list[str] | None:
    return None if texts is None else list(texts)


def _save(path: Path, items: Embeddings) -> None:
    columns = {"labels": items.labels, "cameras": items.cameras, "sequences": items.sequences}
    columns |= {"ids": items.ids} if items.named else {}
    np.savez(path, vectors=items.vectors, **{name: column for name, column in columns.items() if column is not None})


def _save_nearest(path: Path, nearest: dict) -> None:
    rows = {f"rows_{when}": found.rows for when, found in nearest.items()}
    np.savez(path, **rows, **{f"similarities_{when}": found.similarities for when, found in nearest.items()})


def _save_queries(path: Path, scores: dict[str, Scores]) -> None:
    found = {f"recall@1_{when}": each.recall_at_1 for when, each in scores.items()}
    np.savez(path, **found, **{f"map@r_{when}": each.average_precision for when, each in scores.items()})
