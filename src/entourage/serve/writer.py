"""Changes a gallery in the order in which changes come; those that wait for each other are made together.

A change copies the gallery, so that searches keep the one they began with: ten changes at once take hardly longer than
one. Those that wait and concern different items are therefore made as one, and each is answered as if it were alone.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from starlette.exceptions import HTTPException

from entourage.refiner.gallery import Gallery, Report
from entourage.serve.limits import Limits

__all__ = ["Done", "PendingChange", "Writer", "no_such_item"]

Id = int | str


@dataclass(frozen=True)
class Done:
    """What became of a change."""

    report: Report
    """Its own counts; `refined` and `moved` are of all that was made together."""
    ids: list[Id]
    """Of the items that it concerned."""


@dataclass(frozen=True, eq=False)
class PendingChange:
    """Items to add, in place of those that are there, or items to remove."""

    vectors: np.ndarray | None
    """(n, d) of items to add; None to remove."""
    ids: list[Id] | None
    """Of the items; None for the next numbers."""
    done: "Future[Done]" = field(default_factory=Future)

    @property
    def kind(self) -> type | None:
        """Of its ids; None where numbers are given out."""
        return type(self.ids[0]) if self.ids else None

    @property
    def count(self) -> int:
        """n, of the items to add."""
        return 0 if self.vectors is None else len(self.vectors)


class Writer:
    """The one thread that changes a gallery.

    Parameters
    ----------
    gallery : Gallery
    limits : Limits
    count : callable
        Is told the Report of everything that was made together.
    """

    def __init__(self, gallery: Gallery, limits: Limits, count: Callable[[Report], None]) -> None:
        self._gallery, self._limits, self._count = gallery, limits, count
        self._thread = ThreadPoolExecutor(1, "change")
        self._pending: deque[PendingChange] = deque()
        self._making = 0

    @property
    def waiting(self) -> int:
        """How many changes have come and are not made."""
        return len(self._pending) + self._making

    def submit(self, change: PendingChange) -> "Future[Done]":
        """Take in a change; a 429 if too many wait already."""
        if self.waiting >= self._limits.waiting:
            raise HTTPException(
                429, f"{self.waiting} changes wait already; send again later, or several items in one request"
            )
        self._pending.append(change)
        self._thread.submit(self._make_next)
        return change.done

    def close(self) -> None:
        """Finish what was begun."""
        self._thread.shutdown()

    def _make_next(self) -> None:
        changes = self._next_together()
        self._making = len(changes)
        try:
            wanted = [each for each in changes if each.done.set_running_or_notify_cancel()]
            self._make_or_refuse([each for each in wanted if not self._refused(each)])
        finally:
            self._making = 0

    def _next_together(self) -> list[PendingChange]:
        """The first that wait and concern different items; nobody if they were made with others before."""
        together: list[PendingChange] = []
        concerned: set[Id] = set()
        items = 0
        while self._pending:
            change = self._pending[0]
            items += change.count
            apart = items > self._limits.items or not concerned.isdisjoint(change.ids or ())
            if together and (apart or change.kind != together[0].kind):
                break
            concerned.update(change.ids or ())
            together.append(self._pending.popleft())
        return together

    def _refused(self, change: PendingChange) -> bool:
        """Whether a change was answered, as there is nothing to remove."""
        missing = [] if change.vectors is not None else [each for each in change.ids or () if each not in self._gallery]
        if missing:
            change.done.set_exception(no_such_item(str(missing[0])))
        return bool(missing)

    def _make_or_refuse(self, changes: list[PendingChange]) -> None:
        """Make changes together; where that fails, one by one, so that only those are refused that deserve it."""
        try:
            if changes:
                self._make(dict(zip(changes, self._names(changes), strict=True)))
        except Exception as error:
            if len(changes) == 1:
                changes[0].done.set_exception(error)
            else:
                for each in changes:
                    self._make_or_refuse([each])

    def _names(self, changes: list[PendingChange]) -> list[list[Id]]:
        """The ids of the items of each; where some have none, nobody has, and all get the next numbers."""
        given = [each.ids for each in changes if each.ids is not None]
        if given:
            return given
        ends = (self._gallery.next_number + np.cumsum([each.count for each in changes])).tolist()
        return [list(range(end - each.count, end)) for each, end in zip(changes, ends, strict=True)]

    def _make(self, changes: dict[PendingChange, list[Id]]) -> None:
        added = {each: ids for each, ids in changes.items() if each.vectors is not None}
        updated = {each: sum(name in self._gallery for name in ids) for each, ids in added.items()}
        report = self._gallery.change(
            np.concatenate([each.vectors for each in added if each.vectors is not None]) if added else None,
            list(chain(*added.values())) or None,
            remove=list(chain(*(ids for each, ids in changes.items() if each not in added))),
        )
        self._count(report)
        for each, ids in changes.items():
            known = updated.get(each, 0)
            counts = (len(ids) - known, known, 0) if each in added else (0, 0, len(ids))
            own = report._replace(**dict(zip(("added", "updated", "removed"), counts, strict=True)))
            each.done.set_result(Done(own, ids))


def no_such_item(name: str) -> HTTPException:
    """A 404."""
    return HTTPException(404, f"there is no item {name!r}; it may have been removed before")
