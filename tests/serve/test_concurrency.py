"""Many at once: nobody meets an error, nothing is lost, and searches do not wait for changes."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from tests.refiner.gallery.samples import assert_equals_a_rebuild

from entourage.refiner.gallery.view import View

CLIENTS, ROUNDS = 50, 4


def test_fifty_clients_search_add_and_remove_without_an_error(gallery, start, vectors):
    url = start(gallery)

    def one(number: int) -> list[int]:
        rng = np.random.default_rng(number)
        with httpx.Client(base_url=url, timeout=120) as client:
            statuses = []
            for _ in range(ROUNDS):
                query = vectors[rng.integers(400)].tolist()
                statuses.append(client.post("/search", json={"vector": query}).status_code)
            added = client.post("/items", json={"vectors": [vectors[200 + number].tolist()], "ids": [1000 + number]})
            removed = client.delete(f"/items/{number}")
            return [*statuses, added.status_code, removed.status_code]

    with ThreadPoolExecutor(CLIENTS) as pool:
        statuses = [status for answers in pool.map(one, range(CLIENTS)) for status in answers]
    assert statuses == [200] * len(statuses) and len(statuses) == CLIENTS * (ROUNDS + 2)
    assert gallery.ids.tolist() == [*range(CLIENTS, 200), *range(1000, 1000 + CLIENTS)]
    assert 1 < gallery.version <= 1 + 2 * CLIENTS
    assert_equals_a_rebuild(gallery)


def test_searches_do_not_wait_for_a_change(client, vectors, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    at_once = View.after

    def slowly(*arguments):
        begun.set()
        assert go_on.wait(60)
        return at_once(*arguments)

    monkeypatch.setattr(View, "after", slowly)
    with ThreadPoolExecutor(1) as pool:
        change = pool.submit(client.post, "/items", json={"vectors": vectors[300:301].tolist(), "ids": [300]})
        assert begun.wait(60)
        started = time.perf_counter()
        found = [client.post("/search", json={"vector": vectors[300].tolist()}).json() for _ in range(5)]
        assert time.perf_counter() - started < 30 and not change.done()
        assert {each["version"] for each in found} == {1}
        go_on.set()
        assert change.result().json()["version"] == 2
    assert client.post("/search", json={"vector": vectors[300].tolist()}).json()["ids"][0][0] == 300


def test_changes_that_would_wait_too_long_are_sent_back(gallery, start, vectors, monkeypatch):
    from entourage.serve import Limits

    begun, go_on = threading.Event(), threading.Event()
    at_once = View.after
    monkeypatch.setattr(View, "after", lambda *given: (begun.set(), go_on.wait(60), at_once(*given))[2])
    with httpx.Client(base_url=start(gallery, limits=Limits(waiting=1)), timeout=60) as client:
        with ThreadPoolExecutor(1) as pool:
            change = pool.submit(client.delete, "/items/3")
            assert begun.wait(60)
            assert client.delete("/items/4").status_code == 429
            go_on.set()
            assert change.result().status_code == 200
        assert client.delete("/items/4").status_code == 200


def wait_until_waiting(client, count: int) -> None:
    """Until so many changes wait for the writer."""
    for _ in range(600):
        if f"entourage_changes_waiting {count}" in client.get("/metrics").text:
            return
        time.sleep(0.05)
    pytest.fail(f"there were never {count} changes waiting")


def test_changes_that_wait_are_made_together_and_answered_each_for_itself(gallery, start, vectors, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    at_once = View.after
    monkeypatch.setattr(View, "after", lambda *given: (begun.set(), go_on.wait(60), at_once(*given))[2])
    wanted = {
        "new": ("POST", "/items", {"vectors": vectors[300:302].tolist(), "ids": [300, 301]}),
        "known": ("POST", "/items", {"vectors": vectors[302:303].tolist(), "ids": [7]}),
        "gone": ("DELETE", "/items/8", None),
        "nobody": ("DELETE", "/items/5000", None),
        "twice": ("POST", "/items", {"vectors": vectors[304:306].tolist(), "ids": [400, 400]}),
        "of another size": ("POST", "/items", {"vectors": [[1.0, 2.0]], "ids": [401]}),
    }
    with httpx.Client(base_url=start(gallery), timeout=60) as client, ThreadPoolExecutor(8) as pool:
        first = pool.submit(client.delete, "/items/3")
        assert begun.wait(60)
        answers = {name: pool.submit(client.request, *each[:2], json=each[2]) for name, each in wanted.items()}
        again = pool.submit(client.delete, "/items/3")
        wait_until_waiting(client, 6)  # all but the last two, which are refused before they wait
        go_on.set()
        answers = {name: each.result() for name, each in answers.items()}
        assert first.result().json()["version"] == 2 and again.result().status_code == 404
    statuses = {name: each.status_code for name, each in answers.items()}
    assert statuses == {"new": 200, "known": 200, "gone": 200, "nobody": 404, "twice": 422, "of another size": 422}
    told = {name: answers[name].json() for name in ("new", "known", "gone")}
    counts = {name: (each["added"], each["updated"], each["removed"], each["ids"]) for name, each in told.items()}
    assert counts == {"new": (2, 0, 0, [300, 301]), "known": (0, 1, 0, [7]), "gone": (0, 0, 1, [8])}
    assert gallery.ids.tolist() == sorted({*range(200), 300, 301} - {3, 8})
    assert_equals_a_rebuild(gallery)


def test_many_that_wait_are_one_version_and_numbers_follow_each_other(gallery, start, vectors, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    at_once = View.after
    monkeypatch.setattr(View, "after", lambda *given: (begun.set(), go_on.wait(60), at_once(*given))[2])
    with httpx.Client(base_url=start(gallery), timeout=60) as client, ThreadPoolExecutor(8) as pool:
        first = pool.submit(client.delete, "/items/3")
        assert begun.wait(60)
        sent = {"vectors": vectors[300:302].tolist()}
        answers = [pool.submit(client.post, "/items", json=sent) for _ in range(5)]
        wait_until_waiting(client, 6)
        go_on.set()
        told = [each.result().json() for each in answers]
        assert first.result().json()["version"] == 2
    assert {each["version"] for each in told} == {3} and gallery.version == 3
    assert sorted(number for each in told for number in each["ids"]) == list(range(200, 210))
    assert all(each["ids"][1] == each["ids"][0] + 1 and each["added"] == 2 for each in told)
    assert_equals_a_rebuild(gallery)
