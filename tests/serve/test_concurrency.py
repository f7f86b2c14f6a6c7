"""Many at once: nobody meets an error, nothing is lost, and searches do not wait for changes."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
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
    assert gallery.version == 1 + 2 * CLIENTS
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
