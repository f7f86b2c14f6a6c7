"""What the page is told: arrays, items, lists."""

import csv
import io
from dataclasses import replace

import httpx
import numpy as np
import pytest
from tests.explorer.conftest import CLASSES, HOSTILE, PER_CLASS, names_of_classes, vectors_of

from entourage.explorer import overview
from entourage.explorer.app import Preparing
from entourage.explorer.desk import Desk
from entourage.explorer.methods import Methods, Settings
from entourage.explorer.scene import Scene
from entourage.neighbors import search
from entourage.refiner.universal import universal_network
from entourage.runs import refinement_files
from entourage.runs.refine import write_refinement
from entourage.runs.refinement_run import open_refinement
from entourage.values import Embeddings

COUNT = CLASSES * PER_CLASS


@pytest.fixture
def client(urls):
    with httpx.Client(base_url=urls["pictured"], timeout=60) as opened:
        yield opened


@pytest.fixture
def gallery(urls):
    with httpx.Client(base_url=urls["texts"], timeout=60) as opened:
        yield opened


def test_arrays_come_as_raw_numbers(client, desks):
    places = client.get("/api/places")
    assert places.headers["x-shape"] == f"4,{COUNT},2"
    found = np.frombuffer(places.content, "<f4").reshape(4, COUNT, 2)
    assert np.array_equal(found, desks["pictured"].scene.places) and np.abs(found).max() <= 1
    labels = np.frombuffer(client.get("/api/labels").content, "<i4")
    names = client.get("/api/scene").json()["labels"]
    assert [names[code] for code in labels[[0, -1]]] == ["class a", HOSTILE]
    gain = np.frombuffer(client.get("/api/columns/gain").content, "<f4").reshape(2, COUNT)
    assert gain[0] == pytest.approx(desks["pictured"].scene.run.gains, abs=1e-6)
    assert client.get("/api/columns/nothing").status_code == 404


def test_an_item_has_the_neighbours_of_an_exact_search_and_the_rank_of_each_on_the_other_side(client, desks):
    run = desks["pictured"].scene.run
    told = client.get("/api/items/5").json()
    for when, items, other in (("before", run.items, run.refined), ("after", run.refined, run.items)):
        assert told[when]["rows"] == search(items, k=12).rows[5].tolist()
        everybody = search(other, k=COUNT - 1).rows[5].tolist()
        assert told[when]["others"] == [everybody.index(row) + 1 for row in told[when]["rows"]]
        labels = run.items.labels
        assert told[when]["right"] == [int(labels[row] == labels[5]) for row in told[when]["rows"]]


def test_attention_and_relations_are_those_of_the_refiner(client, desks):
    run = desks["pictured"].scene.run
    told = client.get("/api/items/5").json()["attention"]
    kept = run.attention_of([5])
    assert [run.items.ids[row] for row in told["rows"]] == kept.neighbor_ids[0].tolist()
    assert told["weights"][0] == pytest.approx(kept.weights[0, 0].tolist(), abs=1e-3)
    lists = desks["pictured"].scene.weighted.graph.neighbors.rows
    for row, shared, theirs in zip(told["rows"], told["shared"], told["theirs"], strict=True):
        assert shared == len(set(lists[5]) & set(lists[row]))
        assert theirs == (lists[row].tolist().index(5) + 1 if 5 in lists[row] else 0)


def test_points_of_a_gallery_follow_the_items_and_search_among_themselves(gallery, desks):
    scene = desks["texts"].scene
    assert gallery.get("/api/scene").json()["points"] == COUNT + 12 and scene.pool_start == 12
    of_query, of_gallery = (gallery.get(f"/api/items/{row}").json() for row in (3, 20))
    assert min(of_query["after"]["rows"]) >= 12 and 20 not in of_gallery["after"]["rows"]
    expected = search(scene.run.refined, scene.run.context_refined, 12).rows[3] + 12
    assert of_query["after"]["rows"] == expected.tolist()
    assert of_query["attention"]["rows"] and of_query["names"]["3"]["text"] == "query 3"


