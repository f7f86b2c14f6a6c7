"""Tables of images in the format of Open Metric Learning."""

import pytest
from tests.data.pictures import value_of, write_pictures, write_text

from entourage.data import csv_table
from entourage.errors import EntourageWarning, FileError, InputError

PICTURES = [f"pics/{n}.png" for n in range(6)]
TWO_SETS = """label,path,split,is_query,is_gallery
0,pics/0.png,train,,
0,pics/1.png,train,None,nan
1,pics/2.png,validation,True,False
1,pics/3.png,validation,False,True
2,pics/4.png,validation,1,1
2,pics/5.png,validation,0,1
"""
ONE_SET = TWO_SETS.replace("True,False", "True,True").replace("False,True", "True,True").replace("0,1\n", "1.0,1.0\n")


@pytest.fixture
def table(tmp_path):
    """A function that writes a table beside six pictures."""
    write_pictures(tmp_path, PICTURES)
    return lambda text: write_text(tmp_path / "table.csv", text)


def test_queries_and_gallery_apart(table):
    path = table(TWO_SETS)
    assert csv_table.splits(path) == ("train", "query", "gallery")
    train, query, gallery = (csv_table.load(split, path) for split in csv_table.splits(path))
    assert train.ids.tolist() == ["pics/0.png", "pics/1.png"]
    assert query.ids.tolist() == ["pics/2.png", "pics/4.png"]
    assert gallery.ids.tolist() == ["pics/3.png", "pics/4.png", "pics/5.png"]
    assert gallery.labels.tolist() == [1, 2, 2]
    assert value_of(gallery.picture(2)) == 5
    assert gallery.boxes is None and gallery.sequences is None


@pytest.mark.parametrize("without_roles", [False, True])
def test_every_image_searches_among_all_others(table, without_roles):
    text = ONE_SET
    if without_roles:
        text = "".join(",".join(line.split(",")[:3]) + "\n" for line in ONE_SET.splitlines())
    path = table(text)
    assert csv_table.splits(path) == ("train", "test")
    assert csv_table.load("test", path).labels.tolist() == [1, 1, 2, 2]


def test_labels_may_be_text_and_columns_in_any_order_with_others_between(table):
    path = table("split,colour,path,label\ntrain,red,pics/0.png,wren\nvalidation,,pics/1.png,7\n")
    assert csv_table.load("train", path).labels.tolist() == ["wren"]
    assert csv_table.load("test", path).labels.tolist() == ["7"]


def test_numbers_with_zeros_in_front_are_names(table):
    path = table("label,path,split\n007,pics/0.png,train\n7,pics/1.png,train\n")
    assert csv_table.load("train", path).labels.tolist() == ["007", "7"]


def test_a_quoted_path_and_a_mark_at_the_beginning_are_read(table, tmp_path):
    write_pictures(tmp_path, ["a, b.png"])
    path = table('\ufefflabel,path,split\n0,"a, b.png",train\n\n\n')
    assert csv_table.load("train", path).ids.tolist() == ["a, b.png"]


def test_paths_start_from_the_table_or_another_folder_or_are_absolute(table, tmp_path):
    elsewhere = write_text(tmp_path / "elsewhere/table.csv", TWO_SETS)
    assert len(csv_table.load("train", elsewhere, images_root=tmp_path)) == 2
    with pytest.raises(FileError, match=r"line 2 of .* names .*elsewhere/pics/0\.png, which does not exist \(2 of 2"):
        csv_table.load("train", elsewhere)
    absolute = table(TWO_SETS.replace("pics/", f"{tmp_path}/pics/"))
    assert value_of(csv_table.load("query", absolute).picture(0)) == 2


BOXED = """label,path,split,x_1,x_2,y_1,y_2,sequence
0,pics/0.png,train,,,,,
0,pics/1.png,train,1.0,5.0,2.0,4.0,
1,pics/2.png,validation,0,3,0,2,morning
1,pics/2.png,validation,3,6,0,2,noon
2,pics/3.png,validation,,,,,noon
"""


def test_boxes_are_left_right_top_bottom_and_may_be_empty(table):
    images = csv_table.load("train", table(BOXED))
    assert images.boxes.tolist() == [[0, 0, 0, 0], [1, 2, 5, 4]]
    assert [images.picture(row).size for row in range(2)] == [(8, 6), (4, 2)]


