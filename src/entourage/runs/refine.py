"""Refining a file of vectors: read, refine with the requested model, write, and record how it was done."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entourage.evaluation.movement import cosines
from entourage.neighbors import SearchIndex
from entourage.runs.media import Media
from entourage.runs.refine_request import RefineRequest
from entourage.runs.refinement_files import RefinedSets, fill_run
from entourage.runs.refinement_run import RefinementRun, open_refinement
from entourage.runs.refiners import FittedRefiner, Refinement, Refiner, RunRecord, open_refiner
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.warnings import collected_warnings
from entourage.stores import Outputs, new_folder, warn_if_one_is_refined, write_like
from entourage.stores.confidences import write_confidences
from entourage.values import Embeddings, FloatArray, brief

if TYPE_CHECKING:
    from entourage.refiner import ContextRefiner, PaperRefiner

__all__ = ["RefineRequest", "RefineResult", "RefinementNotes", "fill_refinement", "refine", "write_refinement"]

_ONE_SIDED = "search the refined queries in the refined gallery only: add --context-out to refine it"


@dataclass(frozen=True, eq=False)
class RefineResult:
    """The result of a refinement: vectors, protocol, scores and where they were written."""

    vectors: FloatArray
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
    """{"out", "context_out", "confidence", "run"} -> the file or folder, as far as they were asked for."""

    __repr__ = brief

    def document(self) -> dict:
        """Return what `entourage refine --json` prints."""
        document = {"protocol": self.protocol, "metrics": self.metrics, "warnings": list(self.warnings)}
        document |= {name: str(place) for name, place in self.written.items()}
        return document | ({"scores": self.scores} if self.scores else {})


@dataclass(frozen=True)
class RefinementNotes:
    """Further entries of a run's record about what preceded the refinement, such as the training of its encoder."""

    protocol: dict = field(default_factory=dict)
    """Further entries of the protocol in metrics.json."""
    settings: dict = field(default_factory=dict)
    """Further settings for run.json."""
    seconds: float = 0.0
    """Time that it took, in seconds."""

    def added_to(self, record: RunRecord) -> RunRecord:
        """Return the record of the refiner with these notes, which take precedence."""
        return replace(record, protocol=record.protocol | self.protocol, settings=record.settings | self.settings)


@shows_progress
def refine(request: RefineRequest, *, progress: ShowProgress = None) -> RefineResult:
    """Refine a file of vectors, with a model or without, and write the requested outputs.

    Parameters
    ----------
    request : RefineRequest
        Files, model and options.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    RefineResult
        The refined vectors and how they were made. Nothing is written before everything is refined.
    """
    request.check()
    started = time.perf_counter()
    with collected_warnings() as warnings:
        refiner = open_refiner(request)  # before files are read, which takes longer than to refuse a model
        items, context = request.read()
        if request.context is not None:
            warn_if_one_is_refined(request.vectors, request.context)
        media = request.media(items, context)
        both = request.run is not None or request.context_out is not None
        done = _refined(refiner, items, context, both, progress, **request.given_lists(items, context))
    scores = {}
    with Outputs(overwrite=request.overwrite) as outputs:  # they belong together, so they change as one
        written = _write_vectors(request, done, outputs)
        if request.confidence is not None:
            write_confidences(request.confidence, items.ids, _confidences(items, context), outputs)
        if request.run is not None:
            record = replace(done.record, warnings=(*done.record.warnings, *warnings))
            sets, run = _sets(items, context, done), outputs.folder(request.run)
            measured = fill_run(
                run, sets, record, media=media, started=started, model=done.model, at=request.at, progress=progress
            )
            warnings = measured["warnings"]
            if measured["metrics"]:
                scores = {"before": measured["metrics_before"], "after": measured["metrics"]}
    if context is not None and request.context_out is None and request.out is not None:
        warnings = [*warnings, _ONE_SIDED]
    metrics = done.metrics | cosines(items, done.vectors)
    return RefineResult(done.vectors, done.protocol, metrics, tuple(warnings), scores, written)


def write_refinement(
    folder: str | Path,
    refiner: "ContextRefiner | PaperRefiner",
    items: Embeddings,
    context: Embeddings | None = None,
    *,
    media: Media | None = None,
    steps: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
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
    media : Media, optional
        Where pictures or texts of the items come from.
    steps : int, optional
        Stop after this many steps; all by default.
    overwrite : bool
        Whether an existing run is replaced.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    RefinementRun
        The run, opened.
    """
    with new_folder(folder, overwrite=overwrite) as filling:
        fill_refinement(filling, FittedRefiner(refiner, steps=steps), items, context, media=media, progress=progress)
    return open_refinement(folder)


def fill_refinement(
    folder: Path,
    refiner: FittedRefiner,
    items: Embeddings,
    context: Embeddings | None = None,
    *,
    media: Media | None = None,
    notes: RefinementNotes | None = None,
    nmi: bool = False,
    progress: Progress | None = None,
) -> dict:
    """Fill an empty folder with a refinement run.

    Parameters
    ----------
    folder : Path
        The empty folder.
    refiner : ContextRefiner or PaperRefiner
        A fitted refiner.
    items, context, media
        As in `write_refinement`.
    notes : RefinementNotes, optional
        What preceded the refinement, for the record of the run.
    nmi : bool
        Whether to cluster the items for NMI.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    dict
        The content of metrics.json.
    """
    notes = notes or RefinementNotes()
    started = time.perf_counter() - notes.seconds
    done = _refined(refiner, items, context, context is not None, progress)
    return fill_run(
        folder,
        _sets(items, context, done),
        notes.added_to(done.record),
        media=media or Media(),
        started=started,
        model=done.model,
        nmi=nmi,
        progress=progress,
    )


def _refined(
    refiner: Refiner,
    items: Embeddings,
    context: Embeddings | None,
    both: bool,
    progress: Progress | None,
    **neighbors: Any,
) -> Refinement:
    """Refine items without their labels, which are for scores alone."""
    gallery = None if context is None else context.without_labels()
    return refiner.refine(items.without_labels(), gallery, both=both, **neighbors, progress=progress)


def _confidences(items: Embeddings, context: Embeddings | None) -> FloatArray:
    """How sure one can be that each item has a match in the gallery, or among the others, (N,)."""
    from entourage.refiner.confidence import GalleryConfidence

    return GalleryConfidence(SearchIndex(items if context is None else context)).of(items)


def _write_vectors(request: RefineRequest, done: Refinement, outputs: Outputs) -> dict[str, Path]:
    written = {"out": request.out, "context_out": request.context_out}
    written |= {"confidence": request.confidence, "run": request.run}
    if request.out is not None:
        write_like(request.vectors, request.out, done.vectors, outputs)
    if request.context is not None and request.context_out is not None and done.context_vectors is not None:
        write_like(request.context, request.context_out, done.context_vectors, outputs)
    return {name: place for name, place in written.items() if place is not None}


def _sets(items: Embeddings, context: Embeddings | None, done: Refinement) -> RefinedSets:
    refined = items.replace_vectors(done.vectors)
    if context is None or done.context_vectors is None:
        return RefinedSets(items, refined)
    return RefinedSets(items, refined, context, context.replace_vectors(done.context_vectors))
