"""Who may ask, and what a browser may do with the answers."""

from http.client import HTTPConnection

import httpx
import pytest
from tests.explorer.conftest import Running

from entourage.explorer.access import MOST_BYTES
from entourage.explorer.app import Preparing, make_app
from entourage.runtime.addresses import is_loopback


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0", ""])
def test_a_request_meant_for_another_host_is_refused(urls, host):
    """A page elsewhere can have its own name lead to this machine."""
    refused = httpx.get(f"{urls['pictured']}/api/scene", headers={"Host": host})
    assert refused.status_code in (400, 403) and "glyph" not in refused.text and "labels" not in refused.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]:8318"])
def test_this_machine_by_its_own_names_is_answered(urls, host):
    assert httpx.get(f"{urls['pictured']}/api/scene", headers={"Host": host}).status_code == 200


def test_a_page_of_another_origin_cannot_make_the_browser_ask(urls):
    refused = httpx.post(f"{urls['pictured']}/api/queries", content=b"x", headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403 and "evil.example" in refused.json()["detail"]


def test_the_policy_allows_no_inline_script_no_eval_and_no_other_place(urls):
    for path in ("/", "/page/main.js", "/api/scene", "/nothing"):
        policy = httpx.get(urls["pictured"] + path).headers["content-security-policy"]
        assert "unsafe" not in policy and "http" not in policy and "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
    page = httpx.get(urls["pictured"]).text
    assert "<script>" not in page and " style=" not in page and " onclick" not in page


@pytest.mark.parametrize(
    "name", ["../app.py", "..%2fapp.py", "%2e%2e/desk.py", "/etc/passwd", "%2fetc%2fpasswd", "app.py"]
)
def test_no_path_of_a_request_reaches_the_file_system(urls, name):
    with httpx.Client(base_url=urls["pictured"]) as client:
        request = client.build_request("GET", "/")
        request.url = request.url.copy_with(raw_path=f"/page/{name}".encode())
        assert client.send(request).status_code == 404


def test_what_is_too_large_is_refused_before_it_is_read(urls):
    connection = HTTPConnection(urls["pictured"].removeprefix("http://"))
    connection.putrequest("POST", "/api/queries")
    connection.putheader("Content-Length", str(MOST_BYTES + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()

    def endless():
        yield b"x"

    assert httpx.post(f"{urls['pictured']}/api/queries", content=endless()).status_code == 411


def test_open_to_a_network_it_wants_the_token_of_the_printed_address(desks):
    running = Running(make_app(Preparing(desks["pictured"]), token="secret"))
    try:
        for path in ("/", "/page/main.js", "/api/scene", "/?token=other"):
            assert httpx.get(running.url + path).status_code == 401
        with httpx.Client(base_url=running.url) as client:
            first = client.get("/?token=secret")
            assert first.status_code == 200 and "HttpOnly; SameSite=Strict" in first.headers["set-cookie"]
            assert client.get("/api/scene").status_code == 200  # by the cookie
        bearer = {"Authorization": "Bearer secret", "Host": "station.example"}
        assert httpx.get(f"{running.url}/api/scene", headers=bearer).status_code == 200
    finally:
        running.stop()


def test_loopback_addresses_are_known():
    assert [is_loopback(each) for each in ("127.0.0.2", "::1", "10.0.0.1", "evil", "")] == [
        True,
        True,
        False,
        False,
        False,
    ]
