"""Every value is shown in a line or a few, whatever its size."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import entourage
from entourage import Attention, ContextRefiner, Embeddings, Neighbors, Trajectory, compare, doctor, evaluate, search
from entourage.evaluation import Scores
from entourage.runs.refine import RefineResult
from entourage.runs.train import TrainResult
from entourage.systems.trained import TrainedEncoder
from entourage.training.history import History
from entourage.values import brief

LONGEST = 300
HEAVY_FIELD = re.compile(r"ndarray|NDArray|\w*Array\b|Tensor|Embeddings|Neighbors|History|Scores")


# What a user is handed: by the functions of the package, by trainings, and by opening what commands have written.
HANDED_OUT = (
    "comparison",
    "data.arrays",
    "data.files",
    "encoders.embedding",
    "evaluation.protocol",
    "refiner.network",
    "refiner.scorer",
    "runs",
    "systems.cross_image",
    "systems.divide_and_conquer",
    "systems.intra_batch",
    "systems.trained",
    "training.history",
    "values",
)


def value_types():
    """Every dataclass and named tuple that a user is handed and that holds arrays, or what holds them."""
    for found in pkgutil.walk_packages(entourage.__path__, "entourage."):
        if not found.name.removeprefix("entourage.").startswith(HANDED_OUT):
            continue
        for name, kind in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
            is_value = dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")
            holds = any(HEAVY_FIELD.search(str(note)) for note in inspect.get_annotations(kind).values())
            if kind.__module__ == found.name and is_value and holds and not name.startswith("_"):
                yield pytest.param(kind, id=f"{found.name}.{name}")


@pytest.mark.parametrize("kind", list(value_types()))
def test_a_type_that_holds_arrays_does_not_print_them(kind):
    """Neither Python's own listing of all fields, nor that of a tuple."""
    assert kind.__repr__ is brief or kind.__repr__.__code__.co_filename == inspect.getfile(kind)


def test_the_walk_finds_what_it_is_for():
    assert {Embeddings, Neighbors, Scores, RefineResult, TrainResult, TrainedEncoder} <= {
        each.values[0] for each in value_types()
    }


def history(n):
    return History([{"epoch": epoch, "loss": 1.0, "score": 0.5} for epoch in range(n)], 3)


def items(n):
    y = np.arange(n) % 7
    vectors = np.random.default_rng(0).normal(size=(7, 9))[y] + np.random.default_rng(1).normal(size=(n, 9))
    return Embeddings.from_vectors(vectors, ids=[f"item {i}" for i in range(n)], labels=y, cameras=y, sequences=y)


def scores(n):
    metrics = {f"recall@{k}": 0.5 for k in range(1, n)}
    return Scores(metrics, {"queries": n, "text": "x" * n}, {name: np.zeros(n) for name in metrics}, ("x" * n,))


MADE = {
    "Embeddings": items,
    "Neighbors": lambda n: search(items(n), k=min(n - 1, 50)),
    "Trajectory": lambda n: Trajectory(np.zeros((4, n, 5)), np.arange(n)),
    "Attention": lambda n: Attention(np.zeros((4, n, 5)), np.arange(n), np.zeros((n, 5), int)),
    "Scores": scores,
    "evaluate": lambda n: evaluate(np.asarray(items(n)), items(n).labels, nmi=False),
    "doctor": lambda n: doctor(items(n)),
    "compare": lambda n: compare(np.asarray(items(n)), items(n).labels, ["alpha-qe-8-3"]),
    "MethodResult": lambda n: MADE["compare"](n).results[0],
    "SeedResult": lambda n: MADE["compare"](n).results[0].seeds[0],
    "History": history,
    "TrainedEncoder": lambda n: TrainedEncoder(["layer " * n], history(n), ["path " * n] * n),
    "TrainResult": lambda n: TrainResult(Path("x" * n), scores(n), {"a": "x" * n}, ["x" * n], [], history(n)),
    "RefineResult": lambda n: RefineResult(np.zeros((n, n)), {"a": "x" * n}, {"b": [1] * n}, ("w" * n,), {}, {}),
    "ServedGallery": lambda n: ContextRefiner(3).fit(np.asarray(items(n))).serve(items(n)),
    "network": lambda n: ContextRefiner(3).fit(np.asarray(items(n))).network_,
    "ContextRefiner": lambda n: ContextRefiner(3).fit(np.asarray(items(n))),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("n", [14, 700])
def test_a_value_of_any_size_is_shown_in_a_few_words(name, n):
    shown = repr(MADE[name](n))
    assert shown and len(shown) <= LONGEST and shown.count("\n") <= 2, shown


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        (lambda: evaluate(np.asarray(items(28)), items(28).labels, nmi=False), ["recall@1", "map@r"]),
        (lambda: doctor(items(28)), ["distinct items", "refinement"]),
        (lambda: compare(np.asarray(items(28)), items(28).labels, ["alpha-qe-8-3"]), ["raw", "alpha-qe-8-3"]),
    ],
    ids=["evaluate", "doctor", "compare"],
)
def test_print_shows_a_table_with_a_line_for_each_number(made, rows):
    value = made()
    lines = str(value).splitlines()
    assert all(any(line.startswith(row) for line in lines) for row in rows), lines
    assert 3 <= len(lines) <= 40 and value.table() in str(value)


def test_the_table_of_scores_is_in_percent():
    printed = str(evaluate([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["a", "a", "b"], nmi=False))
    assert re.search(r"^recall@1 +66\.67 %$", printed, re.MULTILINE)
    assert printed.endswith("of 3 queries among 3 items; 2 classes, neighbors exact, ties by id")
