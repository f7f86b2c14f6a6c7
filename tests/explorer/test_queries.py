"""What is dropped on the page, as vectors."""

import io

import numpy as np
import pytest
from PIL import Image
from tests.explorer.conftest import DIM

from entourage.errors import InputError
from entourage.explorer.queries import MOST_QUERIES, Encoder, read_dropped


def npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def test_vectors_are_told_by_how_they_begin_and_names_are_no_paths():
    dropped = read_dropped(npy(np.eye(2, DIM)), "../../etc/passwd", Encoder(None))
    assert dropped.kind == "vectors" and len(dropped.queries) == 2 and not dropped.queries.named


def test_a_text_and_a_picture_need_an_encoder_that_takes_them():
    for name, content in (("", b"words"), ("words.txt", b"words")):
        with pytest.raises(InputError, match="--encoder"):
            read_dropped(content, name, Encoder(None))
    picture = io.BytesIO()
    Image.new("L", (4, 4)).save(picture, "PNG")
    with pytest.raises(InputError, match="--encoder"):
        read_dropped(picture.getvalue(), "a.png", Encoder(None))
    with pytest.raises(InputError, match="module:function"):
        read_dropped(b"words", "", Encoder("tests.explorer.conftest:nothing"))


def test_vectors_of_another_encoder_are_refused_by_the_desk(desks):
    desk = desks["pictured"]
    with pytest.raises(InputError, match="dimensions"):
        desk.queries(npy(np.eye(2, DIM + 1)), "v.npy", desk.usual)


@pytest.mark.parametrize("array", [np.eye(MOST_QUERIES + 1, DIM), np.zeros((2, DIM)), np.full((1, DIM), np.nan)])
def test_vectors_that_cannot_be_used_are_refused(array):
    with pytest.raises(InputError, match=r"v\.npy|vectors"):
        read_dropped(npy(array), "v.npy", Encoder(None))


def test_pickles_are_never_loaded():
    with pytest.raises(InputError):
        read_dropped(npy(np.array([{"a": 1}], dtype=object)), "v.npy", Encoder(None))


def test_a_query_that_is_an_item_lands_where_the_item_is(desks):
    desk = desks["texts"]
    vector = desk.scene.run.context.vectors[30:31]
    (told,) = desk.queries(npy(vector), "v.npy", desk.usual)["queries"]
    row = 12 + 30
    assert told["before"]["rows"][0] == row and len(told["place"]) == len(desk.scene.places)
    looked = told["attention"]
    assert looked["rows"] and all(each >= 12 for each in looked["rows"]) and looked["steps"] == desk.usual.steps


def test_a_run_of_train_is_an_encoder_of_pictures(tmp_path):
    pytest.importorskip("torch")
    from entourage.encoders import build_encoder, save_encoder

    save_encoder(tmp_path / "encoder", build_encoder("small", dim=DIM, width=4))
    encoder = Encoder(str(tmp_path / "encoder"))
    assert encoder([Image.new("L", (20, 20), 90)], "picture").shape == (1, DIM)
    with pytest.raises(InputError, match="takes pictures"):
        encoder(["words"], "text")
