"""What `import entourage` offers, and that every example in a docstring runs."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest
import torch

import entourage

MODULES = ["entourage", *(found.name for found in pkgutil.walk_packages(entourage.__path__, "entourage."))]


def test_public_names_are_sorted_and_unique():
    assert entourage.__all__ == sorted(set(entourage.__all__))


def test_every_public_name_resolves_and_comes_from_its_home():
    for name in entourage.__all__:
        value = getattr(entourage, name)
        assert name == "__version__" or value.__module__.startswith("entourage.")
        assert name == "__version__" or value.__name__ == name


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Refiner'"):
        _ = entourage.Refiner
    assert dir(entourage) == entourage.__all__


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, entourage; print([m for m in ('torch', 'sklearn', 'numpy', 'matplotlib') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_declares_public_is_there_and_sorted(name):
    module = importlib.import_module(name)
    declared = getattr(module, "__all__", [])
    assert list(declared) == sorted(set(declared))
    assert [missing for missing in declared if not hasattr(module, missing)] == []


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_run(name):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small examples: faster, and less disturbed by other work
    try:
        assert doctest.testmod(importlib.import_module(name)).failed == 0
    finally:
        torch.set_num_threads(threads)


def test_the_examples_are_found_at_all():
    finder = doctest.DocTestFinder()
    examples = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert {"entourage.values.embeddings.Embeddings", "entourage.neighbors.search"} <= {test.name for test in examples}
