"""The whole driver as printed, all rows: one table of each system on a dataset in its genuine layout, in miniature."""

import pytest
from tests.runs.reproduce import genuine

from entourage.errors import FileError
from entourage.runs.reproduce.driver import Request, reproduce
from entourage.runs.reproduce.scale import Scale
from entourage.runs.reproduce.tables import table_named

pytestmark = pytest.mark.usefixtures("one_thread")

WRITE = {
    "cub": genuine.write_cub,
    "sop": genuine.write_sop,
    "in_shop": genuine.write_in_shop,
    "market1501": genuine.write_market,
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return genuine.tiny_resnet(tmp_path_factory.mktemp("model"))


def brief(encoder: str, **more) -> dict:
    """What the miniature changes of the printed recipes."""
    of_all = {"encoder": encoder, "image_size": 32, "dim": 16, "epochs": 1, "batch_classes": 3, "batch_per_class": 2}
    return of_all | {"workers": 1, "refiner": {"epochs": 1, "n_blocks": 1, "n_neighbors": 3}} | more


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("attend-4", "cub"),
        ("intra-batch-2", "in_shop"),
        ("intra-batch-7", "cub"),
        ("divide-s2", "market1501"),
        ("divide-fig-s2", "sop"),
        ("cross-image-s1", "cub"),
    ],
)
def test_every_row_of_a_table_as_printed(name, dataset, encoder, tmp_path, monkeypatch):
    WRITE[dataset](tmp_path / "data", monkeypatch)
    scale = Scale(data=dataset, root=tmp_path / "data", settings=brief(encoder, learners=2, blocks=2))
    made = reproduce(Request(name, tmp_path / "out", scale))
    table = table_named(name)
    assert made.missing == {}
    for row in table.made:
        values = made.results.values(dataset, row.name)[0]
        for metric in table.metrics[dataset]:
            if metric != "median gradient" or not row.recipe.refine:
                assert metric in values, (row.name, metric)
    last = next(row for row in reversed(table.made) if row.printed) if any(row.printed for row in table.made) else None
    if last is not None:
        metric = table.metrics[dataset][0]
        ours = 100 * made.results.values(dataset, last.name)[0][metric]
        printed = last.printed[dataset][metric]
        line = next(line for line in made.text.splitlines() if line.startswith(f"| {last.name} "))
        cells = [cell.strip() for cell in line.split("|")[2:5]]
        assert cells == [f"{printed:.1f}", f"{ours:.1f}", f"{ours - printed:+.1f}".replace("-", "\N{MINUS SIGN}")]


def test_the_other_datasets_of_a_table_are_left_out_and_said(encoder, tmp_path, monkeypatch):
    genuine.write_cub(tmp_path / "data", monkeypatch)
    scale = Scale(root=tmp_path / "data", settings=brief(encoder))
    made = reproduce(Request("attend-fig3", tmp_path / "out", scale))
    assert list(made.missing) == ["cars", "sop"] and "cars" in made.missing["cars"]
    assert made.results.datasets == ["cub"] and [path.name for path in made.figures] == ["attend-fig3-cub.png"]


def test_a_wrong_split_is_refused_with_what_is_wrong(encoder, tmp_path, monkeypatch):
    genuine.write_in_shop(tmp_path / "data", monkeypatch)
    lists = tmp_path / "data" / "in_shop" / "list_eval_partition.txt"
    lists.write_text(lists.read_text().replace(" query", " probe"))
    scale = Scale(root=tmp_path / "data", settings=brief(encoder))
    with pytest.raises(FileError, match=r"not there: .*query, names 0 images of 0 classes; wanted 8 of 4"):
        reproduce(Request("intra-batch-2", tmp_path / "out", scale))
    genuine.write_in_shop(tmp_path / "data", monkeypatch)
    lines = lists.read_text().splitlines()
    lists.write_text("\n".join(line for line in lines if not line.endswith("/05_front.jpg id_00000007 gallery")) + "\n")
    with pytest.raises(FileError, match=r"needs data that are not there: .*list_eval_partition"):
        reproduce(Request("intra-batch-2", tmp_path / "out", scale))
    assert not (tmp_path / "out").exists()
