"""`entourage rerank` from outside: searched here or given as a file, in every format, and what is refused."""

import numpy as np
import pytest
from tests.cli.shop import COUNT, document, files, run

from entourage import load_refiner, rerank, search
from entourage.stores.rankings import read_rankings

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")


def expected(query: int, rows: np.ndarray, refiner=None) -> list[int]:
    x = np.load("v.npy")
    return rerank(x[query], x[rows], ids=rows, refiner=refiner).ids.tolist()


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
def test_a_set_searched_in_itself(inside, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    told = document(run(f"rerank v.npy --gallery v.npy --candidates 20 --out {out} --json"))
    assert told["protocol"] == {
        "queries": COUNT,
        "gallery": COUNT,
        "candidates": 20,
        "found_by": "exact search, cosine",
        "scorer": "universal",
    }
    assert set(told["metrics"]) == {"another_first", "new_among_first_10"} and told["out"] == str(out)
    found, lists = search(np.load("v.npy"), k=20).rows, read_rankings(out)
    assert [row.tolist() for row in lists.ids] == [expected(query, found[query]) for query in range(COUNT)]
    changed = np.mean([row[0] != first for row, first in zip(lists.ids, found[:, 0], strict=True)])
    assert told["metrics"]["another_first"] == pytest.approx(changed)


def test_ids_of_both_files_are_kept_and_the_query_is_left_out(inside, tmp_path):
    document(run(f"rerank v.parquet --gallery v.npz --candidates 9 --out {tmp_path}/out.parquet --json"))
    lists = read_rankings(tmp_path / "out.parquet")
    assert lists.queries.tolist() == [f"id {row}" for row in range(COUNT)]
    assert all(query not in ids and len(ids) == 9 for query, ids in zip(lists.queries, lists.ids, strict=True))


def test_results_of_an_index_are_reordered_with_their_scores(inside, tmp_path):
    x = np.load("v.npy")
    given = search(x[:3], x, k=30)
    np.savez(tmp_path / "found.npz", ids=given.rows, scores=given.similarities)
    np.save(tmp_path / "queries.npy", x[:3])
    line = f"rerank {tmp_path}/queries.npy --gallery v.npy --results {tmp_path}/found.npz --out {tmp_path}/out.npz"
    shown = run(line)
    assert shown.exit_code == 0 and "another first" in shown.stdout and f"Written to {tmp_path}/out.npz" in shown.stdout
    with np.load(tmp_path / "out.npz") as out:
        for query in range(3):
            assert out["ids"][query].tolist() == expected(query, given.rows[query])
            before = dict(zip(given.rows[query].tolist(), given.similarities[query].tolist(), strict=True))
            assert out["given_scores"][query].tolist() == [before[item] for item in out["ids"][query].tolist()]
        assert (np.diff(out["scores"], axis=1) <= 0).all()


def test_lists_are_matched_with_queries_by_their_names(inside, tmp_path):
    (tmp_path / "found.csv").write_text("query,id\nid 5,id 7\nid 5,id 8\nid 2,id 9\n")
    document(run(f"rerank v.npz --gallery v.npz --results {tmp_path}/found.csv --out {tmp_path}/out.parquet --json"))
    lists = read_rankings(tmp_path / "out.parquet")
    assert [len(ids) for ids in lists.ids[:6]] == [0, 0, 1, 0, 0, 2] and lists.ids[2].tolist() == ["id 9"]


def test_a_fitted_model_is_used(inside, tmp_path):
    assert run(f"fit v.npy --labels l.npy --out {tmp_path}/relational").exit_code == 0
    told = document(
        run(f"rerank v.npy --gallery v.npy --candidates 20 --model {tmp_path}/relational --out {tmp_path}/a.csv --json")
    )
    assert told["protocol"]["scorer"] == f"{tmp_path}/relational"
    found, refiner = search(np.load("v.npy"), k=20).rows, load_refiner(tmp_path / "relational")
    assert read_rankings(tmp_path / "a.csv").ids[3].tolist() == expected(3, found[3], refiner)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--gallery v.npy --out {out}/a.npy", "wanted a .npz, .parquet or .csv file"),
        ("--gallery missing.npy --out {out}/a.csv", "missing.npy does not exist"),
        ("--gallery wide.npy --out {out}/a.csv", "the queries have 8 dimensions and the gallery 16"),
        ("--gallery v.npy --candidates 0 --out {out}/a.csv", "--candidates is 0"),
        ("--gallery v.npy --candidates 5 --results l.csv --out {out}/a.csv", "leave out one of"),
        ("--gallery v.npy --results l.csv --out {out}/a.csv", "wanted one called `query_id`"),
        ("--gallery v.npy --model model --out {out}/a.csv", "is a PaperRefiner; wanted one of the relational recipe"),
        ("--gallery v.npy --results {out}/few.npz --out {out}/a.csv", "there are 2 lists for 80 queries"),
        ("--gallery v.npy --results {out}/far.npz --out {out}/a.csv", "the id 80 is not in the gallery"),
        ("--gallery v.npz --results {out}/far.npz --out {out}/a.csv", "wanted its ids, such as id 0"),
        ("--gallery v.npy --results {out}/twice.npz --out {out}/a.csv", "id 1 appears 2 times"),
        ("--gallery v.npy --results {out}/strange.npz --out {out}/a.csv", "a list for query 99, which is not among"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(inside, tmp_path, options, message):
    rows = np.zeros((COUNT, 1), int)
    np.savez(tmp_path / "few.npz", ids=rows[:2])
    np.savez(tmp_path / "far.npz", ids=rows + COUNT)
    np.savez(tmp_path / "twice.npz", ids=np.ones((COUNT, 2), int))
    np.savez(tmp_path / "strange.npz", ids=rows[:1], queries=[99])
    before = files(tmp_path)
    result = run(f"rerank v.npy {options.format(out=tmp_path)}")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and message in result.stderr, result.stderr
    assert files(tmp_path) == before
