"""A service that is killed while it writes has lost nothing that it acknowledged, and holds nothing twice."""

import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pytest
from tests.refiner.gallery.samples import assert_equals_a_rebuild

from entourage.refiner.gallery import Gallery

WRITERS = 3


class Command:
    """`entourage serve` as a process."""

    def __init__(self, folder) -> None:
        arguments = ["-m", "entourage", "serve", "--gallery", str(folder), "--port", "0"]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        environment.pop("ENTOURAGE_TOKEN", None)
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        announced = self.process.stdout.readline()
        assert " at http://" in announced, self.process.stderr.read()
        self.url = announced.split(" at ")[1].split()[0]

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class Writer(threading.Thread):
    """Adds and removes items of its own one by one, and keeps what was acknowledged and what was under way."""

    def __init__(self, url: str, number: int, begin: int, vectors: np.ndarray) -> None:
        super().__init__()
        self.url, self.number, self.next, self.vectors = url, number, begin, vectors
        self.there, self.unsure, self.began = set(), set(), threading.Event()

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as client:
            try:
                while True:
                    self._one(client)
            except httpx.HTTPError:
                return

    def _one(self, client: httpx.Client) -> None:
        each = self.number * 1_000_000 + self.next
        self.next += 1
        self.unsure = {each}
        vector = self.vectors[each % len(self.vectors)].tolist()
        assert client.post("/items", json={"vectors": [vector], "ids": [each]}).status_code == 200
        self.there.add(each)
        self.began.set()
        if self.next % 3 == 0 and len(self.there) > 1:
            gone = min(self.there)
            self.unsure = {gone}
            assert client.delete(f"/items/{gone}").status_code == 200
            self.there.remove(gone)
        self.unsure = set()


def killed_again_and_again(folder, vectors, kills: int) -> int:
    """Kill the service at random moments; how many items were acknowledged in all."""
    rng = np.random.default_rng(kills)
    there, next_number = set(), 0
    for _ in range(kills):
        service = Command(folder)
        writers = [Writer(service.url, number, next_number, vectors) for number in range(WRITERS)]
        for writer in writers:
            writer.there = {each for each in there if each // 1_000_000 == writer.number}
            writer.start()
        assert all(writer.began.wait(120) for writer in writers)
        time.sleep(rng.uniform(0, 0.7))
        service.end(signal.SIGKILL)
        for writer in writers:
            writer.join(60)
        there, unsure = (set().union(*(getattr(each, name) for each in writers)) for name in ("there", "unsure"))
        next_number = max(writer.next for writer in writers)
        with Gallery(folder) as gallery:
            held = gallery.ids.tolist()
            assert len(held) == len(set(held))
            assert there - unsure <= set(held) <= there | unsure
            assert_equals_a_rebuild(gallery)
            there = set(held)
    return next_number


def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path, vectors):
    assert killed_again_and_again(tmp_path / "gallery", vectors, kills=2) >= 2


@pytest.mark.attack
def test_nothing_acknowledged_is_lost_by_fifty_kills(tmp_path, vectors):
    assert killed_again_and_again(tmp_path / "gallery", vectors, kills=50) > 50


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_is_told_to_end_ends(tmp_path, how):
    service = Command(tmp_path / "gallery")
    assert httpx.get(f"{service.url}/health").json()["items"] == 0
    service.end(how)
    assert not (tmp_path / ".gallery.entourage").exists()  # it has let go
