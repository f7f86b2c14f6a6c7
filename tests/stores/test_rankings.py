"""Lists of results, to a file and back."""

import numpy as np
import pytest

from entourage.errors import FileError, InputError
from entourage.stores.rankings import RankedLists, read_rankings, write_rankings


def lists(kind=int) -> RankedLists:
    ids = tuple(np.array(row).astype(kind) for row in ([3, 1, 2], [5], [7, 0]))
    scores = tuple(np.array(row, np.float32) for row in ([0.75, 0.5, 0.25], [1.0], [0.5, -0.5]))
    return RankedLists(ids, scores, np.array([10, 4, 6]).astype(kind), scores)


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
def test_lists_of_any_length_come_back(tmp_path, ending, kind):
    path, written = tmp_path / f"lists.{ending}", lists(kind)
    write_rankings(path, written)
    read = read_rankings(path)
    assert [row.tolist() for row in read.ids] == [row.tolist() for row in written.ids] or ending == "csv"
    assert [row.astype(str).tolist() for row in read.ids] == [row.astype(str).tolist() for row in written.ids]
    assert [row.tolist() for row in read.scores] == [row.tolist() for row in written.scores]
    assert read.queries.astype(str).tolist() == ["10", "4", "6"]
    with pytest.raises(FileError, match="exists already"):
        write_rankings(path, written)


def test_an_empty_list_comes_back_where_rows_are_queries(tmp_path):
    nothing = RankedLists((np.array([1]), np.empty(0, int)), (np.array([0.5]), np.empty(0)), np.arange(2))
    for ending in ("npz", "parquet"):
        write_rankings(tmp_path / f"lists.{ending}", nothing)
        assert [len(row) for row in read_rankings(tmp_path / f"lists.{ending}").ids] == [1, 0]


def test_what_faiss_returns_can_be_read(tmp_path):
    np.savez(tmp_path / "found.npz", ids=np.array([[3, 1], [2, -1]]), scores=np.array([[0.9, 0.5], [0.4, -3e38]]))
    read = read_rankings(tmp_path / "found.npz")
    assert [row.tolist() for row in read.ids] == [[3, 1], [2]] and read.queries is None
    assert [row.tolist() for row in read.scores] == [[0.9, 0.5], [0.4]]


def test_lines_of_a_csv_belong_to_their_queries_in_order_of_appearance(tmp_path):
    (tmp_path / "found.csv").write_text("query;id;score\nb;x;2\na;y;3\nb;z;1\n")
    read = read_rankings(tmp_path / "found.csv")
    assert read.queries.tolist() == ["b", "a"] and [row.tolist() for row in read.ids] == [["x", "z"], ["y"]]
    assert [row.tolist() for row in read.scores] == [[2.0, 1.0], [3.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,score\n1,2\n", "wanted one called `query_id` for the queries"),
        ("query,score\n1,2\n", "wanted one called `id`.* for the ids"),
        ("query,id,score\n1,2,high\n", "the scores are not all numbers"),
        ("query,id\n1,\n", "line 2 of .* has id empty"),
    ],
)
def test_a_csv_that_lacks_something_is_refused(tmp_path, text, message):
    (tmp_path / "found.csv").write_text(text)
    with pytest.raises((FileError, InputError), match=message):
        read_rankings(tmp_path / "found.csv")


def test_tables_that_do_not_fit_are_refused(tmp_path):
    np.savez(tmp_path / "flat.npz", ids=np.arange(3))
    np.savez(tmp_path / "none.npz", rows=np.ones((2, 2)))
    np.savez(tmp_path / "other.npz", ids=np.ones((2, 2), int), scores=np.ones((2, 3)))
    for name, message in (("flat", r"ids of shape \(3,\)"), ("none", "wanted `ids`"), ("other", r"shape \(2, 3\)")):
        with pytest.raises((FileError, InputError), match=message):
            read_rankings(tmp_path / f"{name}.npz")
    with pytest.raises(InputError, match="list 0 has 1 ids and 2 scores"):
        RankedLists((np.arange(1),), (np.arange(2.0),))
    with pytest.raises(FileError, match=r"wanted a \.npz, \.parquet or \.csv file"):
        write_rankings(tmp_path / "lists.txt", lists())
