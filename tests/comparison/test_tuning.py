"""How settings are chosen: on held-out classes, within the budget, and with shared work that changes no score."""

import numpy as np
import pytest
from tests.comparison.samples import clusters

from entourage.baselines import Chain, LinearHead, QueryExpansion, Raw, VectorMethod, fit_linear_head, with_random_state
from entourage.baselines.method import with_vectors
from entourage.comparison.measuring import compare_split
from entourage.comparison.tuning import Trial, Validation, best_trial, choose_settings
from entourage.evaluation import evaluate_ranking
from entourage.refiner.rehearsal import make_rehearsals
from entourage.training.linear_maps import head_maps_by_epoch
from entourage.values import Embeddings, label_codes

pytestmark = pytest.mark.usefixtures("one_thread")


class Ordered(VectorMethod):
    """Ranks by `best`: "same" puts the query's class first (labels read from the ids), "other" last."""

    def __init__(self, best: str = "same"):
        self.best = best

    def _moved(self, items):
        classes = items.ids // 100
        vectors = np.eye(classes.max() + 1)[classes] if self.best == "same" else np.ones((len(items), 2))
        return with_vectors(items, vectors)


@pytest.fixture
def telling():
    """Six classes whose ids say the class, for the method Ordered."""
    labels = np.repeat(np.arange(6), 8)
    vectors = np.random.default_rng(1).normal(size=(48, 6))
    return Embeddings.from_vectors(vectors, labels * 100 + np.arange(48) % 8, labels)


def test_the_highest_map_wins_among_those_that_do_not_lose_recall():
    trials = [Trial({"k": 1}, 0.900, 0.50), Trial({"k": 2}, 0.8985, 0.60), Trial({"k": 3}, 0.89, 0.70)]
    assert best_trial(trials, raw_recall=0.900).settings == {"k": 2}  # 0.15 points less recall are allowed, 1 is not
    assert best_trial(trials, raw_recall=0.95).settings == {"k": 1}  # all lose: the best recall
    assert best_trial([Trial({"k": 1}, 0.9, 0.5), Trial({"k": 2}, 0.9, 0.5)], 0.9).settings == {"k": 1}


def test_the_better_candidate_is_chosen_on_held_out_classes(telling):
    for order in (["same", "other"], ["other", "same"]):
        choice = choose_settings(Ordered, [[{"best": best} for best in order]], telling)
        assert choice.settings == {"best": "same"}
    scores = {trial.settings["best"]: trial for trial in choice.trials}
    assert (scores["same"].recall_at_1, scores["same"].map_at_r) == (1, 1)


def test_stages_build_on_the_best_so_far_and_may_all_be_refused(telling):
    stages = [[{"k": 2}, {"k": 4}], [{"steps": 2}], [{"blend": 0.3}]]
    choice = choose_settings(QueryExpansion, stages, telling)
    raw_recall = Validation(telling, seed=0).scores(Raw())[0]
    first = best_trial(choice.trials[:2], raw_recall).settings
    assert choice.trials[2].settings == first | {"steps": 2}
    assert choice.settings in [trial.settings for trial in choice.trials]
    assert choose_settings(QueryExpansion, [], telling).settings == {}


def test_without_classes_to_hold_out_defaults_stay():
    items = clusters(n_classes=3)
    assert choose_settings(QueryExpansion, [[{"k": 1}]], items).trials == ()
    assert (
        "all methods keep their default settings" in compare_split(items, clusters(seed=1), ["average-qe"]).warnings[-1]
    )


def test_a_choice_depends_on_the_seed_by_the_classes_held_out():
    items = clusters(n_classes=12, spread=1.5)
    choices = [choose_settings(QueryExpansion, [[{"k": 4}]], items, seed=seed).trials[0] for seed in (0, 0, 1)]
    assert choices[0] == choices[1] != choices[2]


def test_heads_of_one_training_are_those_of_many():
    items = clusters()
    heads = head_maps_by_epoch(items.vectors, label_codes(items.labels), range(4), learning_rate=1e-3, seed=2)
    np.testing.assert_array_equal(heads[0], np.eye(items.dim))
    for epochs in (1, 3):
        np.testing.assert_array_equal(
            heads[epochs], fit_linear_head(items, epochs=epochs, learning_rate=1e-3, seed=2).astype(np.float32)
        )


def test_sharing_work_between_trials_changes_no_score():
    items = clusters(n_classes=8)
    shared, rehearsals = Validation(items, seed=0), make_rehearsals(items, items.labels, 0)
    for method in (
        LinearHead(epochs=2),
        Chain(LinearHead(epochs=2), QueryExpansion(k=4)),
        Chain(LinearHead(epochs=2), QueryExpansion(k=2)),
        Chain(LinearHead(epochs=3), LinearHead(epochs=1)),
        LinearHead(epochs=3, learning_rate=1e-2),
        Raw(),
    ):
        alone = [evaluate_ranking(r.held_out, with_random_state(method, 0).fit(r.training).rank) for r in rehearsals]
        expected = [np.mean([scores[name].mean() for scores in alone]) for name in ("recall@1", "map@r")]
        assert shared.scores(method) == tuple(expected)