def test_the_methods_begin_where_the_run_was_kept_and_go_elsewhere(client, desks):
    methods = desks["pictured"].methods.offered
    kept = client.get("/api/items/5").json()
    own = desks["pictured"].methods.own
    usual = {"method": own} | {name: methods[own][name] for name in ("k", "steps", "blend")}
    same = client.get("/api/items/5", params=usual).json()
    assert same["after"]["rows"] == kept["after"]["rows"] and same["attention"] == kept["attention"]
    fewer = client.get("/api/items/5", params=usual | {"k": 4}).json()["attention"]
    assert len(fewer["rows"]) == 4 and sum(fewer["weights"][0]) == pytest.approx(1, abs=1e-3)
    raw = client.get("/api/items/5", params={"method": "raw"}).json()
    assert raw["after"]["rows"] == kept["before"]["rows"] and raw["attention"] is None  # it looks at nobody
    others = [
        client.get("/api/items/5", params={"method": name, "k": 4, "steps": 1, "blend": 0.0}).json()["after"]
        for name in ("alpha-qe", "universal")
    ]
    assert others[0]["similarities"] != others[1]["similarities"] != kept["after"]["similarities"]


def test_what_was_not_fitted_is_not_called_so(desks, pictured):
    assert list(desks["pictured"].methods.offered) == ["raw", "alpha-qe", "universal"]
    assert desks["pictured"].summary["own"] == "universal"
    scene = Scene(open_refinement(pictured))
    scene.__dict__["network"] = replace(universal_network(), sharpness=2.0)  # as one that learned
    methods = Methods(scene)
    assert methods.own == "fitted" and list(methods.offered) == ["raw", "alpha-qe", "universal", "fitted"]
    moved = [methods.refined(methods.kept._replace(method=name, k=5)) for name in ("universal", "fitted")]
    assert not np.allclose(*(each.pool.items.vectors for each in moved))


def test_a_query_of_a_gallery_is_refined_by_every_method(gallery, desks):
    for method in ("alpha-qe", "universal"):
        told = gallery.get("/api/items/3", params={"method": method, "k": 5, "steps": 2, "blend": 0.3})
        assert told.status_code == 200 and len(told.json()["after"]["rows"]) == 12


def test_alpha_query_expansion_is_that_of_the_comparison(desks):
    from entourage.baselines import QueryExpansion

    scene = desks["pictured"].scene
    refined = desks["pictured"].methods.refined(Settings("alpha-qe", 5, 2, 0.25))
    expected = QueryExpansion(k=5, alpha=3.0, steps=2, blend=0.25).fit(scene.run.items).transform(scene.run.items)
    assert np.allclose(refined.pool.items.vectors, np.asarray(expected), atol=1e-5)


@pytest.mark.parametrize(
    "asked", ["method=nothing", "method=raw&k=0", "method=raw&steps=99", "method=raw&blend=7", "method=raw&blend=nan"]
)
def test_settings_that_are_not_offered_are_refused_in_a_sentence(client, asked):
    refused = client.get(f"/api/items/5?{asked}")
    assert refused.status_code == 422 and "wanted" in refused.json()["detail"]


@pytest.mark.parametrize("path", ["/api/items/-1", f"/api/items/{COUNT}", "/api/pictures/999999999999"])
def test_items_that_are_not_there_are_a_404(client, path):
    assert client.get(path).status_code == 404


def test_search_finds_ids_labels_and_texts(client, gallery):
    found = client.get("/api/search", params={"q": "CLASS B"}).json()
    assert len(found["labels"]) == 1 and found["rows"] == []
    by_id = client.get("/api/search", params={"q": "class 1/03"}).json()
    assert by_id["rows"] == [PER_CLASS + 3]
    assert gallery.get("/api/search", params={"q": "text 17 "}).json()["rows"] == [12 + 17]
    assert gallery.get("/api/search", params={"q": "  "}).json()["rows"] == []


def test_pictures_come_small_and_texts_have_none(client, gallery):
    assert client.get("/api/pictures/3").headers["content-type"] == "image/jpeg"
    assert gallery.get("/api/pictures/3").status_code == 404


def test_wrong_labels_that_were_planted_are_suspected_and_exported(client, desks):
    told = client.get("/api/suspects").json()
    names = client.get("/api/scene").json()["labels"]
    planted = {1: "class a", 30: "class c"}
    found = {each["row"]: names[each["suggested"]] for each in told["suspects"]}
    assert {row: found.get(row) for row in planted} == planted
    lines = list(csv.DictReader(io.StringIO(client.get("/api/suspects.csv").text)))
    assert {line["id"] for line in lines} >= {"class 0/01.png", "class 2/06.png"}


