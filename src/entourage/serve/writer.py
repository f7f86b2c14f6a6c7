"""Changes a gallery in the order in which changes come; those that wait for each other are made together.

A change copies the gallery, so that searches keep the one they began with: ten changes at once take hardly longer than
one. Those that wait and concern different items are therefore made as one, and each is answered as if it were alone.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise

import numpy as np
from starlette.exceptions import HTTPException

from entourage.errors import FileError
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
            self._make_or_refuse([each for each in changes if each.done.set_running_or_notify_cancel()])
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
        if change.vectors is not None or not change.ids:
            return False
        missing = np.flatnonzero(~self._gallery.has(change.ids))
        if len(missing):
            change.done.set_exception(no_such_item(str(change.ids[missing[0]])))
        return bool(len(missing))

    def _make_or_refuse(self, changes: list[PendingChange]) -> None:
        """Make changes together; where that fails, half of them at a time, so that only those are refused at fault.

        What fails on the disk, or after it was made, is not tried again: it might then be made twice.
        """
        before = self._gallery.version
        try:
            wanted = [each for each in changes if not self._refused(each)]
            if wanted:
                self._make(wanted)
        except Exception as error:
            left = [each for each in changes if not each.done.done()]
            if len(left) == 1 or isinstance(error, FileError) or self._gallery.version != before:
                for each in left:
                    each.done.set_exception(error)
            else:
                self._make_or_refuse(left[: len(left) // 2])
                self._make_or_refuse(left[len(left) // 2 :])

    def _make(self, changes: list[PendingChange]) -> None:
        names = self._names(changes)
        added = [(each.vectors, ids) for each, ids in zip(changes, names, strict=True) if each.vectors is not None]
        removed = [ids for each, ids in zip(changes, names, strict=True) if each.vectors is None]
        new = list(chain(*(ids for _, ids in added)))
        numbered = changes[0].ids is None
        known = np.zeros(len(new), bool) if numbered else self._gallery.has(new)
        report = self._gallery.change(
            np.concatenate([vectors for vectors, _ in added]) if added else None,
            None if numbered else new or None,
            remove=list(chain(*removed)),
        )
        self._count(report)
        start = 0
        for each, ids in zip(changes, names, strict=True):
            added_here = 0 if each.vectors is None else len(ids)
            updated = int(known[start : start + added_here].sum())
            start += added_here
            own = report._replace(added=added_here - updated, updated=updated, removed=len(ids) - added_here)
            each.done.set_result(Done(own, ids))

    def _names(self, changes: list[PendingChange]) -> list[list[Id]]:
        """The ids of the items of each; where one has none, nobody has, and all get the next numbers."""
        given = [each.ids for each in changes if each.ids is not None]
        if given:
            return given
        begins = list(accumulate((each.count for each in changes), initial=self._gallery.next_number))
        return [list(range(*ends)) for ends in pairwise(begins)]


def no_such_item(name: str) -> HTTPException:
    """A 404."""
    return HTTPException(404, f"there is no item {name!r}; it may have been removed before")
