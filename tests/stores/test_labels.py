"""Labels from every format: matched to the right vector, or refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from entourage.errors import EntourageError, FileError
from entourage.stores import read_vectors

LABELS = ["cat", "dog", "cat", "eel"]
IDS = ["d", "b", "a", "c"]


@pytest.fixture
def folder(tmp_path):
    """Four vectors three times: without ids (.npy), and with ids and labels of their own (.npz, .parquet)."""
    vectors = np.eye(4, dtype=np.float32)
    np.save(tmp_path / "plain.npy", vectors)
    np.savez(tmp_path / "own.npz", vectors=vectors, ids=IDS, labels=[0, 0, 0, 0], animal=LABELS)
    table = {"id": IDS, "vector": list(vectors), "label": [0, 0, 0, 0], "animal": LABELS, "meta.kind": LABELS}
    pq.write_table(pa.table(table), tmp_path / "own.parquet")
    return tmp_path


def labels_of(vectors, labels) -> list:
    return read_vectors(vectors, labels=labels).labels.tolist()


def written(folder, name: str, text: str, encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


# ---- one label per line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("l.txt", "cat\ndog\ncat\neel", id="txt"),
        pytest.param("l.txt", "cat\ndog\ncat\neel\n", id="txt, final newline"),
        pytest.param("l.txt", "cat\ndog\ncat\neel\n\n \n", id="txt, blank lines at the end"),
        pytest.param("l.txt", "cat\r\ndog\r\ncat\r\neel\r\n", id="txt from Windows"),
        pytest.param("l.txt", "\ufeffcat\n dog \ncat\neel\n", id="txt, BOM and spaces"),
        pytest.param("L.TXT", "cat\ndog\ncat\neel\n", id="txt in capitals"),
        pytest.param("l.csv", "cat\ndog\ncat\neel\n", id="csv without header"),
        pytest.param("l.csv", "label\ncat\ndog\ncat\neel\n", id="csv with header"),
        pytest.param("l.csv", "species\ncat\ndog\ncat\neel\n", id="csv, header of another name"),
        pytest.param("l.csv", "\ufeffLabels\r\ncat\r\ndog\r\ncat\r\neel\r\n", id="csv from Excel"),
        pytest.param("l.csv", "x,label,y\n1,cat,\n2,dog,\n3,cat,\n4,eel,\n", id="csv of several columns"),
        pytest.param(
            "l.csv", "\ufeffNr;Klasse;Label\r\n1;;cat\r\n2;;dog\r\n3;;cat\r\n4;;eel\r\n;;\r\n", id="semicolons"
        ),
        pytest.param("l.csv", "no\tclass\n1\tcat\n2\tdog\n3\tcat\n4\teel\n", id="tabs, a usual name"),
        pytest.param("l.json", '["cat", "dog", "cat", "eel"]', id="json"),
        pytest.param("l.csv", "id,label\n9,cat\n8,dog\n7,cat\n6,eel\n\n\n", id="csv with ids for vectors without"),
    ],
)
def test_labels_in_the_order_of_the_vectors(folder, name, text):
    assert labels_of(folder / "plain.npy", written(folder, name, text)) == LABELS


def test_quoted_cells_keep_their_commas_quotes_and_line_breaks(folder):
    path = written(folder, "l.csv", 'label\n"cat, black"\n"the ""dog"""\n"two\nlines"\nüber\n')
    assert labels_of(folder / "plain.npy", path) == ["cat, black", 'the "dog"', "two\nlines", "über"]


def test_a_line_separator_inside_a_txt_label_does_not_split_it(folder):
    path = written(folder, "l.txt", "a\u2028b\nc\x0cd\ne\x85f\ng\n")
    assert labels_of(folder / "plain.npy", path) == ["a\u2028b", "c\x0cd", "e\x85f", "g"]


@pytest.mark.parametrize("labels", [np.array(LABELS), np.array([3, 1, 3, -2]), np.array([3.0, 1.0, 3.0, 2.0])])
def test_npy_labels(folder, labels):
    np.save(folder / "l.npy", labels)
    assert labels_of(folder / "plain.npy", folder / "l.npy") == labels.tolist()


# ---- joined by id ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectors", ["own.npz", "own.parquet"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("id,label\na,cat\nb,dog\nc,eel\nd,cat\n", id="another order"),
        pytest.param("label,ids\neel,c\ncat,a\ncat,d\ndog,b\n", id="ids last"),
        pytest.param("id,label\nz,emu\na,cat\nb,dog\nc,eel\ny,emu\nd,cat\n", id="more lines than vectors"),
        pytest.param("ID , Label\n a , cat \nb, dog\nc, eel\nd, cat\n", id="spaces and capitals"),
    ],
)
def test_a_csv_with_ids_is_joined_to_the_vectors(folder, vectors, text):
    assert labels_of(folder / vectors, written(folder, "l.csv", text)) == LABELS


@pytest.mark.parametrize("numbered", [True, False])
def test_ids_that_vectors_without_ids_cannot_be_matched_by_are_told_of(folder, numbered, recwarn):
    ids = range(4) if numbered else ["d", "c", "b", "a"]
    lines = [f"{item},{label}" for item, label in zip(ids, LABELS, strict=True)]
    path = written(folder, "l.csv", "\n".join(["sku,label", *lines]))
    assert labels_of(folder / "plain.npy", path) == LABELS
    told = [str(each.message) for each in recwarn]
    assert told == [] if numbered else "the vectors have no ids" in told[0] and "`sku`" in told[0]


