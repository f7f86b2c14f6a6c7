"""A small gallery, and a service of it."""

import httpx
import numpy as np
import pytest
from tests.serve.running import Running

from entourage.refiner.gallery import Gallery
from entourage.serve import make_app

DIM = 8


@pytest.fixture(scope="session")
def vectors() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(10, DIM))[rng.integers(10, size=400)] + 0.5 * rng.normal(size=(400, DIM))).astype("f4")


@pytest.fixture
def gallery(tmp_path, vectors):
    with Gallery(tmp_path / "gallery", encoder="small") as opened:
        opened.add(vectors[:200], range(200))
        yield opened


@pytest.fixture
def start():
    """Start an application of a gallery; it is stopped at the end."""
    running = []

    def start(gallery, **options):
        running.append(Running(make_app(gallery, **options)))
        return running[-1].url

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def client(gallery, start):
    with httpx.Client(base_url=start(gallery), timeout=60) as opened:
        yield opened
