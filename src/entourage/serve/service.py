"""What the endpoints do: a gallery searched by many at once and changed by one thread.

Searches run in threads of their own and changes in another one, so that no search waits behind a change. N vectors, d
dimensions.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from starlette.exceptions import HTTPException

from entourage.errors import FileError, InputError, ModelError
from entourage.refiner.gallery import Changes, Gallery
from entourage.runtime.threads import thread_count
from entourage.serve.bodies import Items, Queries, Rerank, Search
from entourage.serve.limits import Limits
from entourage.serve.metrics import Metrics
from entourage.serve.writer import PendingChange, Writer, no_such_item
from entourage.values import as_embeddings

__all__ = ["Service"]

Result = TypeVar("Result")

_CUT_OFF = "\0"  # numpy does not tell a text from the same with this at its end


class Service:
    """A gallery, and who works on it.

    Parameters
    ----------
    gallery : Gallery
    limits : Limits
    """

    def __init__(self, gallery: Gallery, limits: Limits) -> None:
        self.gallery, self.limits, self.metrics = gallery, limits, Metrics()
        self._readers = ThreadPoolExecutor(2 * thread_count(), "search")
        self._writer = Writer(gallery, limits, self.metrics.made)

    def close(self) -> None:
        """Finish what was begun."""
        self._writer.close()
        self._readers.shutdown()
        self.gallery.close()

    async def read(self, work: Callable[[], Result]) -> Result:
        """Do something that changes nothing."""
        with _answered():
            return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def write(self, change: PendingChange) -> dict[str, Any]:
        """Make a change, after those that wait already or with them; what it did, with the ids of the items."""
        with _answered():
            done = await asyncio.wrap_future(self._writer.submit(change))
        return done.report._asdict() | {"ids": done.ids}

    # ---- what is asked for -------------------------------------------------------------------------------------

    def search(self, request: Search) -> dict[str, Any]:
        """Version, ids (N, k), similarities (N, k) and, if it was asked for, confidence (N,)."""
        vectors, k = self._vectors(request), min(request.k, self.limits.neighbors)
        found = self.gallery.search(vectors, k, refine=request.refine, confidence=request.confidence)
        listed = {"version": found.version, "ids": found.ids.tolist(), "similarities": found.similarities.tolist()}
        return listed if found.confidence is None else listed | {"confidence": found.confidence.tolist()}

    def refine(self, request: Queries) -> tuple[int, np.ndarray]:
        """Version and refined vectors (N, d)."""
        return self.gallery.refine_with_version(self._vectors(request))

    def rerank(self, request: Rerank) -> dict[str, Any]:
        """The candidates in their new order."""
        self.gallery.check_encoder(request.encoder, request.canaries)
        count = len(request.candidates if request.candidates is not None else request.ids or [])
        if count > self.limits.batch:
            raise InputError(f"there are {count:,} candidates; wanted at most {self.limits.batch:,}")
        candidates = None if request.candidates is None else _table(request.candidates, "candidates")
        ids = None if request.ids is None else _column(request.ids)
        reranked = self.gallery.rerank(request.query, candidates, ids=ids, scores=request.scores)
        given = None if reranked.given_scores is None else reranked.given_scores.tolist()
        listed = {"ids": reranked.ids.tolist(), "rows": reranked.rows.tolist(), "scores": reranked.scores.tolist()}
        return listed | {"given_scores": given}

    def adding(self, request: Items) -> PendingChange:
        """The change that a request asks for, if nothing is wrong with it."""
        self.gallery.check_encoder(request.encoder, request.canaries)
        vectors = self._checked(_table(request.vectors, "vectors"), self.limits.items)
        ids = None if request.ids is None else _column(request.ids)
        if ids is not None and len(ids) != len(vectors):
            raise InputError(f"there are {len(ids):,} ids for {len(vectors):,} vectors; give one for each")
        repeated = [each for each, times in Counter(request.ids or ()).items() if times > 1]
        if repeated:
            raise InputError(f"the id {repeated[0]!r} is given twice; give each item its own")
        self.gallery.encoder.checked_size(as_embeddings(vectors).dim, "the vectors")  # before others wait for it
        return PendingChange(vectors, request.ids)

    def removing(self, name: str) -> PendingChange:
        """The change that removes an item."""
        digits = name.removeprefix("-")
        number = not self.gallery.has_texts and digits.isascii() and digits.isdigit() and len(digits) < 20
        if _CUT_OFF in name or (number and abs(int(name)) >= 2**63):
            raise no_such_item(name)
        return PendingChange(None, [int(name) if number else name])

    def changes(self, since: int, after: int | str | None, limit: int) -> Changes:
        """One page of changes."""
        return self.gallery.changes_since(since, after=after, limit=min(limit, self.limits.items))

    def metrics_text(self) -> str:
        """For Prometheus."""
        gauges = {"gallery_items": len(self.gallery), "gallery_version": self.gallery.version}
        return self.metrics.text(**gauges, changes_waiting=self._writer.waiting)

    def _vectors(self, request: Queries) -> np.ndarray:
        """(N, d) what is to be searched or refined."""
        self.gallery.check_encoder(request.encoder, request.canaries)
        if (request.vector is None) == (request.vectors is None):
            raise InputError("give either vector or vectors")
        given = [request.vector] if request.vectors is None else request.vectors
        return self._checked(_table(given, "vectors"), self.limits.batch)

    def _checked(self, vectors: np.ndarray, most: int) -> np.ndarray:
        n, d = vectors.shape
        if n > most:
            raise InputError(f"there are {n:,} vectors; wanted at most {most:,} at a time")
        if d > self.limits.dimensions:
            raise InputError(f"the vectors have {d:,} dimensions; wanted at most {self.limits.dimensions:,}")
        return vectors


def _table(rows: Any, name: str) -> np.ndarray:
    """(N, d) from lists of equal length."""
    lengths = {len(row) for row in rows[:1]} if isinstance(rows, np.ndarray) else set(map(len, rows))
    if not lengths or not min(lengths):
        raise InputError(f"there are no {name}; give at least one, of at least one dimension")
    if len(lengths) > 1:
        raise InputError(f"the {name} have {min(lengths)} to {max(lengths)} dimensions; wanted the same for all")
    return rows if isinstance(rows, np.ndarray) else np.array(rows, np.float64)


def _column(ids: list[int | str]) -> np.ndarray:
    """(N,) ids of one kind."""
    if len({isinstance(each, str) for each in ids}) > 1:
        raise InputError("some ids are numbers and some are texts; give ids of one kind")
    if any(isinstance(each, str) and _CUT_OFF in each for each in ids):
        raise InputError("an id holds the letter NUL; give ids without it")
    return np.array(ids)


@contextmanager
def _answered() -> Iterator[None]:
    """What is wrong with a request becomes an answer of that kind."""
    try:
        yield
    except (InputError, ModelError) as error:
        raise HTTPException(422, str(error)) from error
    except FileError as error:
        raise HTTPException(507, str(error)) from error
