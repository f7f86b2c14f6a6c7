"""Each endpoint answers what the gallery itself would, in JSON and in bytes, and says in a sentence what is wrong."""

import asyncio
import io
import json
import re
import socket
import time
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from tests.serve.running import Running

from entourage import Gallery, rerank
from entourage.serve import Limits, make_app
from entourage.serve.bodies import Queries
from entourage.serve.service import Service

BYTES, NPY = "application/octet-stream", "application/x-npy"


@pytest.fixture(scope="module")
def limited(tmp_path_factory, vectors):
    """A service that takes little at a time."""
    limits = Limits(body=4096, batch=16, items=20, dimensions=32)
    with Gallery(tmp_path_factory.mktemp("limited") / "gallery", encoder="small") as gallery:
        gallery.add(vectors[:200], range(200))
        running = Running(make_app(gallery, limits=limits))
        with httpx.Client(base_url=running.url, timeout=60) as client:
            yield client
        running.stop()


def sent_as(kind: str, table: np.ndarray) -> dict:
    """The body and the headers of vectors."""
    if kind == "json":
        return {"json": {"vectors": table.tolist()}}
    if kind == BYTES:
        shape = ",".join(map(str, table.shape))
        return {"content": table.astype("<f4").tobytes(), "headers": {"content-type": BYTES, "x-shape": shape}}
    buffer = io.BytesIO()
    np.save(buffer, table)
    return {"content": buffer.getvalue(), "headers": {"content-type": NPY}}


@pytest.mark.parametrize("kind", ["json", BYTES, NPY])
def test_search_finds_what_the_gallery_finds(client, gallery, vectors, kind):
    found = client.post("/search", **sent_as(kind, vectors[200:205])).json()
    expected = gallery.search(vectors[200:205])
    assert found["ids"] == expected.ids.tolist() and found["version"] == 1
    np.testing.assert_allclose(found["similarities"], expected.similarities, atol=1e-6)


def test_one_vector_raw_and_refined(client, gallery, vectors):
    query = vectors[300]
    for refine in (True, False):
        found = client.post("/search", json={"vector": query.tolist(), "k": 7, "refine": refine}).json()
        expected = gallery.search(query[None], 7, refine=refine)
        assert found["ids"] == expected.ids.tolist()
        np.testing.assert_allclose(found["similarities"], expected.similarities, atol=1e-6)
    in_query = client.post("/search", params={"k": 7, "refine": "false"}, **sent_as(BYTES, query[None])).json()
    assert in_query == found


def test_confidence_comes_with_a_search_that_asks_for_it(client, gallery, vectors):
    found = client.post("/search", params={"confidence": "true"}, **sent_as(BYTES, vectors[200:205])).json()
    expected = gallery.search(vectors[200:205], confidence=True)
    np.testing.assert_allclose(found["confidence"], expected.confidence, atol=1e-6)
    assert "confidence" not in client.post("/search", **sent_as(BYTES, vectors[200:205])).json()


@pytest.mark.parametrize("kind", ["json", BYTES, NPY])
def test_refine_answers_in_the_kind_that_is_accepted(client, gallery, vectors, kind):
    accept = {} if kind == "json" else {"accept": kind}
    answer = client.post("/refine", json={"vectors": vectors[200:203].tolist()}, headers=accept)
    if kind == "json":
        refined = np.array(answer.json()["vectors"])
    elif kind == BYTES:
        assert answer.headers["x-shape"] == "3,8"
        refined = np.frombuffer(answer.content, "<f4").reshape(3, 8)
    else:
        refined = np.load(io.BytesIO(answer.content))
    np.testing.assert_allclose(refined, gallery.refine(vectors[200:203]), atol=1e-6)


def test_rerank_of_items_by_id_and_of_any_candidates(client, vectors):
    query, ids = vectors[300], [5, 9, 3, 77, 120, 130, 140]
    expected = rerank(query, vectors[ids], ids=ids)
    by_id = client.post("/rerank", json={"query": query.tolist(), "ids": ids}).json()
    assert by_id["ids"] == expected.ids.tolist() and by_id["rows"] == expected.rows.tolist()
    asked = {"query": query.tolist(), "candidates": vectors[ids].tolist(), "scores": [1.0] * 7}
    given = client.post("/rerank", json=asked).json()
    assert given["rows"] == expected.rows.tolist() and given["given_scores"] == [1.0] * 7


