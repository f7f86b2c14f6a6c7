"""Datasets whose queries and gallery are apart, In-Shop and Market-1501, through every command."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.pictures import TRAIN
from tests.cli.shop import run
from tests.data.pictures import write_text
from tests.data.sets.test_in_shop import partition

from entourage import data
from entourage.data.layout import Count
from entourage.data.sets import in_shop, market1501
from entourage.evaluation import evaluate_embeddings
from entourage.stores import read_vectors

pytestmark = pytest.mark.usefixtures("one_thread")

OF_A_CLASS = {"train": 4, "query": 2, "gallery": 3}
CLASSES = 6  # to learn from, and as many to be searched


def document(result) -> dict:
    """What --json printed; so few items may be warned of."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def pictures():
    """(class, split, number of the picture, pixels): a colour for each class, with noise."""
    rng = np.random.default_rng(0)
    for number, colour in enumerate(rng.integers(0, 255, (2 * CLASSES, 3)), start=1):
        for split in ("train",) if number <= CLASSES else ("query", "gallery"):
            for shot in range(OF_A_CLASS[split]):
                noisy = colour + rng.normal(0, 25, (24, 18, 3))
                yield number, split, shot, Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def write_in_shop(root):
    lines = []
    for number, split, shot, picture in pictures():
        name = f"img/MEN/Denim/id_{number:08}/{split}_{shot}_front.jpg"
        place = root / "in_shop" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        picture.save(place)
        lines.append((name, f"id_{number:08}", split))
    write_text(root / "in_shop" / "list_eval_partition.txt", partition(lines))


def write_market(root):
    folders = {"train": "bounding_box_train", "query": "query", "gallery": "bounding_box_test"}
    for number, split, shot, picture in pictures():
        place = root / "Market-1501-v15.09.15" / folders[split]
        place.mkdir(parents=True, exist_ok=True)
        picture.save(place / f"{number:04}_c{shot + 1}s1_{shot:06}_00.jpg")


@pytest.fixture(params=["in_shop", "market1501"])
def dataset(request, tmp_path, monkeypatch):
    """The name of a dataset in the genuine layout, in the present folder, and what options find it."""
    counts = {split: Count(CLASSES * each, CLASSES) for split, each in OF_A_CLASS.items()}
    monkeypatch.setattr(in_shop, "EXPECTED", counts)
    monkeypatch.setattr(market1501, "EXPECTED", counts)
    monkeypatch.setattr(market1501, "FILES", {split: count.images for split, count in counts.items()})
    {"in_shop": write_in_shop, "market1501": write_market}[request.param](tmp_path)
    monkeypatch.chdir(tmp_path)
    return f"{request.param} --root {tmp_path}"


def test_every_command_takes_queries_and_gallery(dataset):
    name = dataset.split()[0]
    trained = document(run(f"train {dataset} --out run --encoder small-rgb {TRAIN} --json"))
    for split in OF_A_CLASS:
        document(run(f"embed {dataset} --model run --split {split} --out {split}.npz --json"))
    apart = document(run("evaluate query.npz --gallery gallery.npz --recall-at 1,10 --json"))
    assert trained["metrics"]["map@r"] == pytest.approx(apart["metrics"]["map@r"], abs=1e-6)
    shown = document(run(f"embed {dataset} --model run --split all --out all.parquet --json"))
    assert shown["protocol"]["vectors"] == sum(CLASSES * each for each in OF_A_CLASS.values())
    one_file = document(run("evaluate all.parquet --split split --recall-at 1,10 --json"))
    assert one_file["metrics"] == pytest.approx(apart["metrics"], abs=1e-6)
    assert one_file["protocol"]["queries"] == 2 * CLASSES and "recall@10" in one_file["metrics"]
    assert ("map" in one_file["metrics"]) == (name == "market1501")

    outputs = "--out refined.npz --context-out refined-gallery.npz --run kept"
    kept = document(run(f"refine query.npz --context gallery.npz {outputs} --pictures {dataset} --json"))
    assert json.loads(Path("kept/run.json").read_text())["media"]["pictures"]["split"] == "query,gallery"
    again = document(run("evaluate refined.npz --gallery refined-gallery.npz --no-nmi --json"))
    assert again["metrics"]["map@r"] == pytest.approx(kept["scores"]["after"]["map@r"], abs=1e-6)
    for kind in ("sheet", "query", "drift"):
        assert run(f"plot {kind} kept --out {kind}.png").exit_code == 0
    assert run("report kept").exit_code == 0 and run("report run").exit_code == 0

    compared = document(run("compare all.parquet --split split --methods raw,alpha-qe-8-3 --json"))
    assert (compared["protocol"]["protocol"], compared["protocol"]["queries"]) == ("served", 2 * CLASSES)
    raw = document(run("evaluate all.parquet --split split --no-exclusions --no-nmi --json"))["metrics"]
    assert compared["methods"][0]["map@r"] == pytest.approx(raw["map@r"], abs=1e-6)
    assert document(run("doctor all.parquet --json"))["protocol"]


