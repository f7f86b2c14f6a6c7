"""Known queries told from unknown ones: against scikit-learn, and intervals against plain resampling."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from entourage.errors import InputError
from entourage.evaluation.separation import Wins, auroc, compare_separation, false_positive_rate

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