@pytest.mark.parametrize("kind", ["json", BYTES, NPY])
def test_items_come_and_go(client, gallery, vectors, kind):
    sent = sent_as(kind, vectors[198:203])
    ids = [198, 199, 200, 201, 202]
    if kind == "json":
        sent["json"]["ids"] = ids
    else:
        sent["headers"] |= {"x-ids": json.dumps(ids), "x-encoder": "small"}
    report = client.post("/items", **sent).json()
    assert (report["version"], report["added"], report["updated"], report["ids"]) == (2, 3, 2, ids)
    assert len(gallery) == 203
    removed = client.delete("/items/201").json()
    assert (removed["version"], removed["removed"], len(gallery)) == (3, 1, 202)
    assert client.delete("/items/201").status_code == 404
    numbered = client.post("/items", **sent_as("json", vectors[203:205])).json()
    assert numbered["ids"] == [203, 204]


def test_texts_with_odd_letters_are_ids(tmp_path, start, vectors):
    ids = ["a", "a/b", "ü 1", "../x", "7", "long " * 50]
    with Gallery(tmp_path / "texts") as gallery, httpx.Client(base_url=start(gallery), timeout=60) as client:
        assert client.post("/items", json={"vectors": vectors[:6].tolist(), "ids": ids}).status_code == 200
        assert client.delete("/items/a%00").status_code == 404
        for each in ids[1:]:
            assert client.delete(f"/items/{quote(each, safe='')}").json()["ids"] == [each]
        changes = client.get("/changes", params={"since": 1}).json()
        assert changes["removed"] == ids[1:] and gallery.ids.tolist() == ["a"]
        assert client.delete("/items/a").status_code == 200
        assert client.post("/items", json={"vectors": vectors[:1].tolist(), "ids": [5]}).status_code == 422
        assert client.get("/changes", params={"since": 2, "after": "a/b"}).status_code == 200


def test_changes_page_by_page_are_all_changes(client, gallery, vectors):
    client.post("/items", json={"vectors": vectors[200:230].tolist()})
    client.delete("/items/3")
    expected = gallery.changes_since(1)
    pages, since, after = [], 1, None
    while not pages or pages[-1]["more"]:
        params = {"since": since, "limit": 7} | ({} if after is None else {"after": after})
        pages.append(client.get("/changes", params=params).json())
        since, after = pages[-1]["version"], pages[-1]["after"]
        assert len(pages[-1]["ids"]) + len(pages[-1]["removed"]) <= 7
    assert len(pages) > 3 and since == gallery.version
    told = {each: vector for page in pages for each, vector in zip(page["ids"], page["vectors"], strict=True)}
    assert sorted(told) == sorted(expected.ids.tolist())
    np.testing.assert_allclose([told[each] for each in expected.ids.tolist()], expected.vectors, atol=1e-6)
    assert [each for page in pages for each in page["removed"]] == [3]