def test_one_picture_may_have_several_boxes(table):
    images = csv_table.load("test", table(BOXED))
    assert images.ids.tolist() == ["pics/2.png#0,0,3,2", "pics/2.png#3,0,6,2", "pics/3.png"]
    assert images.names.tolist() == ["pics/2.png", "pics/2.png", "pics/3.png"]


def test_sequences_are_kept_where_there_are_any(table):
    path = table(BOXED)
    assert csv_table.load("test", path).sequences.tolist() == ["morning", "noon", "noon"]
    assert csv_table.load("train", path).sequences is None


def test_a_class_in_train_and_validation_is_warned_of(table):
    with pytest.warns(EntourageWarning, match="1 of its classes both in train and in test, the first is 0"):
        csv_table.load("train", table(TWO_SETS.replace("2,pics/5", "0,pics/5")))


def test_a_class_of_one_image_is_warned_of(table):
    with pytest.warns(EntourageWarning, match="1 of 2 classes with only one image in test, the first is 2"):
        csv_table.load("test", table(BOXED))


def lines(*rows: str) -> str:
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no column of paths; its columns are none"),
        (TWO_SETS.replace("label", "kind", 1), "has no column of classes, .* are kind, path.*--label-column, or take"),
        (TWO_SETS.replace("path", "where", 1), "has no column of paths; .* wanted one called `path` .or `file`"),
        (TWO_SETS.replace("split", "fold", 1), "has the columns `is_query` and `is_gallery` but no column `split`"),
        (TWO_SETS.replace(",is_gallery", ",rest", 1), "has no column `is_gallery`"),
        (BOXED.replace("x_2", "x2", 1), "has no column `x_2`"),
        (TWO_SETS.replace("0.png,train,,", "0.png,train"), "line 2 of .* has 3 cells; wanted 5"),
        (TWO_SETS.replace("validation,1,1", "holdout,1,1"), "line 6 of .* has split holdout; wanted train or val"),
        (TWO_SETS.replace("True,False", ",False"), "line 4 of .* has is_query empty; wanted True or False"),
        (TWO_SETS.replace("True,False", "yes,False"), "line 4 of .* has is_query yes"),
        (TWO_SETS.replace("True,False", "False,False"), "line 4 of .* is_query False and so is `is_gallery`"),
        (TWO_SETS.replace("0,pics/0", ",pics/0"), "line 2 of .* has label empty"),
        (BOXED.replace("1.0,5.0", "5.0,1.0"), "line 3 of .* wanted 0 ≤ x_1 < x_2"),
        (BOXED.replace("1.0,5.0", "1.0,"), "line 3 of .* wanted four numbers, or none"),
        (BOXED.replace("1.0,5.0", "1.0,wide"), "line 3 of .* wanted four numbers, or none"),
        (BOXED.replace("train,1.0,5.0,2.0,4.0,", "train,1.0,5.0,2.0,4.0,dawn"), "line 2 of .* has sequence empty"),
        (TWO_SETS.replace("pics/0.png", "pics/9.png"), r"line 2 of .*pics/9\.png, which does not exist \(1 of 2"),
        (lines("label,path,split", "1,pics/0.png,validation"), "has no line of the split train"),
    ],
)
def test_what_is_wrong_with_a_table_is_named_with_its_line(table, text, message):
    with pytest.raises(FileError, match=message):
        csv_table.load("train", table(text))


def test_a_picture_named_twice_is_refused(table):
    text = lines("label,path,split", "0,pics/0.png,train", "0,pics/1.png,train", "1,pics/0.png,train")
    with pytest.raises(InputError, match=r"lines 2 and 4 of .* name the same image, pics/0\.png"):
        csv_table.load("train", table(text))


@pytest.mark.filterwarnings("error::entourage.errors.EntourageWarning")
def test_all_is_every_line(table):
    images = csv_table.load("all", table(TWO_SETS.replace("2,pics/5", "0,pics/5")))  # a class on both sides
    assert len(images) == len(images.labels) == TWO_SETS.strip().count("\n")


