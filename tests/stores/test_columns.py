"""Ids and labels under other names: named by the user, or recognised, or left alone with a warning."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from entourage.errors import EntourageError, EntourageWarning, FileError
from entourage.stores import read_vectors
from entourage.stores.columns import columns_where_present
from entourage.stores.tables import ID, LABEL

IDS, LABELS = ["d", "b", "a"], ["cat", "dog", "cat"]
VECTORS = np.eye(3, dtype=np.float32)


def written(path, **columns):
    if path.suffix == ".npz":
        np.savez(path, vectors=VECTORS, **columns)
    else:
        pq.write_table(pa.table({"vector": list(VECTORS), **columns}), path)
    return path


def seen(items) -> tuple:
    return (items.ids.tolist() if items.named else None, None if items.labels is None else items.labels.tolist())


@pytest.fixture(params=[".npz", ".parquet"])
def suffix(request):
    return request.param


@pytest.mark.parametrize("name", [*ID.usual, "SKU", "Id", "ids"])
def test_usual_names_of_ids(tmp_path, suffix, name):
    assert seen(read_vectors(written(tmp_path / f"v{suffix}", **{name: IDS}))) == (IDS, None)


@pytest.mark.parametrize("name", [*LABEL.usual, "Category", "labels"])
def test_usual_names_of_labels(tmp_path, suffix, name):
    assert seen(read_vectors(written(tmp_path / f"v{suffix}", **{name: LABELS}))) == (None, LABELS)


def test_our_names_win_over_usual_ones(tmp_path, suffix):
    path = written(tmp_path / f"v{suffix}", id=IDS, sku=["x"] * 3, label=LABELS, category=["y"] * 3)
    assert seen(read_vectors(path)) == (IDS, LABELS)


def test_columns_of_any_name_can_be_named(tmp_path, suffix):
    path = written(tmp_path / f"v{suffix}", id=["x", "y", "z"], Nummer=IDS, label=[1, 1, 2], Art=LABELS)
    assert seen(read_vectors(path, id_column="nummer", label_column="Art")) == (IDS, LABELS)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"sku": IDS, "key": IDS}, "columns called `sku` and `key`, and either may hold the ids; .* with --id-column"),
        ({"class": LABELS, "target": LABELS}, "`class` and `target`, and either may hold the labels; .*--label-column"),
    ],
)
def test_several_usual_names_are_refused_with_the_option_that_chooses(tmp_path, suffix, columns, said):
    with pytest.raises(EntourageError, match=said):
        read_vectors(written(tmp_path / f"v{suffix}", **columns))
    option = said.split("--")[1].replace("-", "_")
    first = next(iter(columns))
    assert seen(read_vectors(tmp_path / f"v{suffix}", **{option: first})) != (None, None)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"product_id": ["p", "p", "q"]}, "`product_id` of .* is not used as ids: id 'p' appears 2 times"),
        ({"target": [0.5, 1.5, 2.5]}, "`target` of .* is not used as labels: the labels are float64 and not whole"),
        ({"category": ["a", None, "b"]}, "`category` of .* is not used as labels: .*missing value"),
    ],
)
def test_a_usual_name_that_means_something_else_is_a_warning(tmp_path, columns, said):
    path = written(tmp_path / "v.parquet", **columns)
    with pytest.warns(EntourageWarning, match=said):
        assert seen(read_vectors(path)) == (None, None)
    option = "id_column" if "product_id" in columns else "label_column"
    with pytest.raises(EntourageError):  # asked for by name it is an error
        read_vectors(path, **{option: next(iter(columns))})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"id_column": "ean"}, r"no column `ean` in .*v\.parquet, which has vector, sku; name one of those"),
        ({"label_column": "kind"}, r"no column `kind` in .*v\.parquet, which has vector, sku"),
        ({"labels": "sku", "label_column": "sku"}, "labels are the column sku of .*leave --label-column out"),
        ({"labels": "l.csv", "label_column": "sku"}, r"no column `sku` in .*l\.csv, which has nr, art"),
        (
            {"labels": "l.csv", "id_column": "ean"},
            r"no column `ean` in .*v\.parquet or .*l\.csv, which has vector",
        ),
        ({"labels": "l.csv"}, r"has the columns nr, art; wanted one called `label` .*: name it with --label-column"),
        ({"labels": "l.txt", "label_column": "art"}, r"--label-column is art but there are no columns .* leave it out"),
    ],
)
def test_a_column_that_is_not_there_is_told_with_those_that_are(tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.csv").write_text("nr,art\nd,cat\nb,dog\na,cat\n")
    (tmp_path / "l.txt").write_text("cat\ndog\ncat\n")
    with pytest.raises(EntourageError, match=said):
        read_vectors(written(tmp_path / "v.parquet", sku=IDS), **options)


@pytest.mark.parametrize("name", ["l.csv", "l.parquet"])
@pytest.mark.parametrize("id_column", [None, "nr"])
def test_labels_are_matched_by_columns_of_other_names(tmp_path, name, id_column):
    table = {id_column or "SKU": ["a", "b", "c", "d"], "art": ["cat", "dog", "eel", "cat"]}
    if name == "l.csv":
        rows = zip(*table.values(), strict=True)
        (tmp_path / name).write_text("\r\n".join(";".join(row) for row in (table, *rows)))
    else:
        pq.write_table(pa.table(table), tmp_path / name)
    path = written(tmp_path / "v.npz", key=IDS)
    items = read_vectors(path, labels=tmp_path / name, label_column="art", id_column=id_column)
    assert items.labels.tolist() == LABELS


@pytest.mark.parametrize("ids", [["x", "y", "z"], ["d", "d", "b"]])
def test_a_usual_name_without_ids_of_the_vectors_leaves_the_order(tmp_path, ids):
    (tmp_path / "l.csv").write_text("key,label\n" + "".join(f"{i},{y}\n" for i, y in zip(ids, LABELS, strict=True)))
    with pytest.warns(EntourageWarning, match=r"the column `key` of .* so labels are taken in the order of its lines"):
        assert read_vectors(written(tmp_path / "v.npz", id=IDS), labels=tmp_path / "l.csv").labels.tolist() == LABELS


def test_json_labels_by_id_and_what_is_wrong_with_them(tmp_path):
    path, labels = written(tmp_path / "v.npz", id=IDS), tmp_path / "l.json"
    labels.write_text('{"a": 1, "b": 2, "c": 5, "d": 3}')
    assert read_vectors(path, labels=labels).labels.tolist() == [3, 2, 1]
    np.save(tmp_path / "v.npy", VECTORS)
    with pytest.raises(EntourageError, match="a label for each id, but the vectors have no ids"):
        read_vectors(tmp_path / "v.npy", labels=labels)
    for text in ('{"a": [1]}', "3", '["a", 1]', "[0.5, 1, 2]"):
        labels.write_text(text)
        with pytest.raises(EntourageError, match="holds something else than labels"):
            read_vectors(path, labels=labels)


def test_a_gallery_has_the_named_columns_as_far_as_it_can(tmp_path):
    named = {"id_column": "nr", "label_column": "art"}
    table = written(tmp_path / "g.parquet", art=LABELS)
    np.save(tmp_path / "g.npy", VECTORS)
    assert columns_where_present(table, None, **named) == {"id_column": None, "label_column": "art"}
    assert columns_where_present(table, "other", **named) == {"id_column": None, "label_column": None}
    assert columns_where_present(tmp_path / "g.npy", tmp_path / "l.txt", **named) == dict.fromkeys(named)


def test_lists_of_text_are_no_vectors(tmp_path):
    assert len(read_vectors(written(tmp_path / "v.parquet", tags=[["a"], ["b"], []]))) == 3


def test_a_wide_table_is_told_by_a_few_of_its_columns(tmp_path):
    pq.write_table(pa.table({"sku": IDS} | {f"v{n}": [0.1, 0.2, 0.3] for n in range(512)}), tmp_path / "v.parquet")
    with pytest.raises(EntourageError, match=r"put v0, v1, v2, \.\.\. \(512 columns\) into one") as told:
        read_vectors(tmp_path / "v.parquet")
    assert "v9" not in str(told.value) and len(str(told.value)) < 400
    with pytest.raises(EntourageError, match=r"vector, sku, x0, \.\.\. \(42 columns\)") as told:
        read_vectors(written(tmp_path / "w.parquet", sku=IDS, **{f"x{n}": [1, 2, 3] for n in range(40)}), labels="kind")
    assert "x9" not in str(told.value)


@pytest.mark.parametrize("named", [{}, {"id_column": "sku"}])
def test_a_second_file_that_is_missing_or_never_ends_is_one_sentence(tmp_path, named):
    wanted = {"id_column": None, "label_column": None} | named
    os.mkfifo(tmp_path / "pipe.npz")
    for name, reason in {"missing.npz": "does not exist", "pipe.npz": "is a pipe", "table.txt": "ends in .txt"}.items():
        with pytest.raises(FileError, match=rf"{name} {reason}"):
            columns_where_present(tmp_path / name, None, **wanted)