def test_health_and_metrics_say_what_is_served(client, vectors):
    client.post("/search", json={"vector": vectors[0].tolist()})
    client.post("/search", json={"vector": [1.0]})
    client.get("/no such page")
    health = client.get("/health").json()
    assert (health["items"], health["dim"], health["encoder"]) == (200, 8, "small")
    text = client.get("/metrics").text
    assert 'entourage_requests_total{endpoint="/search",status="200"} 1' in text
    assert 'entourage_requests_total{endpoint="/search",status="422"} 1' in text
    assert 'entourage_requests_total{endpoint="none",status="404"} 1' in text
    assert "entourage_gallery_items 200" in text
    assert all(re.fullmatch(r"#.*|[a-z_]+(\{[^}]*\})? [-+.\de]+", line) for line in text.splitlines())


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/search", {"vector": [1.0, 2.0]}, 422, "2 dimensions, but the gallery holds vectors of 8"),
        ("/search", {"vector": [0.0] * 8}, 422, "all zeros"),
        ("/search", {"vectors": []}, 422, "at least one"),
        ("/search", {"vectors": [[]]}, 422, "at least one"),
        ("/search", {"vectors": [[1.0], [1.0, 2.0]]}, 422, "1 to 2 dimensions"),
        ("/search", {"vector": [1.0] * 8, "k": 0}, 422, "k: "),
        ("/search", {"vector": [1.0] * 8, "k": 1001}, 422, "k: "),
        ("/search", {"vector": [1.0] * 8, "encoder": "large"}, 422, "the encoder 'large'"),
        ("/search", {"vector": [1.0] * 8, "depth": 3}, 422, "depth"),
        ("/search", {}, 422, "either vector or vectors"),
        ("/search", {"vectors": [[1.0] * 8] * 17}, 422, "17 vectors; wanted at most 16"),
        ("/search", {"vector": [1.0] * 33}, 422, "33 dimensions; wanted at most 32"),
        ("/items", {"vectors": [[1.0] * 8] * 21}, 422, "21 vectors; wanted at most 20"),
        ("/items", {"vectors": [[1.0] * 8], "ids": ["a"]}, 422, "the ids of this gallery are whole numbers"),
        ("/items", {"vectors": [[1.0] * 8] * 2, "ids": [1, "a"]}, 422, "of one kind"),
        ("/items", {"vectors": [[1.0] * 8] * 2, "ids": [1, 1]}, 422, "1"),
        ("/items", {"vectors": [[1.0] * 8], "ids": [1, 2]}, 422, "2 ids for 1 vectors"),
        ("/items", {"vectors": [[1.0] * 8], "ids": [2**70]}, 422, "ids"),
        ("/items", {"vectors": [[1.0] * 8], "ids": ["a\0"]}, 422, "NUL"),
        ("/items", {"vectors": [[1.0] * 8], "ids": [""]}, 422, "ids"),
        ("/items", {"vectors": [[1.0] * 8], "canaries": [[1.0] * 8]}, 422, "no canaries"),
        ("/rerank", {"query": [1.0] * 8, "ids": [999]}, 422, "no items of these ids: 999"),
        ("/rerank", {"query": [1.0] * 8, "candidates": [[1.0] * 7]}, 422, "7"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(limited, path, body, status, says):
    answer = limited.post(path, json=body)
    assert answer.status_code == status and says in answer.json()["detail"], answer.text
    assert limited.get("/health").json()["version"] == 1


@pytest.mark.parametrize(
    ("content", "headers", "status", "says"),
    [
        (b"{", {"content-type": "application/json"}, 422, "JSON"),
        (b'{"vector": [NaN]}', {"content-type": "application/json"}, 422, "NaN"),
        (b"x", {"content-type": "text/plain"}, 415, "text/plain"),
        (b"x", {}, 415, "no type"),
        (b"\0" * 32, {"content-type": BYTES}, 422, "X-Shape"),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "2,8"}, 422, "32 bytes; wanted 64"),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "-1,8"}, 422, "X-Shape"),
        (b"\xff" * 32, {"content-type": BYTES, "x-shape": "1,8"}, 422, "NaN"),
        (b"\x93NUMPY\x01\x00", {"content-type": NPY}, 422, "no file of numpy"),
        (b"PK", {"content-type": NPY}, 422, "no file of numpy"),
        (b"x" * 5000, {"content-type": NPY}, 413, "larger than 4,096 bytes"),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(limited, content, headers, status, says):
    answer = limited.post("/search", content=content, headers=headers)
    assert answer.status_code == status and says in answer.json()["detail"], answer.text


def test_a_body_without_a_length_is_counted_too(limited):
    answer = limited.post("/search", content=(b"x" * 1000 for _ in range(9)), headers={"content-type": NPY})
    assert answer.status_code == 413


def test_an_array_that_promises_more_than_it_holds_takes_no_memory(client):
    buffer = io.BytesIO()
    head = {"descr": "<f4", "fortran_order": False, "shape": (2**40, 8)}
    np.lib.format.write_array_header_1_0(buffer, head)
    answer = client.post("/search", content=buffer.getvalue() + b"\0" * 64, headers={"content-type": NPY})
    assert answer.status_code == 422 and "64 bytes" in answer.json()["detail"]


