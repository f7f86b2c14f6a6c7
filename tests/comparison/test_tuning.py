"""How settings are chosen: on held-out classes, within the budget, and with shared work that changes no score."""

import numpy as np
import pytest
from tests.comparison.samples import clusters

from entourage.baselines import (
    BaseMap,
    Chain,
    KReciprocal,
    LinearHead,
    QueryExpansion,
    Raw,
    VectorMethod,
    fit_linear_head,
    with_random_state,
)
from entourage.baselines.method import with_vectors
from entourage.comparison.measuring import compare_split
from entourage.comparison.methods import METHODS
from entourage.comparison.tuning import MOST_BEYOND, Trial, best_trial, choose_settings
from entourage.comparison.validation import Validation
from entourage.evaluation import evaluate_ranking
from entourage.refiner.rehearsal import make_rehearsals
from entourage.runtime.sharing import SharedWork, sharing
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
        choice = choose_settings(Ordered, [[{"best": best} for best in order]], Validation(telling, 0))
        assert choice.settings == {"best": "same"}
    scores = {trial.settings["best"]: trial for trial in choice.trials}
    assert (scores["same"].recall_at_1, scores["same"].map_at_r) == (1, 1)


def test_stages_build_on_the_best_so_far_and_may_all_be_refused(telling):
    stages = [[{"k": 2}, {"k": 4}], [{"steps": 2}], [{"blend": 0.3}]]
    choice = choose_settings(QueryExpansion, stages, Validation(telling, 0))
    raw_recall = Validation(telling, seed=0).scores(Raw())[0]
    first = best_trial(choice.trials[:2], raw_recall).settings
    assert choice.trials[2].settings == first | {"steps": 2}
    assert choice.settings in [trial.settings for trial in choice.trials]
    assert choose_settings(QueryExpansion, [], Validation(telling, 0)).settings == {}


def test_without_classes_to_hold_out_defaults_stay():
    items = clusters(n_classes=3)
    assert choose_settings(QueryExpansion, [[{"k": 1}]], Validation(items, 0)).trials == ()
    assert (
        "all methods keep their default settings" in compare_split(items, clusters(seed=1), ["average-qe"]).warnings[-1]
    )


def test_a_choice_depends_on_the_seed_by_the_classes_held_out():
    items = clusters(n_classes=12, spread=1.5)
    rehearsals = [Validation(items, seed) for seed in (0, 0, 1)]
    choices = [choose_settings(QueryExpansion, [[{"k": 4}]], each).trials[0] for each in rehearsals]
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
        LinearHead(epochs=2),
        BaseMap(shrinkage=0.3, steps=0),
        Chain(BaseMap(shrinkage=0.7, steps=0), QueryExpansion(k=2)),
        Chain(BaseMap(shrinkage=0.3, steps=2), KReciprocal(k1=4, k2=2)),
        BaseMap(shrinkage=0.3, steps=60),
        Raw(),
    ):
        alone = [evaluate_ranking(r.held_out, with_random_state(method, 0).fit(r.training).rank) for r in rehearsals]
        expected = [np.mean([scores[name].mean() for scores in alone]) for name in ("recall@1", "map@r")]
        assert shared.scores(method) == tuple(expected)


# ---- beyond the ranges -------------------------------------------------------------------------------------------


class Scripted:
    """Rehearsals in which a method, here a dict of its settings, scores as a function says."""

    is_possible, raw_recall = True, 0.5

    def __init__(self, map_at_r, recall=lambda settings: 0.5):
        self.map_at_r, self.recall = map_at_r, recall

    def scores(self, settings):
        return self.recall(settings), self.map_at_r(settings)


LADDER = {"k": (1, 2, 4, 8, 16, 32, 64, 128, 256), "alpha": (0, 1, 3, 5, 8)}
STAGES = [[{"k": k, "alpha": 3} for k in (8, 16, 32)], [{"alpha": 1}, {"alpha": 5}]]


def test_a_range_is_extended_until_its_end_is_not_best():
    choice = choose_settings(dict, STAGES, Scripted(lambda s: -abs(s["k"] - 100) - abs(s["alpha"] - 3)), beyond=LADDER)
    assert choice.settings == {"k": 128, "alpha": 3}
    assert [trial.settings["k"] for trial in choice.trials[5:]] == [64, 128, 256]
    assert (choice.extended, choice.at_end) == (("k",), ())


def test_both_ends_are_extended_and_what_stays_at_the_last_value_is_said():
    choice = choose_settings(dict, STAGES, Scripted(lambda s: -s["k"] + s["alpha"]), beyond={**LADDER, "k": (3, 4, 8)})
    assert choice.settings == {"k": 3, "alpha": 8}
    assert (choice.extended, choice.at_end) == (("k", "alpha"), ("k", "alpha"))
    natural = choose_settings(dict, STAGES, Scripted(lambda s: -s["k"] - s["alpha"]), beyond=LADDER)
    assert natural.settings == {"k": 1, "alpha": 0} and natural.at_end == ()  # nothing lies beyond 1 and 0


def test_what_lies_beyond_obeys_the_rule_of_recall():
    loses = Scripted(lambda s: s["k"], recall=lambda s: 0.5 if s["k"] <= 64 else 0.4)
    choice = choose_settings(dict, STAGES, loses, beyond={"k": LADDER["k"]})
    assert choice.settings["k"] == 64 and choice.trials[-1].settings["k"] == 128


def test_inside_a_range_and_without_further_values_nothing_is_extended():
    inside = Scripted(lambda s: -abs(s["k"] - 16) - abs(s["alpha"] - 3))
    assert len(choose_settings(dict, STAGES, inside, beyond=LADDER).trials) == 5
    assert len(choose_settings(dict, STAGES, Scripted(lambda s: s["k"])).trials) == 5
    unchosen = [[{"k": None}, {"k": 6}, {"k": 12}]]
    choice = choose_settings(dict, unchosen, Scripted(lambda s: -(s["k"] or 0)), beyond=LADDER)
    assert choice.settings == {"k": None} and not choice.extended


def test_a_range_without_end_is_left_after_a_while():
    ever = {"k": tuple(range(1, 1000))}
    choice = choose_settings(dict, [[{"k": 1}, {"k": 2}]], Scripted(lambda s: s["k"]), beyond=ever)
    assert len(choice.trials) == 2 + MOST_BEYOND and choice.settings == {"k": 2 + MOST_BEYOND}


@pytest.mark.parametrize(
    "name", ["pca-whitening", "lda", "alpha-qe", "k-reciprocal", "diffusion", "graph-network", "super-global"]
)
def test_shared_work_changes_no_choice_and_no_score(name):
    """Each rehearsal by itself, against all of them with neighbours, cosines and eigen-decompositions kept."""
    spec, training = METHODS[name], clusters(n_classes=12, per_class=8, spread=1.4)
    stages = [spec.stages[0][::4], *spec.stages[1:2]]
    alone = choose_settings(spec.build, stages, Validation(training, seed=0))
    with sharing(SharedWork()):
        validation = Validation(training, seed=0)
        choose_settings(METHODS["whitening+alpha-qe"].build, [[{"shrinkage": 0.3, "k": 4}]], validation)
        together = choose_settings(spec.build, stages, validation)
    assert together.settings == alone.settings
    for one, other in zip(alone.trials, together.trials, strict=True):
        assert (one.settings, one.recall_at_1) == (other.settings, other.recall_at_1)
        assert one.map_at_r == pytest.approx(other.map_at_r, abs=1e-12)
