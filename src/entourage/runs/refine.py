"""Refining a file of vectors: read, refine with the requested model, write, and record how it was done."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from entourage.evaluation.movement import cosines
from entourage.runs.media import Media
from entourage.runs.refine_request import RefineRequest
from entourage.runs.refinement_files import RefinedSets, fill_run
from entourage.runs.refinement_run import RefinementRun, open_refinement
from entourage.runs.refiners import FittedRefiner, Refinement, open_refiner
from entourage.runtime.progress import Progress
from entourage.runtime.warnings import collected_warnings
from entourage.stores import check_free, new_folder, write_like
from entourage.values import Embeddings

if TYPE_CHECKING:
    from entourage.refiner.estimator import ContextRefiner

__all__ = ["RefineRequest", "RefineResult", "fill_refinement", "refine", "write_refinement"]

_ONE_SIDED = "search the refined queries in the refined gallery only: add --context-out to refine it"


@dataclass(frozen=True, eq=False)
class RefineResult:
    """The result of a refinement: vectors, protocol, scores and where they were written."""

    vectors: np.ndarray
    """(N, d) the refined items, in the order of the file."""
    protocol: dict
    """Items, model, context, steps: how it was done."""
    metrics: dict
    """How far the vectors moved and, of the universal refiner, what it expects; no labels are needed."""
    warnings: tuple[str, ...]
    """Warnings; none of them is issued as a Python warning."""
    scores: dict[str, dict]
    """{"before", "after"} -> metrics, where a run was written and labels are known; else empty."""
    written: dict[str, Path]
    """{"out", "context_out", "run"} -> the file or folder, as far as they were asked for."""

    def document(self) -> dict:
        """Return what `entourage refine --json` prints."""
        document = {"protocol": self.protocol, "metrics": self.metrics, "warnings": list(self.warnings)}
        document |= {name: str(place) for name, place in self.written.items()}
        return document | ({"scores": self.scores} if self.scores else {})


def refine(request: RefineRequest, *, progress: Progress | None = None) -> RefineResult:
    """Refine a file of vectors, with a model or without, and write the requested outputs.

    Parameters
    ----------
    request : RefineRequest
        Files, model and options.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    RefineResult
        The refined vectors and how they were made. Nothing is written before everything is refined.
    """
    request.check()
    started = time.perf_counter()
    items, context = request.read()
    with collected_warnings() as warnings:
        media = request.media(items, context)
        refiner = open_refiner(request)
        both = request.run is not None or request.context_out is not None
        done = refiner.refine(_unlabelled(items), _unlabelled(context), both=both, progress=progress)
    scores = {}
    if request.run is not None:
        kept = {"warnings": [*done.record.warnings, *warnings], "started": started, "progress": progress}
        measured = _write_run(request, _sets(items, context, done), done, media, **kept)
        warnings = measured["warnings"]
        if measured["metrics"]:
            scores = {"before": measured["metrics_before"], "after": measured["metrics"]}
    written = _write_vectors(request, done)
    if context is not None and request.context_out is None and request.out is not None:
        warnings = [*warnings, _ONE_SIDED]
    metrics = done.metrics | cosines(items, done.vectors)
    return RefineResult(done.vectors, done.protocol, metrics, tuple(warnings), scores, written)


def write_refinement(
    folder: str | Path,
    refiner: "ContextRefiner",
    items: Embeddings,
    context: Embeddings | None = None,
    *,
    overwrite: bool = False,
    **options,
) -> RefinementRun:
    """Refine items with a fitted refiner and write a new refinement run.

    Parameters
    ----------
    folder : path
        Where the run is written.
    refiner : ContextRefiner or PaperRefiner
        A fitted refiner.
    items : Embeddings
        N items; their labels are used for scores and figures only.
    context : Embeddings, optional
        M items of a gallery to find neighbours in and to search; by default the items themselves.
    overwrite : bool
        Whether an existing run is replaced.
    **options
        As in `fill_refinement`.

    Returns
    -------
    RefinementRun
        The run, opened.
    """
    folder = check_free(folder, overwrite=overwrite)
    with new_folder(folder) as filling:
        fill_refinement(filling, refiner, items, context, **options)
    return open_refinement(folder)


def fill_refinement(
    folder: Path,
    refiner: "ContextRefiner",
    items: Embeddings,
    context: Embeddings | None = None,
    *,
    media: Media | None = None,
    steps: int | None = None,
    protocol: dict | None = None,
    settings: dict | None = None,
    nmi: bool = False,
    seconds_before: float = 0.0,
    progress: Progress | None = None,
) -> dict:
    """Fill an empty folder with a refinement run.

    Parameters
    ----------
    folder, refiner, items, context
        As in `write_refinement`.
    media : Media, optional
        Where pictures or texts of the items come from.
    steps : int, optional
        Stop after this many steps; all by default.
    protocol : dict, optional
        Further entries of the protocol in metrics.json.
    settings : dict, optional
        Further settings for run.json.
    nmi : bool
        Whether to cluster the items for NMI.
    seconds_before : float
        Time already spent on the run.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    dict
        The content of metrics.json.
    """
    started = time.perf_counter() - seconds_before
    by = FittedRefiner(refiner, steps=steps)
    done = by.refine(_unlabelled(items), _unlabelled(context), both=context is not None, progress=progress)
    return fill_run(
        folder,
        _sets(items, context, done),
        media=media or Media(),
        protocol=done.record.protocol | (protocol or {}),
        settings=done.record.settings | (settings or {}),
        warnings=done.record.warnings,
        seed=done.record.seed,
        model=done.model,
        nmi=nmi,
        started=started,
        progress=progress,
    )


def _write_run(request: RefineRequest, sets: RefinedSets, done: Refinement, media: Media, **kept) -> dict:
    record = done.record
    with new_folder(request.run) as filling:
        return fill_run(
            filling,
            sets,
            media=media,
            protocol=record.protocol,
            settings=record.settings,
            seed=record.seed,
            model=done.model,
            **kept,
        )


def _write_vectors(request: RefineRequest, done: Refinement) -> dict[str, Path]:
    written = {"out": request.out, "context_out": request.context_out, "run": request.run}
    if request.out is not None:
        write_like(request.vectors, request.out, done.vectors)
    if request.context_out is not None:
        write_like(request.context, request.context_out, done.context_vectors)
    return {name: place for name, place in written.items() if place is not None}


def _sets(items: Embeddings, context: Embeddings | None, done: Refinement) -> RefinedSets:
    refined = items.replace_vectors(done.vectors)
    if context is None:
        return RefinedSets(items, refined)
    return RefinedSets(items, refined, context, context.replace_vectors(done.context_vectors))


def _unlabelled(items: Embeddings | None) -> Embeddings | None:
    """The items as a refiner may see them: labels are for scores alone."""
    return None if items is None else Embeddings(items.vectors, items.ids, named=items.named)