def numpy_file(shape: str, data: bytes, kind: str = "<f4") -> bytes:
    """A file of numpy whose head says what it likes."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


DEEP, LONG = "[" * 5000, "9" * 5000


@pytest.mark.parametrize(
    ("content", "headers", "params"),
    [
        (b"", {"content-type": BYTES, "x-shape": "0,99999999999999999999"}, {}),
        (b"", {"content-type": BYTES, "x-shape": "99999999999999999999,0"}, {}),
        (b"", {"content-type": BYTES, "x-shape": "999999999,0"}, {}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": f"1,{LONG}"}, {}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": f"{LONG}x1"}, {}),
        (numpy_file("(-2, -3)", b"\0" * 24), {"content-type": NPY}, {}),
        (numpy_file("(0, 99999999999999999999)", b""), {"content-type": NPY}, {}),
        (numpy_file("(0, 9223372036854775807)", b""), {"content-type": NPY}, {}),
        (numpy_file(f"(0x{'f' * 5000}, 1)", b""), {"content-type": NPY}, {}),
        (numpy_file(f"({LONG}, 1)", b""), {"content-type": NPY}, {}),
        (numpy_file(DEEP, b""), {"content-type": NPY}, {}),
        (numpy_file("(True, True)", b"\0" * 4), {"content-type": NPY}, {}),
        (numpy_file("()", b"\0" * 4), {"content-type": NPY}, {}),
        (numpy_file("(1, 8)", b"\xff" * 128, "<f16"), {"content-type": NPY}, {}),
        (numpy_file("(1, 8)", b"\0" * 64, "|V8"), {"content-type": NPY}, {}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8", "x-ids": DEEP}, {}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8", "x-ids": f"[{LONG}]"}, {}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8", "x-ids": '["\\ud800"]'}, {}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8"}, {"k": DEEP}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8"}, {"k": LONG}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8"}, {"refine": "NaN"}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8"}, {"canaries": DEEP}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8"}, {"canaries": "[[1, 2], [1]]"}),
        (b"\0" * 32, {"content-type": BYTES, "x-shape": "1,8"}, {"canaries": "[[]]"}),
        (DEEP.encode(), {"content-type": "application/json"}, {}),
        (b'{"vectors": %s' % DEEP.encode(), {"content-type": "application/json"}, {}),
        (b'{"vectors": [[%s]]}' % LONG.encode(), {"content-type": "application/json"}, {}),
        (b'{"vectors": [[1e999]]}', {"content-type": "application/json"}, {}),
        (b'{"vectors": [[1]], "canaries": [[Infinity]]}', {"content-type": "application/json"}, {}),
        (b'{"vectors": [[1]], "ids": [%s]}' % LONG.encode(), {"content-type": "application/json"}, {}),
        (b'{"vectors": [[1]], "ids": ["\\ud800"]}', {"content-type": "application/json"}, {}),
        (b'{"\\ud800": 1}', {"content-type": "application/json"}, {}),
        (b'{"query": [1, 0], "candidates": [[1, 0]], "scores": [1e999]}', {"content-type": "application/json"}, {}),
        (b'{"query": [1, 0], "candidates": [[1, 0]], "scores": [NaN]}', {"content-type": "application/json"}, {}),
        (b'{"query": [1e999, 0], "candidates": [[1, 0]]}', {"content-type": "application/json"}, {}),
        (b'{"query": [], "candidates": [[]]}', {"content-type": "application/json"}, {}),
        (b"\xff\xfe", {"content-type": "application/json"}, {}),
    ],
)
@pytest.mark.parametrize("path", ["/search", "/refine", "/rerank", "/items"])
def test_no_body_is_met_by_a_fault(empty, path, content, headers, params):
    answer = empty.post(path, content=content, headers=headers, params=params)
    assert answer.status_code in (415, 422) and "\n" not in answer.json()["detail"], answer.text
    assert empty.get("/health").json()["items"] == 0


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A service of a gallery without items."""
    with Gallery(tmp_path_factory.mktemp("empty") / "gallery") as gallery:
        running = Running(make_app(gallery))
        with httpx.Client(base_url=running.url, timeout=60) as client:
            yield client
        running.stop()


