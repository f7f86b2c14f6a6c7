"""After any sequence of changes, of openings and of crashes a gallery is what a rebuild of its items would be."""

import functools
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.refiner.gallery.samples import Index, assert_equals_a_rebuild, clustered, learned

from entourage.refiner import ContextRefiner
from entourage.refiner.gallery import Gallery
from entourage.refiner.gallery.log import Log
from entourage.refiner.gallery.snapshots import Change
from entourage.refiner.universal import LEAST_ITEMS, universal_network

pytestmark = pytest.mark.usefixtures("one_thread")

POOL = clustered(4000, dim=6, classes=8, noise=0.35)
HEAD = 16  # bytes of a record before its content


@functools.cache
def refiner_of(n_neighbors: int, n_steps: int, with_labels: bool) -> ContextRefiner:
    """A refiner with few neighbours, so that in a small gallery most items are out of reach."""
    if with_labels:
        return learned(6, base_map=True, fallback=True, n_neighbors=n_neighbors, n_steps=n_steps)
    refiner = ContextRefiner(n_neighbors, n_steps).fit(POOL[:100])
    refiner.network_ = universal_network(n_neighbors)
    return refiner


class Changes(RuleBasedStateMachine):
    @initialize(
        count=st.integers(0, 90),
        n_neighbors=st.integers(2, 5),
        n_steps=st.integers(1, 4),
        with_labels=st.booleans(),
        texts=st.booleans(),
    )
    def make(self, count, n_neighbors, n_steps, with_labels, texts):
        self.folder, self.texts, self.used = Path(tempfile.mkdtemp()), texts, 0
        self.gallery = Gallery(self.folder / "gallery", refiner_of(n_neighbors, n_steps, with_labels), eps=0.01)
        self.items, self.index = {}, Index()
        if count:
            self.put(range(0, 7 * count, 7))

    def name(self, number: int) -> int | str:
        """Ids in no order of time: 10 comes before 9 among texts."""
        return f"item {number}" if self.texts else number

    def fresh(self, count: int) -> np.ndarray:
        self.used += count
        return POOL[np.arange(self.used - count, self.used) % len(POOL)]

    def put(self, numbers, vectors=None):
        ids = [self.name(number) for number in numbers]
        vectors = self.fresh(len(ids)) if vectors is None else vectors
        self.gallery.add(vectors, ids, replace=True)
        self.items |= dict(zip(ids, vectors, strict=True))

    @rule(numbers=st.lists(st.integers(0, 500), min_size=1, max_size=5, unique=True))
    def add_or_update(self, numbers):
        self.put(numbers)

    @precondition(lambda self: self.items)
    @rule(number=st.integers(0, 500), row=st.integers(0), noise=st.sampled_from([0.0, 1e-4, 0.01]))
    def add_a_copy(self, number, row, noise):
        like = list(self.items.values())[row % len(self.items)]
        self.put([number], (like + noise * np.sin(np.arange(6) + number))[None].astype(np.float32))

    @precondition(lambda self: self.items)
    @rule(rows=st.lists(st.integers(0), min_size=1, max_size=4))
    def remove(self, rows):
        gone = list({list(self.items)[row % len(self.items)] for row in rows})
        self.gallery.remove(gone)
        for each in gone:
            del self.items[each]

    @precondition(lambda self: self.items)
    @rule(numbers=st.lists(st.integers(0, 500), max_size=4, unique=True), rows=st.lists(st.integers(0), max_size=4))
    def change_several_things_at_once(self, numbers, rows):
        ids = [self.name(number) for number in numbers]
        gone = list({list(self.items)[row % len(self.items)] for row in rows} - set(ids))
        if ids or gone:
            vectors = self.fresh(len(ids)) if ids else None
            report = self.gallery.change(vectors, ids or None, remove=gone)
            known = len(self.items.keys() & set(ids))
            assert (report.added, report.updated, report.removed) == (len(ids) - known, known, len(gone))
            kept = {each: vector for each, vector in self.items.items() if each not in gone}
            self.items = kept | dict(zip(ids, [] if vectors is None else vectors, strict=True))

    @rule()
    def snapshot(self):
        self.gallery.snapshot()

    @rule(kept=st.floats(0, 1, exclude_max=True), rest=st.sampled_from(["missing", "zeros", "garbage"]))
    def open_again_after_a_crash(self, kept, rest):
        """What was being written when the process died is not an acknowledged record, whatever is there of it."""
        self.gallery.close()
        (log,) = self.folder.glob("gallery/log-*")
        record = self.next_record()
        torn = record[: int(kept * len(record))]
        if rest != "missing" and len(torn) >= HEAD:  # the system may make room for all of it and fill a part
            left = len(record) - len(torn)
            torn += bytes(left) if rest == "zeros" else b"\xa5" * left
        with log.open("ab") as file:
            file.write(torn)
        self.gallery = Gallery(self.folder / "gallery")
        assert log.stat().st_size == self.gallery._log.size

    def next_record(self) -> bytes:
        """A change that would add an item, as it stands in a log."""
        vector = np.full((1, 6), 6**-0.5, np.float32)  # none of its bytes is 0
        change = Change(self.gallery.version + 1, [], np.array([self.name(900)]), vector)
        other = Log.create(self.folder / "other", change.to_bytes())
        other.close()
        return other.path.read_bytes()

    @invariant()
    def the_items_are_those_that_were_put(self):
        if hasattr(self, "gallery"):
            assert self.gallery.ids.tolist() == sorted(self.items)

    @invariant()
    def it_equals_a_rebuild(self):
        if hasattr(self, "gallery"):
            assert_equals_a_rebuild(self.gallery)
            if self.items:
                weighted = self.gallery._view.state.weighted
                assert (weighted.pull > 0) == (len(weighted.graph.items) > LEAST_ITEMS)

    @invariant()
    def an_index_that_follows_is_up_to_date(self):
        if hasattr(self, "gallery"):
            self.index.follow(self.gallery)
            self.index.assert_up_to_date(self.gallery)

    def teardown(self):
        if hasattr(self, "gallery"):
            self.gallery.close()
            shutil.rmtree(self.folder)


Changes.TestCase.settings = settings(max_examples=20, stateful_step_count=15, deadline=None, derandomize=True)
TestChanges = Changes.TestCase
