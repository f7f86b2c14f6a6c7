"""How long one waits for a picture of many items: what `entourage plot` does, from a kept refinement to the file.

Timed once and not as the best of several: a user draws once, and the first call loads what it needs.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from entourage import ContextRefiner
from entourage.runs.figures import write_figure
from entourage.runs.open import open_run
from entourage.runs.refine import write_refinement
from entourage.values import Embeddings
from samples import clustered_items
from timing import Result

__all__ = ["run"]

ALLOWED = 20  # seconds
PICTURES = ((64, ("drift", "query")), (512, ("drift",)))  # dimensions, and the kinds that are drawn of such vectors
LEARNED_FROM = 2000  # so few that neighbours belong together, and there is something to refine by


def run(n: int, quick: bool) -> Iterator[Result]:
    for dimensions, kinds in PICTURES:
        with TemporaryDirectory() as folder:
            kept = keep(Path(folder) / "kept", n, dimensions)
            for kind in kinds:
                yield waited(kind, kept, n, dimensions)


def keep(folder: Path, n: int, dimensions: int) -> Path:
    """A refinement without labels, whose scores would take longer than all else."""
    refiner = ContextRefiner().fit(clustered_items(min(n, LEARNED_FROM), dimensions)[0])
    write_refinement(folder, refiner, Embeddings.from_vectors(clustered_items(n, dimensions)[0]))
    return folder


def waited(kind: str, kept: Path, n: int, dimensions: int) -> Result:
    start, worked = time.perf_counter(), time.process_time()
    write_figure(kind, open_run(kept), kept.parent / f"{kind}.png")
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    detail = {"n": n, "d": dimensions, "threads": torch.get_num_threads(), "seconds": seconds, "cpu_seconds": worked}
    return Result(f"plot {kind}, d = {dimensions}", "entourage", f"{ALLOWED} s", ALLOWED / seconds, 1.0, detail)