def test_a_gallery_without_items_answers(empty):
    for path, body in (
        ("/search", {"vector": [1.0, 2.0], "confidence": True}),
        ("/refine", {"vector": [1.0, 2.0]}),
        ("/rerank", {"query": [1.0]}),
        ("/rerank", {"query": [1.0], "ids": []}),
        ("/rerank", {"query": [1.0, 0.0], "candidates": [[1.0, 0.0]]}),
    ):
        answer = empty.post(path, json=body)
        assert answer.status_code == 200, answer.text
    assert empty.post("/rerank", json={"query": [1.0], "ids": [3]}).status_code == 422
    for params in ({}, {"after": "3"}, {"after": LONG[:500]}, {"since": 0, "after": "x"}):
        assert empty.get("/changes", params=params).status_code in (200, 422)
    assert empty.get("/changes", params={"since": LONG}).status_code == 422
    for each in ("3", "-3", "x", LONG[:500], "-" + LONG[:18]):
        assert empty.delete(f"/items/{each}").status_code == 404


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_items_or_copies_of_one_are_searched(tmp_path, start, vectors, count):
    with Gallery(tmp_path / "few") as gallery, httpx.Client(base_url=start(gallery), timeout=60) as client:
        client.post("/items", json={"vectors": vectors[:1].tolist() * count})
        for refine in (True, False):
            asked = {"vectors": vectors[:2].tolist(), "confidence": True, "refine": refine}
            assert client.post("/search", json=asked).status_code == 200
        assert client.post("/rerank", json={"query": vectors[0].tolist(), "ids": [0]}).status_code == 200


def test_ids_of_many_digits_can_be_removed(tmp_path, start, vectors):
    ids = [-(10**18) + 1, 10**18 - 1, 2**63 - 1]
    with Gallery(tmp_path / "large") as gallery, httpx.Client(base_url=start(gallery), timeout=60) as client:
        gallery.add(vectors[:3], ids)
        for each in ids:
            assert client.delete(f"/items/{each}").status_code == 200
        assert client.delete(f"/items/{2**64 - 1}").status_code == 404


def test_as_many_ids_as_items_are_allowed_fit_into_the_header(client, gallery, vectors):
    ids = list(range(1_000_000_000, 1_000_010_000))
    head = f"POST /items HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {BYTES}\r\n"
    head += f"content-length: 32\r\nx-shape: 1,8\r\nx-ids: {json.dumps(ids)}\r\n\r\n"
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=60) as sender:
        sender.sendall(head[:100_000].encode())
        time.sleep(0.3)  # so that the service sees a header that is not whole
        sender.sendall(head[100_000:].encode() + vectors[:1].tobytes())
        answer = sender.makefile("rb").read().decode()
    assert answer.startswith("HTTP/1.1 422 ") and "10,000 ids for 1 vectors" in answer


def test_refined_vectors_come_with_the_version_that_they_were_refined_in(gallery, vectors, monkeypatch):
    service, real = Service(gallery, Limits()), Service._vectors

    def slow(*given):
        gallery.remove(range(100))  # by another request, meanwhile
        return real(*given)

    monkeypatch.setattr(Service, "_vectors", slow)
    version, refined = service.refine(Queries(vector=vectors[300].tolist()))
    assert version == gallery.version == 2
    np.testing.assert_allclose(refined, gallery.refine(vectors[300:301]), atol=1e-6)


@pytest.mark.parametrize("length", ["9" * 30, "9" * 5000])
def test_a_length_beyond_all_numbers_is_too_large(gallery, length):
    answers = []

    async def send(message):
        answers.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"host", b"localhost"), (b"content-length", length.encode())]
    scope = {"type": "http", "method": "POST", "path": "/search", "headers": headers, "query_string": b""}
    asyncio.run(make_app(gallery)(scope, receive, send))
    assert answers[0]["status"] == 413
