"""Known queries told from unknown ones: against scikit-learn, and intervals against plain resampling."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from entourage.errors import InputError
from entourage.evaluation.separation import (
    OpenSetThreshold,
    Wins,
    auroc,
    compare_separation,
    false_positive_rate,
    open_set_threshold,
)

RNG = np.random.default_rng(0)
KNOWN = RNG.random(300) < 0.6
LABELS = np.where(KNOWN, RNG.integers(8, size=300), 20 + RNG.integers(5, size=300))


def confidence(gap, seed=1):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=300) + gap * KNOWN + 0.5 * rng.normal(size=30)[LABELS]).round(1)  # with ties


@pytest.mark.parametrize("gap", [-1.0, 0.0, 0.5, 3.0])
def test_auroc_and_false_positives_are_those_of_scikit_learn(gap):
    values = confidence(gap)
    assert auroc(values, KNOWN) == pytest.approx(roc_auc_score(KNOWN, values))
    assert Wins.of(values, KNOWN, LABELS).auroc == pytest.approx(roc_auc_score(KNOWN, values))
    false, true, _ = roc_curve(KNOWN, values, drop_intermediate=False)
    assert false_positive_rate(values, KNOWN) == pytest.approx(false[true >= 0.95 - 1e-12][0])


def test_resampled_classes_are_as_if_their_queries_were_copied():
    values, wins = confidence(0.5), Wins.of(confidence(0.5), KNOWN, LABELS)
    known, unknown = np.unique(LABELS[KNOWN]), np.unique(LABELS[~KNOWN])
    often = np.array([[2, 0, 1, 1, 0, 3, 1, 0]]), np.array([[0, 2, 1, 1, 1]])
    counts = dict(zip(known, often[0][0], strict=True)) | dict(zip(unknown, often[1][0], strict=True))
    rows = np.repeat(np.arange(300), [counts[label] for label in LABELS])
    assert wins.resampled(*often)[0] == pytest.approx(roc_auc_score(KNOWN[rows], values[rows]))


def test_the_difference_of_two_methods_has_an_interval_over_classes():
    better, worse = (Wins.of(confidence(gap), KNOWN, LABELS) for gap in (2.0, 0.5))
    interval = compare_separation([better], [worse])
    assert interval.difference == pytest.approx(better.auroc - worse.auroc)
    assert 0 < interval.low < interval.difference < interval.high
    same = compare_separation([worse, better], [worse, better])
    assert (same.difference, same.low, same.high) == (0, 0, 0)


@pytest.mark.parametrize(
    ("values", "known", "message"),
    [
        ([1.0, 2.0], [True], "shape"),
        ([1.0, 2.0], [True, True], "2 of 2 queries are known"),
        ([1.0, np.nan], [True, False], "not a finite number"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(values, known, message):
    for measure in (auroc, false_positive_rate):
        with pytest.raises(InputError, match=message):
            measure(values, known)


@pytest.mark.parametrize("tpr", [0.07, 0.5, 0.95, 1.0])
def test_a_threshold_is_the_highest_that_keeps_the_share(tpr):
    known, unknown = (np.random.default_rng(seed).permutation(100) / 100 for seed in (0, 1))
    found = open_set_threshold(known, unknown, tpr=tpr)
    assert (known >= found.value).mean() == found.tpr == tpr  # 0.07 · 100 is more than 7 in floating point
    assert found.fpr == (unknown >= found.value).mean()
    flags = np.repeat([True, False], 100)
    assert found.fpr == false_positive_rate(np.concatenate([known, unknown]), flags, tpr)


def test_a_threshold_among_ties_keeps_more_and_without_unknown_queries_has_no_rate():
    assert open_set_threshold([0.5, 0.5, 0.5, 0.9], tpr=0.5) == OpenSetThreshold(0.5, 1.0, None)


@pytest.mark.parametrize(
    ("known", "options", "message"),
    [
        ([], {}, r"known has shape \(0,\); wanted \(N,\)"),
        ([[0.5]], {}, r"known has shape \(1, 1\)"),
        ([0.5, np.inf], {}, "some confidence in known is not a finite number"),
        ([0.5], {"unknown": []}, "unknown has shape"),
        ([0.5], {"tpr": 0}, "tpr is 0; wanted 0 < tpr ≤ 1"),
        ([0.5], {"tpr": 95}, "tpr is 95; wanted"),
    ],
)
def test_a_sample_that_gives_no_threshold_is_refused(known, options, message):
    with pytest.raises(InputError, match=message):
        open_set_threshold(known, **options)
