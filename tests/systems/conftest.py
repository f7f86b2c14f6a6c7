import pytest

from entourage.systems.context_refiner import ContextRefiner

from .samples import clusters


@pytest.fixture(scope="module")
def untaught():
    return ContextRefiner().fit(clusters(seed=1)[0])
