"""Items on which the universal refiner has something to say."""

import numpy as np

from entourage.refiner.estimator import ContextRefiner
from entourage.runs.refine import write_refinement
from entourage.values import Embeddings

CLASSES, PER_CLASS, DIM = 12, 10, 24
COUNT = CLASSES * PER_CLASS


def items(*, labelled: bool = True, named: bool = True) -> Embeddings:
    rng, classes = np.random.default_rng(0), np.repeat(np.arange(CLASSES), PER_CLASS)
    vectors = rng.normal(size=(CLASSES, DIM))[classes] + rng.normal(size=(COUNT, DIM))
    ids = [f"id {row}" for row in range(COUNT)] if named else None
    return Embeddings.from_vectors(vectors, ids, [f"class {code}" for code in classes] if labelled else None)


def fitted(given: Embeddings) -> ContextRefiner:
    """Without labels, whatever the items have."""
    return ContextRefiner(n_neighbors=8).fit(Embeddings(given.vectors, given.ids))


def kept(folder, given: Embeddings, **options):
    return write_refinement(folder, fitted(given), given, **options)


def halves() -> tuple[Embeddings, Embeddings]:
    """Queries and a gallery, of the same classes."""
    whole, odd = items(), np.arange(COUNT) % 2
    return whole.take(np.flatnonzero(odd)), whole.take(np.flatnonzero(odd == 0))