def test_the_split_is_a_column_of_every_format(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    glyphs = "glyphs --data-option per_class=3 --data-option max_classes=6"
    document(run(f"train {glyphs} --out run {TRAIN} --no-nmi --json"))
    for suffix in (".npz", ".parquet", ".npy"):
        document(run(f"embed {glyphs} --model run --split train,test --out v{suffix} --json"))
    words = np.load("v.npz")["split"].tolist()
    assert words == ["train"] * 18 + ["test"] * 18
    items = read_vectors("v.npz")
    test = evaluate_embeddings(items.take(np.array(words) == "test"), nmi=False).metrics
    column = {"v.npz": "--split split", "v.parquet": "--split split", "v.npy": "--labels v.csv --split v.csv"}
    for path, options in column.items():
        assert document(run(f"evaluate {path} {options} --no-nmi --json"))["metrics"] == pytest.approx(test)
        compared = document(run(f"compare {path} {options} --methods raw --json"))
        assert compared["protocol"]["split"] == f"given by {options.split()[-1]}"
        assert compared["methods"][0]["map@r"] == pytest.approx(test["map@r"])
        out = path.replace("v", "refined")
        document(run(f"refine {path} --out {out} --json"))
    assert np.load("refined.npz")["split"].tolist() == words  # as every other column
    alone = document(run(f"embed {glyphs} --model run --split test --out t.npz --json"))
    assert alone["protocol"]["vectors"] == 18 and "split" not in np.load("t.npz")
    for split, message in (
        ("train,train", "the split is 'train,train'; wanted one, all, or several different ones"),
        ("train,", "the split is 'train,'; wanted one, all"),
        ("train,val", "unknown split 'val' of glyphs"),
    ):
        refused = run(f"embed {glyphs} --model run --out w.npz --split {split}")
        assert refused.exit_code == 2 and message in refused.stderr
    for options, message in (
        ("--split labels", "--split is labels and cannot be used as a column or a file: entry 0 of the split is"),
        ("--split nothing", "--split is nothing and cannot be used as a column or a file: nothing is neither"),
        ("--split split --gallery v.npz", "--gallery is v.npz and --split is split; wanted one of them"),
    ):
        refused = run(f"evaluate v.npz {options}")
        assert refused.exit_code == 2 and message in refused.stderr


def test_an_item_in_two_splits_is_not_joined(tmp_path):
    lines = ["path,label,split,is_query,is_gallery", "a.png,1,train,,", "b.png,2,test,1,1", "c.png,2,test,0,1"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    for name in "abc":
        Image.new("L", (9, 9)).save(tmp_path / f"{name}.png")
    assert data.splits(tmp_path / "t.csv") == ("train", "query", "gallery")
    refused = run(f"embed {tmp_path}/t.csv --model {tmp_path} --split query,gallery --out {tmp_path}/o.npz")
    assert refused.exit_code == 2 and "'b.png' is in both query and gallery" in refused.stderr