def test_near_copies_across_labels_are_found(refiner, tmp_path):
    from tests.explorer.conftest import names_of_classes, vectors_of

    from entourage.explorer.overview import copies_across_labels
    from entourage.explorer.scene import Scene
    from entourage.runs.refine import write_refinement
    from entourage.values import Embeddings

    vectors = vectors_of()
    vectors[70] = vectors[3]
    run = write_refinement(tmp_path / "run", refiner, Embeddings.from_vectors(vectors, labels=names_of_classes()))
    assert copies_across_labels(Scene(run)) == [(3, 70)]


def test_the_set_has_scores_with_intervals_and_classes_by_their_gain(client, desks):
    told = client.get("/api/overview").json()
    scores = {each["name"]: each for each in told["scores"]}
    assert scores["map@r"]["after"] == desks["pictured"].scene.run.document["metrics"]["map@r"]
    assert scores["map@r"]["interval"].keys() == {"low", "high"}
    assert sum(told["tally"].values()) == COUNT
    changes = [each["after"] - each["before"] for each in told["classes"]]
    assert changes == sorted(changes, reverse=True)
    assert client.get("/api/doctor").json()["verdict"].startswith("refinement")


def test_without_labels_there_is_nothing_to_score_or_suspect(gallery):
    assert gallery.get("/api/labels").status_code == 404
    assert gallery.get("/api/overview").json()["scores"] == []
    assert gallery.get("/api/suspects").json()["suspects"] == []
    assert set(gallery.get("/api/scene").json()["columns"]) == {"trust", "hubness"}


def test_a_selection_is_exported_by_id_and_no_cell_is_a_formula(client):
    body = np.array([0, COUNT - 1], "<i4").tobytes()
    lines = client.post("/api/ids.csv", content=body).text.splitlines()
    assert lines[0] == "id,label" and lines[1] == "class 0/00.png,class a" and len(lines) == 3
    assert client.post("/api/ids.csv", content=np.array([COUNT], "<i4").tobytes()).status_code == 422
    assert client.post("/api/ids.csv", content=b"abc").status_code == 400
    from entourage.explorer.app import _table

    assert _table(["id"], [["=1+1"], ["-2+3"], ["-2.5"]], "x.csv").body == b"id\n'=1+1\n'-2+3\n-2.5\n"
    assert _table(["id"], [["a\r=1+1"], ["\n=1"]], "x.csv").body == b'id\na =1+1\n"\'\n=1"\n'


def test_pictures_that_a_browser_keeps_are_those_of_this_run(desks):
    assert desks["pictured"].summary["stamp"] != desks["texts"].summary["stamp"]


def test_until_the_scene_is_there_the_page_is_told_how_far_it_is_and_what_went_wrong():
    from fastapi.testclient import TestClient

    from entourage.errors import InputError
    from entourage.explorer.app import make_app

    preparing = Preparing()
    waiting = TestClient(make_app(preparing), base_url="http://127.0.0.1")
    preparing("laying out the map", 2, 6)
    told = waiting.get("/api/progress").json()
    assert told == {"stage": "laying out the map", "done": 2, "total": 6, "left": None, "error": None, "ready": False}
    preparing("laying out the map", 3, 6)
    preparing._clock.started -= 10  # one part took ten seconds: three are to come
    assert waiting.get("/api/progress").json()["left"] in ("29 s", "30 s")
    assert waiting.get("/api/scene").status_code == 503

    def fail():
        raise InputError("the vectors are odd")

    preparing.start(fail).join()
    assert waiting.get("/api/progress").json()["error"] == "the vectors are odd"
    assert waiting.get("/api/scene").json()["detail"] == "the vectors are odd"


def test_too_many_items_for_the_doctor_are_said_to_be_so(desks, monkeypatch):
    monkeypatch.setattr(overview, "MOST_EXAMINED", 10)
    told = overview.doctor_of(desks["pictured"].scene)
    assert told["findings"] == [] and "72 items" in told["verdict"] and "entourage doctor" in told["verdict"]


def test_what_would_take_hours_to_rank_is_shown_without_scores(refiner, tmp_path, monkeypatch):
    monkeypatch.setattr(refinement_files, "MOST_RANKED", 10)
    items = Embeddings.from_vectors(vectors_of(), labels=names_of_classes())
    desk = Desk(Scene(write_refinement(tmp_path / "run", refiner, items))).prepare()
    assert set(desk.summary["columns"]) == {"trust", "hubness", "purity"} and desk.overview["scores"] == []
    assert "to rank 72 items for each of 72 queries" in desk.overview["warnings"][0]
    assert desk.suspects["all"] == len(desk.suspect_lines)
