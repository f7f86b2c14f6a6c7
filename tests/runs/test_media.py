"""Pictures are loaded again from where they were, by id or by order; what is gone is a warning."""

import shutil

import numpy as np
import pytest
from PIL import Image

from entourage.errors import CorruptImage, EntourageWarning, InputError
from entourage.runs.media import Media, PictureSource, appearance_of
from entourage.runs.refinement_run import RefinementRun
from entourage.values import Embeddings


@pytest.fixture
def photos(tmp_path):
    """Two classes, of which one trains; the third picture of each is the brightest."""
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(3):
            Image.new("L", (8, 8), 50 * number).save(tmp_path / "photos" / name / f"{number}.png")
    return tmp_path / "photos"


def run_of(items: Embeddings, source: PictureSource, folder) -> RefinementRun:
    return RefinementRun(folder, {"media": {"pictures": vars(source)}}, {}, items, items)


def test_pictures_are_found_by_id(photos, tmp_path):
    items = Embeddings(np.eye(3, dtype=np.float32)[[0, 1]], ["b/2.png", "b/0.png"])
    shown = run_of(items, PictureSource(str(photos)), tmp_path).appearance
    assert [shown.picture(row).getpixel((0, 0)) for row in (0, 1)] == [100, 0]


def test_pictures_are_taken_by_order_where_there_are_no_ids(photos, tmp_path):
    items = Embeddings(np.eye(6, dtype=np.float32))
    shown = run_of(items, PictureSource(str(photos), split="train,test"), tmp_path).appearance
    assert [shown.picture(row).getpixel((0, 0)) for row in range(6)] == [0, 50, 100] * 2
    half = Embeddings(np.eye(3, dtype=np.float32))
    assert run_of(half, PictureSource(str(photos)), tmp_path).appearance.picture(1).getpixel((0, 0)) == 50


def test_an_item_without_a_picture_is_told_of_and_shown_by_its_id(photos, tmp_path):
    items = Embeddings(np.eye(2, dtype=np.float32), ["b/2.png", "c/9.png"])
    with pytest.warns(EntourageWarning, match="1 of 2 items have no picture, the first is c/9.png"):
        shown = run_of(items, PictureSource(str(photos)), tmp_path).appearance
    with pytest.raises(CorruptImage):
        shown.picture(1)
    assert shown.thumbnail(1) is None and shown.thumbnail(0).size == (8, 8)


def test_texts_of_a_gallery_alone_are_refused():
    with pytest.raises(InputError, match="context_texts are given without texts"):
        Media(context_texts=["one", "two"])


def test_pictures_that_are_gone_are_a_warning(photos, tmp_path):
    items = Embeddings(np.eye(2, dtype=np.float32), ["b/2.png", "b/1.png"])
    run = run_of(items, PictureSource(str(photos)), tmp_path)
    shutil.rmtree(photos)
    with pytest.warns(EntourageWarning, match="cannot be loaded again, and ids are shown instead"):
        assert run.appearance.kind == "ids"
    with pytest.warns(EntourageWarning, match="there are  pictures for 2 items, and no ids in common"):
        assert appearance_of(items, 0, [], None).picture is None


def test_vectors_are_no_pictures_and_texts_are_not_shown_beside_pictures(tmp_path):
    np.savez(tmp_path / "v.npz", vectors=np.eye(4), labels=[0, 0, 1, 1])
    with pytest.raises(InputError, match="holds vectors; wanted pictures"):
        PictureSource(str(tmp_path / "v.npz")).load()
    with pytest.raises(InputError, match="pictures and texts are both given"):
        Media(PictureSource("photos"), ["a"])
