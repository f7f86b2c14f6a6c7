"""Changes that wait for each other: who is refused where making them together fails."""

import threading

import numpy as np
import pytest

from entourage.errors import FileError, InputError
from entourage.refiner.gallery import Gallery
from entourage.serve import Limits
from entourage.serve.writer import PendingChange, Writer


@pytest.fixture
def made_together(gallery):
    """Make changes that have all come before the first is made; what became of each: its ids, or why not."""

    def make(*changes: PendingChange) -> list:
        writer, go_on = Writer(gallery, Limits(), lambda report: None), threading.Event()
        writer._thread.submit(go_on.wait)
        futures = [writer.submit(each) for each in changes]
        go_on.set()
        writer.close()
        return [each.exception(0) or each.result().ids for each in futures]

    return make


def adding(vectors, *ids) -> PendingChange:
    return PendingChange(vectors[300 : 300 + len(ids)], list(ids))


def test_one_at_fault_is_refused_alone(gallery, made_together, vectors, monkeypatch):
    sizes, at_once = [], Gallery.change

    def change(self, given, ids, *, remove):
        sizes.append(len(ids))
        if 302 in ids:
            raise InputError("not this one")
        return at_once(self, given, ids, remove=remove)

    monkeypatch.setattr(Gallery, "change", change)
    *others, refused = made_together(*(adding(vectors, each) for each in (300, 301, 303, 302)))
    assert others == [[300], [301], [303]] and str(refused) == "not this one"
    assert sizes == [4, 2, 2, 1, 1] and len(gallery) == 203


def test_what_fails_on_the_disk_is_not_tried_again(gallery, made_together, vectors, monkeypatch):
    tried = []

    def change(self, given, ids, *, remove):
        tried.append(ids)
        raise FileError("it may be there when the gallery is opened again")

    monkeypatch.setattr(Gallery, "change", change)
    answers = made_together(adding(vectors, 300), adding(vectors, 301))
    assert [type(each) for each in answers] == [FileError, FileError] and len(tried) == 1


def test_what_was_made_is_not_made_again(gallery, made_together, vectors, monkeypatch):
    at_once = Gallery.change

    def change(self, given, ids, *, remove):
        at_once(self, given, ids, remove=remove)
        raise RuntimeError("after it was made")

    monkeypatch.setattr(Gallery, "change", change)
    without_ids = PendingChange(vectors[300:302], None), PendingChange(vectors[302:303], None)
    assert [str(each) for each in made_together(*without_ids)] == ["after it was made"] * 2
    assert len(gallery) == 203 and gallery.version == 2


def test_whatever_goes_wrong_everybody_is_answered(made_together, vectors, monkeypatch):
    monkeypatch.setattr(Gallery, "has", lambda self, ids: 1 / 0)
    answers = made_together(PendingChange(None, [3]), PendingChange(None, [4]))
    assert [type(each) for each in answers] == [ZeroDivisionError] * 2


def test_running_out_of_numbers_is_refused_in_a_sentence(gallery, made_together, vectors):
    gallery.add(vectors[:1], ids=[2**63 - 1])
    first, second = made_together(*(PendingChange(vectors[300:301], None) for _ in range(2)))
    assert isinstance(first, InputError) and isinstance(second, InputError)


def test_many_ids_are_known_or_new(gallery):
    assert np.array_equal(gallery.has([3, 5000, 199]), [True, False, True])
    assert np.array_equal(gallery.has(np.array([3, 5000])), [True, False])
    assert not gallery.has(["3"]).any() and gallery.has([]).shape == (0,)
