"""How items look: what is asked of an image set, of vectors, of texts; and what is shown where something is missing."""

import numpy as np
import pytest
from PIL import Image

from entourage.data.arrays import ImageArray
from entourage.errors import CorruptImage, InputError
from entourage.figures.appearance import Appearance, same_label
from entourage.values import Embeddings, shared_codes

PIXELS = np.arange(3, dtype=np.uint8)[:, None, None] * np.full((3, 8, 6), 60, np.uint8)


def test_an_image_set_has_pictures_labels_and_ids():
    shown = Appearance.of(ImageArray(PIXELS, ["a", "b", "b"], ["x", "y", "z"]))
    assert (len(shown), shown.kind, shown.name(1), shown.text(1)) == (3, "pictures", "b", "y")
    np.testing.assert_array_equal(np.asarray(shown.thumbnail(2)), PIXELS[2])


def test_embeddings_are_shown_by_id_and_with_texts_by_those():
    items = Embeddings.from_vectors(np.eye(2), ids=["x", "y"], labels=[4, 5])
    assert (Appearance.of(items).kind, Appearance.of(items).text(0), Appearance.of(items).name(0)) == ("ids", "x", "4")
    said = Appearance.of(items, texts=["one", "two"])
    assert (said.kind, said.text(1), said.name(1), said.thumbnail(1)) == ("texts", "two", "5", None)


def test_without_labels_an_item_is_called_by_its_id():
    assert Appearance(np.array([7, 8])).name(1) == "8"


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_a_thumbnail_is_grey_or_coloured_and_never_larger_than_asked(mode):
    shown = Appearance(np.array([0]), picture=lambda row: Image.new(mode, (400, 100)))
    small = shown.thumbnail(0, side=80)
    assert small.size == (80, 20) and small.mode == ("L" if mode == "L" else "RGB")


def test_what_is_transparent_becomes_white():
    clear = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
    clear.putpixel((3, 3), (200, 0, 0, 255))
    small = Appearance(np.array([0]), picture=lambda row: clear).thumbnail(0)
    assert (small.getpixel((5, 5)), small.getpixel((3, 3))) == ((255, 255, 255), (200, 0, 0))


def test_a_damaged_picture_is_none():
    def picture(row):
        raise CorruptImage("file.png", "it is empty")

    assert Appearance(np.array([0]), picture=picture).thumbnail(0) is None


@pytest.mark.parametrize("what", ["labels", "texts", "cameras", "sequences"])
def test_as_many_labels_and_texts_as_ids(what):
    with pytest.raises(InputError, match=f"2 {what} for 3 ids; wanted one of each per item"):
        Appearance(np.arange(3), **{what: np.array(["a", "b"])})


def test_right_is_the_same_label_and_unknown_where_one_has_none():
    queries = Appearance(np.arange(2), np.array(["a", "b"]))
    gallery = Appearance(np.arange(3), np.array(["b", "a", "a"]))
    seen = [[same_label(queries, row, gallery, other) for other in range(3)] for row in range(2)]
    assert seen == [[False, True, True], [True, False, False]]
    unknown = Appearance(np.arange(3))
    assert same_label(queries, 0, unknown, 0) is None and same_label(unknown, 0, gallery, 0) is None


def test_what_scores_leave_out_is_neither_right_nor_wrong():
    queries = Embeddings.from_vectors(np.eye(4)[:1], labels=["a"], cameras=[1], sequences=["s"])
    labels, cameras, sequences = list("aaba"), [1, 2, 1, 2], ["t", "t", "t", "s"]
    gallery = Embeddings.from_vectors(np.eye(4), labels=labels, cameras=cameras, sequences=sequences)
    shown, among = Appearance.of(queries), Appearance.of(gallery)
    assert [same_label(shown, 0, among, other) for other in range(4)] == [None, True, False, None]
    without = Appearance(gallery.ids, gallery.labels)
    assert [same_label(shown, 0, without, other) for other in range(4)] == [True, True, False, True]


def test_numbers_match_their_text_form_as_in_scores():
    queries = Appearance(np.arange(2), np.array([7, 9]))
    gallery = Appearance(np.arange(3), np.array(["9", "7", "07"]))
    seen = [[same_label(queries, row, gallery, other) for other in range(3)] for row in range(2)]
    left, right = shared_codes(queries.labels, gallery.labels)
    assert seen == (left[:, None] == right).tolist() == [[False, True, False], [True, False, False]]
