"""Training curves: what the log says, and which epoch was kept."""

import numpy as np
import pytest
from tests.figures.legible import check_legible

from entourage.errors import InputError
from entourage.figures.training import draw_training, kept_epoch
from entourage.training.history import History

ENTRIES = [
    {"epoch": 0, "loss": None, "score": 0.2, "seconds": None},
    {"epoch": 1, "loss": 1.5, "score": 0.4, "seconds": 3.0},
    {"epoch": 2, "loss": 0.75, "score": 0.5, "seconds": 3.0},
    {"epoch": 3, "loss": 0.5, "score": 0.5, "seconds": 3.0},
]


def test_a_panel_for_the_loss_and_one_for_the_score():
    figure = draw_training(ENTRIES, "Title")
    loss, score = figure.axes
    np.testing.assert_allclose(loss.lines[0].get_xydata(), [[1, 1.5], [2, 0.75], [3, 0.5]])
    np.testing.assert_allclose(score.lines[0].get_xydata(), [[0, 20], [1, 40], [2, 50], [3, 50]])
    assert (loss.get_ylabel(), score.get_ylabel(), score.get_xlabel()) == (
        "training loss",
        "held-out score, %",
        "epoch",
    )
    assert loss.lines[0].get_linestyle() != score.lines[0].get_linestyle()
    check_legible(figure)


def test_the_kept_epoch_is_marked_by_a_line_a_ring_and_words():
    loss, score = draw_training(ENTRIES, "Title", score_title="recall@1, %").axes
    for axes, value, said in ((loss, 0.75, "○ kept: epoch 2, 0.75"), (score, 50, "○ kept: epoch 2, 50.0 %")):
        _, upright, ring = axes.lines
        assert list(upright.get_xdata()) == [2, 2]
        assert (list(ring.get_xdata()), list(ring.get_ydata())) == ([2], [value]) and ring.get_fillstyle() == "none"
        assert axes.get_title(loc="right") == said
    assert score.get_ylabel() == "recall@1, %"


def test_where_training_never_helped_the_state_before_it_was_kept():
    loss, score = draw_training([ENTRIES[0], ENTRIES[1] | {"score": 0.1}], "Title").axes
    assert score.get_title(loc="right") == "○ kept: epoch 0, 20.0 %"
    assert len(loss.lines) == 2 and loss.get_title(loc="right") == ""


def test_without_scores_there_is_one_panel_and_the_last_epoch_is_kept():
    figure = draw_training([entry | {"score": None} for entry in ENTRIES], "Title")
    (axes,) = figure.axes
    assert axes.get_title(loc="right") == "○ kept: epoch 3, 0.5" and axes.get_xlabel() == "epoch"
    check_legible(figure)


@pytest.mark.parametrize("scores", [[0.1, 0.3, 0.3, 0.2], [0.5, 0.3, 0.4, 0.2], [None] * 4])
def test_the_epoch_is_the_one_that_training_keeps(scores):
    history = History()
    for epoch, score in enumerate(scores):
        history.add(epoch, None, score)
    assert kept_epoch(history.curve) == history.best_epoch


@pytest.mark.parametrize("entries", [[], [{"epoch": 0, "loss": None, "score": None}]])
def test_an_empty_log_is_refused(entries):
    with pytest.raises(
        InputError, match=f"none of {len(entries)} log entries has a loss or a score; wanted at least one epoch"
    ):
        draw_training(entries, "Title")
