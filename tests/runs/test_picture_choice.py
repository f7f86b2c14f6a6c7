"""Which pictures show which vectors: by id first, then by number, and a sentence where neither agrees."""

import numpy as np
import pytest
from PIL import Image

from entourage.errors import EntourageWarning, InputError
from entourage.runs.matching import places_of
from entourage.runs.media import PictureSource
from entourage.runs.picture_choice import pictures_of
from entourage.values import Embeddings


@pytest.fixture
def photos(tmp_path):
    """Two classes, of which one trains."""
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(3):
            Image.new("L", (8, 8), 50 * number).save(tmp_path / "photos" / name / f"{name}{number}.png")
    return tmp_path / "photos"


def items(count: int, ids=None) -> Embeddings:
    return Embeddings(np.eye(8, dtype=np.float32)[:count], ids)


def chosen(source, vectors, context=None, split=None) -> tuple[str, list]:
    """The split, and the id of the picture of each vector."""
    found = pictures_of(PictureSource(str(source)), vectors, context, split=split)
    places = places_of(vectors, 0, found.load())
    return found.split, [place and str(place[0].ids[place[1]]) for place in places]


@pytest.mark.parametrize(
    ("ids", "split", "shown"),
    [
        pytest.param(["b/b2.png", "b/b0.png"], "test", ["b/b2.png", "b/b0.png"], id="of the test half"),
        pytest.param(["a/a1.png", "b/b0.png"], "all", ["a/a1.png", "b/b0.png"], id="of both halves"),
        pytest.param(["a/a1.png", "a/a0.png", "a/a2.png"], "all", ["a/a1.png", "a/a0.png", "a/a2.png"], id="as many"),
        pytest.param(["b2.png", "a0.png"], "all", ["b/b2.png", "a/a0.png"], id="by file name"),
        pytest.param(["b2", "a0"], "all", ["b/b2.png", "a/a0.png"], id="by file name without its ending"),
        pytest.param(["/home/me/b2.JPG", "C:\\pics\\a0.jpg"], "all", ["b/b2.png", "a/a0.png"], id="of other folders"),
        pytest.param(["b/b2.png", "elsewhere"], "test", ["b/b2.png", None], id="one is missing"),
    ],
)
def test_ids_say_which_pictures_are_meant(photos, ids, split, shown):
    assert chosen(photos, items(len(ids), ids)) == (split, shown)


def test_a_name_that_two_pictures_have_is_no_name(photos):
    Image.new("L", (8, 8)).save(photos / "a" / "b0.png")
    assert chosen(photos, items(2, ["b0", "b1"])) == ("test", ["b/b0.png", "b/b1.png"])  # unique in the test half
    assert chosen(photos, items(4, ["b0", "b1", "a1", "a2"]))[1] == [None, "b/b1.png", "a/a1.png", "a/a2.png"]


def test_pictures_without_class_folders_are_found_by_name(photos):
    assert chosen(photos / "a", items(2, ["a2", "a0"])) == ("all", ["a2.png", "a0.png"])
    assert chosen(photos / "a", items(3)) == ("all", ["a0.png", "a1.png", "a2.png"])


def test_a_table_says_by_its_column_of_ids_which_is_which(photos):
    table = photos.parent / "stock.csv"
    table.write_text("SKU;file\nx-1;photos/a/a0.png\nx-2;photos/b/b1.png\n")
    assert chosen(table, items(2, ["x-2", "x-1"])) == ("all", ["x-2", "x-1"])
    assert chosen(table, items(2, ["photos/b/b1.png", "photos/a/a0.png"])) == ("all", ["x-2", "x-1"])


def test_without_ids_the_number_says_which_pictures_are_meant(photos):
    assert chosen(photos, items(3))[0] == "test"
    assert chosen(photos, items(6))[0] == "all"
    assert chosen(photos, items(3), items(3)) == ("train,test", ["a/a0.png", "a/a1.png", "a/a2.png"])
    assert chosen(photos, items(3), split="train")[1] == ["a/a0.png", "a/a1.png", "a/a2.png"]


def test_ids_that_are_of_no_picture_leave_the_order_with_a_warning(photos):
    with pytest.warns(EntourageWarning, match=r"no id of the vectors, such as 'x', .*such as 'b/b0.png'; .*in order"):
        assert chosen(photos, items(3, ["x", "y", "z"]))[1] == ["b/b0.png", "b/b1.png", "b/b2.png"]


@pytest.mark.parametrize(
    ("ids", "split", "said"),
    [
        (
            None,
            None,
            r"'b/b0.png' \(3 in test, 6 in all, 3 and 3 in train,test\) for 5 vectors without ids; wanted",
        ),
        (["u", "v", "x", "y", "z"], None, r"for 5 vectors with ids such as 'u'; wanted ids that agree, or one picture"),
        (None, "test", r"'b/b0.png' \(3 in test\) for 5 vectors without ids; .* name another --split, or a \.csv"),
        (["u", "v", "x", "y", "z"], "test", r"\(3 in test\) for 5 vectors with ids such as 'u'"),
    ],
)
def test_where_neither_ids_nor_numbers_agree_both_sides_are_told(photos, ids, split, said):
    with pytest.raises(InputError, match=said):
        chosen(photos, items(5, ids), split=split)


def test_a_gallery_needs_its_pictures_too(photos):
    with pytest.raises(InputError, match="for 3 and 2 vectors without ids"):
        chosen(photos, items(3), items(2))
