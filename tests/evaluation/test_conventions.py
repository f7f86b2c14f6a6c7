"""The same ranking, with the figures that other tools have for it: run side by side, and by hand."""

import importlib

import numpy as np
import pytest
from typer.testing import CliRunner

from entourage import EntourageWarning, evaluate, search
from entourage.cli import app
from entourage.errors import InputError


def labelled(count=160, n_classes=20, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=count)
    centres = np.random.default_rng(99).normal(size=(n_classes, 8))
    return (centres[labels] + 0.9 * rng.normal(size=(count, 8))).astype(np.float32), labels


# ---- pytorch-metric-learning -------------------------------------------------------------------------------------


@pytest.mark.parametrize("separate", [False, True], ids=["one set", "queries and references"])
def test_pml_gives_the_figures_of_its_calculator_by_their_names(separate):
    accuracy = pytest.importorskip("pytorch_metric_learning.utils.accuracy_calculator")
    import torch

    from entourage.integrations.metric_learning import knn_func

    (X, y), (G, g) = labelled(), labelled(seed=1)
    y[:3] = [100, 101, 102]  # without a match
    names = ("precision_at_1", "r_precision", "mean_average_precision_at_r", "mean_average_precision")
    calculator = accuracy.AccuracyCalculator(
        include=(*names, "mean_reciprocal_rank"), device=torch.device("cpu"), knn_func=knn_func, kmeans_func=lambda: 0
    )
    theirs = calculator.get_accuracy(X, y, *([G, g] if separate else []))
    gallery = {"gallery": G, "gallery_labels": g} if separate else {}
    ours = evaluate(X, y, **gallery, convention="pml", nmi=False)
    assert ours.metrics == pytest.approx(theirs, abs=1e-6) and 0.1 < ours.metrics["r_precision"] < 0.9
    assert ours.protocol["without_match"] == "left out" and ours.protocol["queries_without_match"] >= 3


def test_pml_scores_a_clustering_as_scikit_learn_does():
    X, y = labelled()
    scores = evaluate(X, y, convention="pml")
    assert scores.metrics["NMI"] == evaluate(X, y).metrics["nmi"]
    assert 0 < scores.metrics["AMI"] < scores.metrics["NMI"]  # what chance would give is taken away


# ---- Open Metric Learning ----------------------------------------------------------------------------------------


def their_metrics():
    try:
        return importlib.import_module("oml.functional.metrics")
    except ImportError as error:
        pytest.skip(f"Open Metric Learning is not there ({error}); it wants numpy < 2: pip install --no-deps")


def test_oml_gives_the_figures_of_its_metrics():
    theirs, torch = their_metrics(), pytest.importorskip("torch")
    X, y = labelled()
    counts = np.bincount(y)
    X, y = X[counts[y] > 1], y[counts[y] > 1]
    found = search(X, k=len(X) - 1).rows
    relevant = [np.flatnonzero((y == label) & (np.arange(len(y)) != row)) for row, label in enumerate(y)]
    as_tensors = [torch.tensor(found), [torch.tensor(each) for each in relevant]]
    figures = theirs.calc_retrieval_metrics(
        *as_tensors, cmc_top_k=(1, 5), precision_top_k=(1, 5), map_top_k=(1, 5), verbose=False
    )
    flat = {f"{name}@{k}": float(value) for name, at in figures.items() for k, value in at.items()}
    assert evaluate(X, y, convention="oml").metrics == pytest.approx(flat, abs=1e-6)


def on_a_line(*degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_oml_by_hand():
    gallery, labels = on_a_line(10, 20, 30, 40, 50), ["a", "b", "a", "b", "b"]
    scores = evaluate(
        on_a_line(0), ["a"], gallery=gallery, gallery_labels=labels, convention="oml", at=(1, 2, 4)
    ).metrics
    # found: a, b, a, b, b of R = 2 matches
    assert scores == pytest.approx(
        {
            **{"cmc@1": 1, "cmc@2": 1, "cmc@4": 1},
            **{"precision@1": 1 / 1, "precision@2": 1 / 2, "precision@4": 2 / 2},  # divided by min(k, R)
            **{"map@1": 1, "map@2": 1 / 1, "map@4": (1 + 2 / 3) / 2},  # divided by what was found
        }
    )
    ours = evaluate(on_a_line(0), ["a"], gallery=gallery, gallery_labels=labels, at=(1, 2, 4), nmi=False).metrics
    assert ours["precision@4"] == 2 / 4


def test_oml_leaves_out_what_it_divides_by_zero_for():
    X, y = on_a_line(0, 5, 80), ["a", "a", "b"]
    with pytest.warns(EntourageWarning, match="1 queries have no match, .* precision@k is left out"):
        scores = evaluate(X, y, convention="oml", at=1)
    assert scores.metrics == {"cmc@1": 2 / 3, "map@1": 2 / 3}


# ---- which one, and what cannot be -------------------------------------------------------------------------------


def test_the_convention_is_in_the_protocol_and_that_of_the_papers_is_the_usual_one():
    X, y = labelled()
    said = [evaluate(X, y, convention=name, nmi=False).protocol["convention"] for name in ("papers", "pml")]
    assert said[0] == "papers" and said[1].startswith("pml: as AccuracyCalculator")
    assert evaluate(X, y, nmi=False).metrics == evaluate(X, y, convention="papers", nmi=False).metrics


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"convention": "coco"}, "the convention is 'coco'"),
        ({"convention": "pml", "no_match": "zero"}, "no_match is zero, but the convention pml has drop"),
        ({"convention": "pml", "at": 5}, "no metrics at k but precision_at_1"),
    ],
)
def test_what_a_convention_does_not_have_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        evaluate(*labelled(), **options)


def test_from_the_command_line(tmp_path):
    X, y = labelled()
    np.savez(tmp_path / "v.npz", vectors=X, labels=y)
    outcome = CliRunner().invoke(app, ["evaluate", str(tmp_path / "v.npz"), "--convention", "oml", "--json"])
    assert outcome.exit_code == 0 and '"map@5"' in outcome.stdout
    refused = CliRunner().invoke(app, ["evaluate", "missing.npz", "--convention", "pml", "--at", "5"])
    assert refused.exit_code == 2 and "pytorch-metric-learning" in refused.stderr
