"""A newcomer's own data: odd tables and files, columns of other names, pictures found again by id."""

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.pictures import TRAIN, write_birds
from tests.cli.shop import document, run

from entourage.runs.open import open_run

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Photographs of a shop, a table of them as a spreadsheet writes it, and a run that was trained on it."""
    folder = tmp_path_factory.mktemp("shop")
    pictures = write_birds(folder / "Meine Fotos")
    with (folder / "Bestand.csv").open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file, delimiter=";", lineterminator="\r\n")
        table.writerow(["SKU", "Bild", "Art, lang"])
        for number, path in enumerate(sorted(pictures.rglob("*.png"))):
            table.writerow([f"ä{number:03}", path.relative_to(pictures).as_posix(), path.parent.name])
    columns = ("--root", "Meine Fotos", "--path-column", "bild", "--label-column", "Art, lang")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        trained = run(f"train Bestand.csv --out run --json {TRAIN}", *columns)
    assert trained.exit_code == 0, trained.stderr
    return folder


@pytest.fixture
def inside(shop, monkeypatch):
    monkeypatch.chdir(shop)
    return shop


def test_columns_are_recorded_and_found_again_by_embed_and_plot(inside, tmp_path, monkeypatch):
    described = json.loads((inside / "run" / "config.json").read_text())["data"]
    assert described["options"] == {"path_column": "bild", "label_column": "Art, lang"}
    done = document(
        run(f"embed Bestand.csv --split all --model run --out {tmp_path}/v.parquet --json", "--root", "Meine Fotos")
    )
    assert done["protocol"]["vectors"] == 48
    items = pq.read_table(tmp_path / "v.parquet")
    assert items.column("id")[0].as_py() == "ä000" and items.column("label")[0].as_py() == "bird 00"
    refined = run(
        f"refine {tmp_path}/v.parquet --run {tmp_path}/kept --pictures Bestand.csv --path-column Bild --root",
        "Meine Fotos",
    )
    assert refined.exit_code == 0, refined.stderr
    kept = open_run(tmp_path / "kept")
    assert kept.appearance.kind == "pictures" and kept.appearance.thumbnail(47) is not None
    monkeypatch.chdir(tmp_path)  # the pictures are where they were, seen from anywhere
    for folder in (inside / "run", tmp_path / "kept"):
        drawn = run(f"plot sheet {folder} --out {tmp_path}/{folder.name}.png")
        assert (drawn.exit_code, drawn.stderr.count("warning")) == (0, 0), drawn.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "embed Bestand.csv --model nothing --out new.npz",
            "has no column of paths; its columns are SKU, Bild, Art, lang",
        ),
        ("train Bestand.csv --out r --path-column Foto", "has no column `Foto`; its columns are SKU, Bild, Art, lang"),
        (
            "train Bestand.csv --out r --path-column Bild",
            "has no column of classes, .*: name it with --label-column, or",
        ),
        ("train glyphs --out r --path-column Bild", "path_column is 'Bild', but there are no such columns in glyphs"),
        (
            "train Bestand.csv --out r --path-column Bild --data-option path_column=Foto",
            "--path-column is Bild and --data-option path_column is Foto; leave one out",
        ),
        (
            "refine v.npz --run r --pictures Bestand.csv --path-column Bild --data-option images_root=x",
            "an option of .*Bestand.csv is 'images_root'|unknown option 'images_root'",
        ),
        ("train Bestand.csv --out r --data-option root=x", "--data-option root is x, which is no option of the data"),
        (
            "embed Bestand.csv --model m --out o.npz --data-option split=x",
            "--data-option split is x, which is no option",
        ),
        ("refine v.npz --out o.npz --split test", "--split is test but there are no pictures; add --pictures or leave"),
        ("refine v.npz --out o.npz --label-column a", "--label-column is a but there is no --run to keep it in"),
    ],
)
def test_what_does_not_fit_is_one_sentence(inside, tmp_path, monkeypatch, command, said):
    np.savez(tmp_path / "v.npz", vectors=np.eye(30), ids=[f"ä{number:03}" for number in range(30)])
    (tmp_path / "Bestand.csv").write_bytes((inside / "Bestand.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    result = run(command)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: ")
    assert re.search(said, result.stderr), result.stderr


def test_warnings_are_printed_though_an_error_follows(tmp_path):
    vectors = list(np.random.default_rng(0).normal(size=(30, 4)))
    pq.write_table(pa.table({"emb": vectors, "sku": ["twice"] * 30}), tmp_path / "v.parquet")
    result = run(f"refine {tmp_path}/v.parquet --run {tmp_path}/r --pictures {tmp_path}/none")
    warning, error = result.stderr.splitlines()
    assert warning.startswith("warning: the column `sku` of") and "is not used as ids" in warning
    assert error.startswith("error: ") and result.exit_code == 2


@pytest.mark.parametrize("command", ["fit {v} --out {o}", "evaluate {v}", "compare {v} --methods raw"])
def test_a_column_that_cannot_be_the_labels_is_told_before_they_are_missed(tmp_path, command):
    vectors = list(np.random.default_rng(0).normal(size=(30, 4)))
    pq.write_table(pa.table({"emb": vectors, "category": [None] + ["a"] * 29}), tmp_path / "v.parquet")
    result = run(command.format(v=tmp_path / "v.parquet", o=tmp_path / "o"))
    assert result.stderr.startswith("warning: the column `category` of")
    assert "give them with --labels, or name their column with --label-column" in result.stderr.splitlines()[-1]


def test_the_neighbours_that_are_used_are_printed(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    np.save(tmp_path / "v.npy", np.vstack([x, x]))  # every vector twice
    np.save(tmp_path / "w.npy", x)
    for name, used in (("v", 15), ("w", 15)):
        result = run(f"refine {tmp_path}/{name}.npy --out {tmp_path}/{name}2.npy --neighbors 5000")
        assert f"neighbors                  {used} (a quarter of the distinct items, instead of 5000)" in result.stdout
    assert (
        "neighbors                  6, exact"
        in run(f"refine {tmp_path}/v.npy --out {tmp_path}/3.npy --neighbors 6").stdout
    )


def test_the_split_of_compare_may_be_a_column_called_split(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 6)
    ids = [f"s{row}" for row in range(48)]
    x = rng.normal(size=(8, 6))[labels] + 0.3 * rng.normal(size=(48, 6))
    pq.write_table(pa.table({"vector": list(x), "sku": ids, "class": labels}), tmp_path / "v.parquet")
    rows = [f"{item};{'train' if label < 4 else 'test'}" for item, label in zip(ids, labels, strict=True)]
    (tmp_path / "split.csv").write_text("\n".join(["sku;split", *reversed(rows)]))
    result = run(f"compare {tmp_path}/v.parquet --split {tmp_path}/split.csv --methods raw --json")
    assert document(result)["protocol"]["split"].startswith("given by")