def test_whole_number_ids_match_their_text(folder):
    np.savez(folder / "numbered.npz", vectors=np.eye(4), ids=[30, 10, 20, 40])
    path = written(folder, "l.csv", "id,label\n10,dog\n20,cat\n30,cat\n40,eel\n")
    assert labels_of(folder / "numbered.npz", path) == LABELS


# ---- a column of the vectors' own file ---------------------------------------------------------------------


@pytest.mark.parametrize("vectors", ["own.npz", "own.parquet"])
def test_a_column_of_the_vectors_file_by_name(folder, vectors):
    assert labels_of(folder / vectors, "animal") == LABELS
    assert labels_of(folder / vectors, None) == [0, 0, 0, 0]
    assert read_vectors(folder / vectors, labels=False).labels is None


def test_a_column_name_may_have_a_dot_or_be_that_of_a_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "animal").mkdir()
    assert labels_of("own.parquet", "meta.kind") == LABELS
    assert labels_of("own.parquet", "animal") == LABELS


# ---- labels that are refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectors", "name", "text", "message"),
    [
        pytest.param("plain.npy", "l.txt", "a\nb\nc\n", "l.txt: 3 labels for 4 vectors", id="too few"),
        pytest.param("plain.npy", "l.txt", "", "l.txt: 0 labels for 4 vectors", id="empty txt"),
        pytest.param("plain.npy", "l.txt", "a\n\nb\nc\n", "line 2 of .*l.txt has an empty cell", id="gap in txt"),
        pytest.param("plain.npy", "l.csv", "", "l.csv is empty; wanted one label per", id="empty csv"),
        pytest.param("plain.npy", "l.csv", "a\nb\nb\na\na\n", "5 labels for 4", id="one too many is no header"),
        pytest.param("plain.npy", "l.csv", "kind\na\n\nb\nc\n", "line 3 of .*l.csv has an empty", id="gap in csv"),
        pytest.param("own.npz", "l.csv", "id,label\nd,x\nb,\n", "line 3 of .*l.csv has label empty", id="empty cell"),
        pytest.param("own.npz", "l.csv", "label,id\nx,d\ny\n", "line 3 of .*l.csv has id empty", id="short line"),
        pytest.param(
            "plain.npy", "l.csv", "1,a\n2,b\n3,c\n4,d\n", "columns 1, a; wanted one called `label`", id="name"
        ),
        pytest.param(
            "own.npz", "l.csv", "id,label\na,x\nb,y\n", "2 of 4 ids have no .* first is 'd'", id="ids missing"
        ),
        pytest.param("own.npz", "l.csv", "id,label\na,x\na,y\n", "id 'a' has more than one line", id="id repeated"),
        pytest.param("plain.npy", "l.tsv", "a\nb\nc\nd\n", "l.tsv ends in .tsv; labels are read from", id="suffix"),
    ],
)
def test_labels_that_cannot_be_matched_are_refused(folder, vectors, name, text, message):
    with pytest.raises(EntourageError, match=message):
        read_vectors(folder / vectors, labels=written(folder, name, text))


@pytest.mark.parametrize("name", ["l.txt", "l.csv"])
def test_text_in_another_encoding_is_refused(folder, name):
    with pytest.raises(FileError, match=r"is not UTF-8 text \(.*\); save it again as UTF-8"):
        read_vectors(folder / "plain.npy", labels=written(folder, name, "é\nè\nà\nç\n", "latin-1"))


@pytest.mark.parametrize(
    ("vectors", "labels", "message"),
    [
        ("plain.npy", "nothing.csv", "labels file nothing.csv does not exist; check the path"),
        ("plain.npy", "nothing", "there is no file nothing to read labels from; wanted .npy, .csv, .txt"),
        ("own.npz", "kind", "kind is neither a file nor a column of .*own.npz, which has vectors, ids, labels, animal"),
        ("own.parquet", "kind", "neither a file nor a column of .*which has id, vector, label, animal, meta.kind"),
        ("own.parquet", "vector", "column `vector` is of type list<.*>; wanted one integer or text per row"),
    ],
)
def test_labels_that_are_not_there_are_refused(folder, vectors, labels, message):
    with pytest.raises(EntourageError, match=message):
        read_vectors(folder / vectors, labels=labels)


@pytest.mark.parametrize("column", ["label", "kind"])
def test_missing_labels_in_a_column_are_refused(tmp_path, column):
    table = pa.table({"vector": list(np.eye(3)), column: ["a", None, "b"]})
    pq.write_table(table, tmp_path / "v.parquet")
    with pytest.raises(EntourageError, match=f"column `{column}` has 1 missing value; wanted one per row"):
        read_vectors(tmp_path / "v.parquet", labels=None if column == "label" else column)


def test_labels_nobody_asked_for_are_not_looked_at(tmp_path):
    table = pa.table({"vector": list(np.eye(3)), "label": ["a", None, "b"], "kind": [1, 2, 2]})
    pq.write_table(table, tmp_path / "v.parquet")
    assert read_vectors(tmp_path / "v.parquet", labels=False).labels is None
    assert labels_of(tmp_path / "v.parquet", "kind") == [1, 2, 2]
