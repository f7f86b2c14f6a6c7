"""Who may ask: a token where others can reach the service, and this machine's own names where none is set."""

import httpx
import pytest
from typer.testing import CliRunner

from entourage.cli import app
from entourage.runtime.addresses import is_loopback


def test_with_a_token_only_those_who_know_it_are_answered(gallery, start):
    url = start(gallery, token="secret")
    assert httpx.get(f"{url}/health").status_code == 200  # says nothing that others must not know
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}, {"authorization": "Bearer"}):
        for path in ("/metrics", "/changes", "/openapi.json", "/no such page"):
            refused = httpx.get(url + path, headers=headers)
            assert refused.status_code == 401 and "ENTOURAGE_TOKEN" in refused.json()["detail"]
        assert httpx.delete(f"{url}/items/3", headers=headers).status_code == 401
    known = {"authorization": "Bearer secret", "host": "search.example.com"}
    assert httpx.get(f"{url}/metrics", headers=known).status_code == 200
    assert httpx.delete(f"{url}/items/3", headers=known).status_code == 200


@pytest.mark.parametrize("host", ["example.com", "example.com:8317", "localhost.example.com", "10.0.0.1", ""])
def test_without_one_a_page_elsewhere_cannot_make_a_browser_here_ask(client, gallery, host):
    refused = client.delete("/items/3", headers={"host": host})
    assert refused.status_code == 403 and 3 in gallery


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:99", "[::1]:8317"])
def test_this_machine_may_ask_by_any_of_its_names(client, host):
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", ""])
def test_such_addresses_are_open_to_others(host):
    assert not is_loopback(host)


@pytest.mark.parametrize("path", ["..%2F..%2Fetc%2Fpasswd", "%00", "C:%5Cx", "a/b", "%2e%2e/config.json"])
def test_a_path_in_an_id_is_an_id(client, gallery, path):
    assert client.delete(f"/items/{path}").status_code in (404, 422)
    assert gallery.version == 1


def test_an_open_address_without_a_token_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.delenv("ENTOURAGE_TOKEN", raising=False)
    outcome = CliRunner().invoke(app, ["serve", "--gallery", str(tmp_path / "g"), "--host", "0.0.0.0", "--port", "0"])
    assert outcome.exit_code == 2 and "ENTOURAGE_TOKEN is not set" in outcome.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_a_sentence(tmp_path, client):
    port = client.base_url.port
    outcome = CliRunner().invoke(app, ["serve", "--gallery", str(tmp_path / "g"), "--port", str(port)])
    assert outcome.exit_code == 2 and f"port {port} of 127.0.0.1 cannot be bound" in outcome.stderr


def test_a_gallery_that_is_open_elsewhere_is_a_sentence(tmp_path, gallery):
    outcome = CliRunner().invoke(app, ["serve", "--gallery", str(tmp_path / "gallery"), "--port", "0"])
    assert outcome.exit_code == 2 and "by another process" in outcome.stderr
