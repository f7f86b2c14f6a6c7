import pytest
from tests.refiner.samples import clusters

from entourage.refiner.estimator import ContextRefiner


@pytest.fixture(scope="module")
def untaught():
    return ContextRefiner().fit(clusters(seed=1)[0])
