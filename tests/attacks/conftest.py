import pytest
from tests.attacks import victims


@pytest.fixture(scope="module")
def models(tmp_path_factory, one_thread, short_rehearsals):
    """A folder of vectors and a model of each recipe."""
    folder = tmp_path_factory.mktemp("models")
    victims.write_vectors(folder)
    victims.write_models(folder)
    return folder


@pytest.fixture(scope="module")
def refinements(models):
    """Refinement runs, in the same folder."""
    victims.write_refinements(models)
    return models


@pytest.fixture(scope="module")
def work(tmp_path_factory, one_thread):
    """A folder of vectors, an encoder and unfinished work of each kind."""
    folder = tmp_path_factory.mktemp("work")
    victims.write_vectors(folder)
    victims.write_work(folder)
    return folder


@pytest.fixture(scope="module")
def trainings(tmp_path_factory, one_thread):
    """A folder of vectors and a training run of each system."""
    folder = tmp_path_factory.mktemp("trainings")
    victims.write_vectors(folder)
    victims.write_trainings(folder)
    return folder
