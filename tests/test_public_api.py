"""What `import entourage` offers, and that every example in a docstring runs."""

import doctest
import importlib
import inspect
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


def test_no_public_name_is_that_of_a_module_which_would_take_its_place_once_imported():
    modules = {found.name for found in pkgutil.iter_modules(entourage.__path__)}
    assert modules & set(entourage.__all__) == set()
    for name, home in entourage._HOMES.items():  # nor inside the package where it lives
        assert f"entourage.{home}.{name}" not in MODULES


@pytest.mark.parametrize(
    "first",
    [
        "from entourage import compare, doctor, search",
        "import entourage.comparison.measuring, entourage.comparison.diagnosis, entourage.neighbors",
        "import entourage.comparison, entourage.cli.compare, entourage.cli.doctor",
        "import entourage.comparison.diagnosis as diagnosis; assert diagnosis.__name__.endswith('diagnosis')",
    ],
)
def test_public_functions_are_functions_whatever_was_imported_before(first):
    code = f"{first}\nfrom entourage import *\nfrom entourage import compare, doctor, search\nimport entourage"
    kinds = "{type(f).__name__ for f in (compare, doctor, search, evaluate, entourage.compare, entourage.doctor)}"
    run = subprocess.run([sys.executable, "-c", f"{code}\nprint({kinds})"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "{'function'}"


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Refiner'"):
        _ = entourage.Refiner
    assert dir(entourage) == entourage.__all__


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, entourage; print([m for m in ('torch', 'sklearn', 'numpy', 'matplotlib') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_declares_public_is_there_and_once(name):  # its order is checked by ruff
    module = importlib.import_module(name)
    declared = getattr(module, "__all__", [])
    assert len(declared) == len(set(declared))
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


def public_objects():
    for room in ("entourage", "entourage.refiner", "entourage.neighbors", "entourage.evaluation"):
        module = importlib.import_module(room)
        for name in module.__all__:
            if name != "__version__":
                yield pytest.param(getattr(module, name), id=f"{room}.{name}")


@pytest.mark.parametrize("value", list(public_objects()))
def test_public_docstrings_have_a_first_sentence_and_the_sections_they_need(value):
    text = inspect.getdoc(value) or ""
    assert text.partition("\n")[0].endswith(".")
    if not (inspect.isclass(value) and issubclass(value, BaseException)):
        assert_sections(value, text)
    if inspect.isclass(value):
        methods = [*inspect.getmembers(value, inspect.isfunction), *inspect.getmembers(value, inspect.ismethod)]
        for name, method in methods:
            if not name.startswith("_") and method.__module__.startswith("entourage."):
                assert_sections(method, inspect.getdoc(method) or "")


def assert_sections(value, text):
    signature = inspect.signature(value)
    if [name for name in signature.parameters if name not in ("self", "cls")]:
        assert "Parameters\n----------" in text, value
    if not inspect.isclass(value) and signature.return_annotation not in (None, "None"):
        assert "Returns\n-------" in text or "Yields\n------" in text, value