def test_a_split_the_table_does_not_have(table):
    with pytest.raises(InputError, match=r"unknown split 'test' of .*; wanted one of train, query, gallery, all"):
        csv_table.load("test", table(TWO_SETS))


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match=r"the table .*none\.csv does not exist"):
        csv_table.load("train", tmp_path / "none.csv")


SIMPLE = lines("SKU;Filename;Category", *(f"s-{n};pics/{n}.png;{n // 3}" for n in range(6)))


def test_a_table_without_splits_is_divided_by_class_as_a_folder_is(table):
    path = table(SIMPLE)
    assert csv_table.splits(path) == ("train", "test")
    assert csv_table.load("train", path).labels.tolist() == [0, 0, 0]
    assert csv_table.load("test", path).ids.tolist() == ["s-3", "s-4", "s-5"]
    assert csv_table.load("all", path).ids.tolist() == [f"s-{n}" for n in range(6)]
    thirds = table(SIMPLE.replace(";1", ";2").replace("png;0", "png;1", 1))
    assert len(csv_table.load("train", thirds, train_share=0.67)) == 3
    with pytest.raises(InputError, match=r"train_share is 0\.5 but .* has a column `split`; leave it out"):
        csv_table.load("train", table(TWO_SETS), train_share=0.5)


def test_a_table_of_paths_alone_can_be_embedded(table):
    path = table(lines("image", *PICTURES))
    every = csv_table.load("all", path)
    assert (every.ids.tolist(), every.labels) == (PICTURES, None)
    with pytest.raises(FileError, match=r"has no column of classes, .*train and test; .* or take the split all"):
        csv_table.load("test", path)
    empty = table(lines("path,label", *(f"{name}," for name in PICTURES)))
    assert csv_table.load("all", empty).labels is None


def test_columns_of_any_name_can_be_named(table):
    path = table(lines("Nr,id,Bild,Art", "a,1,pics/0.png,wren", "b,2,pics/1.png,robin"))
    named = {"path_column": "bild", "label_column": "Art", "id_column": "Nr"}
    images = csv_table.load("all", path, **named)
    assert (images.ids.tolist(), images.labels.tolist()) == (["a", "b"], ["wren", "robin"])
    assert csv_table.splits(path, **named) == ("train", "test")
    with pytest.raises(FileError, match=r"has no column `foto`; its columns are Nr, id, Bild, Art: .*--path-column"):
        csv_table.load("all", path, path_column="foto")


def test_several_columns_that_may_be_meant_are_refused_and_ours_win(table):
    with pytest.raises(InputError, match=r"`file` and `image`, and either may hold the paths; .* with --path-column"):
        csv_table.load("all", table(lines("file,image", "pics/0.png,pics/1.png")))
    path = table(lines("image,path,category,label", "x,pics/0.png,y,wren"))  # category is a column of that format
    assert csv_table.load("all", path).labels.tolist() == ["wren"]


def test_ids_that_repeat(table):
    text = lines("id,path", "a,pics/0.png", "a,pics/1.png")
    with pytest.raises(InputError, match=r"lines 2 and 3 of .* have the same id, a; .* column with --id-column"):
        csv_table.load("all", table(text))
    with pytest.raises(FileError, match=r"line 3 of .* has id empty; wanted an id for every image"):
        csv_table.load("all", table(text.replace("a,pics/1", ",pics/1")))
    with pytest.warns(EntourageWarning, match="`product_id` of .* does not tell its images apart"):
        assert csv_table.load("all", table(text.replace("id", "product_id", 1))).ids.tolist() == PICTURES[:2]


def test_paths_from_windows_and_an_empty_path(table, tmp_path):
    path = table(lines("path;label", "pics\\0.png;1", "pics\\1.png;2").replace("\n", "\r\n"))
    assert value_of(csv_table.load("all", path).picture(1)) == 1
    with pytest.raises(FileError, match=r"line 2 of .* has path empty; wanted the path of an image"):
        csv_table.load("all", table(lines("path,label", ",1")))
    with pytest.raises(FileError, match="has no line below its header"):
        csv_table.load("all", table("path,label\n"))


def test_a_cell_without_end_is_told_with_its_line(table):
    with pytest.raises(FileError, match=r"line 2 of .* cannot be read .*; check the quotes"):
        csv_table.load("all", table('path,label\n"' + "x" * 200_000))
