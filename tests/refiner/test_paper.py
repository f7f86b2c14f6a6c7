"""The paper's recipe: it improves unseen classes, stops where held-out classes tell it to, resumes what was cut off."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from entourage.errors import EntourageWarning, FileError, InputError
from entourage.evaluation import evaluate, mean_average_precision_at_r
from entourage.neighbors import search
from entourage.refiner.paper import learning
from entourage.refiner.paper.estimator import PaperRefiner
from entourage.refiner.paper.network import PaperNetwork
from entourage.refiner.paper.settings import PaperSettings
from entourage.runtime.devices import chosen_device, device_named
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = {
    "n_neighbors": 5,
    "n_blocks": 3,
    "learning_rate": 1e-3,
    "epochs": 2,
    "batch_classes": 8,
    "batch_per_class": 3,
}


def noisy_clusters(seed: int, n_classes=40, per_class=12) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian clusters in 32 dimensions, of which the first eight carry nothing but strong noise."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    vectors = rng.normal(size=(n_classes, 32))[labels] + 0.6 * rng.normal(size=(len(labels), 32))
    vectors[:, :8] = 2 * rng.normal(size=(len(labels), 8))
    return vectors, labels


@pytest.fixture(scope="module")
def seen():
    return noisy_clusters(seed=0, n_classes=20)


@pytest.fixture(scope="module")
def unseen():
    return noisy_clusters(seed=1, n_classes=10)[0]


@pytest.fixture(scope="module")
def refiner(seen):
    return PaperRefiner(**QUICK).fit(*seen)


def same_weights(left, right) -> bool:
    pairs = zip(left.network_.state_dict().values(), right.network_.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# ---- what it is for ----------------------------------------------------------------------------------------------


def test_unseen_classes_are_found_clearly_better_after_than_before():
    X, y = noisy_clusters(seed=0)
    test_X, test_y = noisy_clusters(seed=1)  # other classes: other centres
    settings = {"n_blocks": 2, "learning_rate": 1e-3, "epochs": 20, "batch_classes": 16, "batch_per_class": 4}
    refiner = PaperRefiner(**settings).fit(X, y)
    before = evaluate(test_X, test_y, nmi=False).metrics
    after = evaluate(refiner.transform(test_X), test_y, nmi=False).metrics
    assert before["map@r"] < 0.45
    assert after["map@r"] > before["map@r"] + 0.2
    assert after["recall@1"] > before["recall@1"] + 0.05
    untrained, trained = refiner.history_.curve[0]["score"], refiner.history_.best_score
    assert trained > untrained + 0.15, "the blocks learn; averaging over neighbours alone does not do it"


def test_the_papers_settings_help_unseen_classes_too():
    X, y = noisy_clusters(seed=0)
    test_X, test_y = noisy_clusters(seed=1)
    refiner = PaperRefiner(epochs=8).fit(X, y)
    before, after = (
        evaluate(Z, test_y, nmi=False).metrics for Z in (test_X, refiner.transform(test_X, context=test_X))
    )
    assert after["map@r"] > before["map@r"] + 0.03


def test_a_fit_that_helps_nobody_says_so():
    rng = np.random.default_rng(0)
    noise = PaperRefiner(**QUICK).fit(rng.normal(size=(60, 16)), np.repeat(np.arange(12), 5))
    perfect = PaperRefiner(**QUICK).fit(np.repeat(np.eye(12), 8, axis=0), np.repeat(np.arange(12), 8))
    assert any("no better than the raw" in warning for warning in perfect.report()["warnings"])
    tiny = PaperRefiner(**QUICK | {"n_neighbors": 8}).fit(rng.normal(size=(12, 4)), np.repeat(np.arange(4), 3))
    assert "only 5 of 8 neighbours were available in training" in tiny.report()["warnings"]
    two = PaperRefiner(**QUICK).fit(rng.normal(size=(20, 4)), np.repeat([0, 1], 10))
    assert any("too few classes" in warning for warning in two.report()["warnings"])
    scores = noise.report()["metrics"]
    assert noise.report()["warnings"] or scores["held_out_map@r_refined"] > scores["held_out_map@r_raw"]


# ---- repeating itself --------------------------------------------------------------------------------------------


def test_another_seed_gives_other_weights(seen, refiner):
    assert same_weights(refiner, PaperRefiner(**QUICK).fit(*seen))
    assert not same_weights(refiner, PaperRefiner(**QUICK, random_state=1).fit(*seen))


@pytest.mark.parametrize("out_dim", [None, 48])
def test_a_saved_refiner_gives_the_same_output_to_the_bit(tmp_path, seen, unseen, out_dim):
    refiner = PaperRefiner(**QUICK, out_dim=out_dim).fit(*seen)
    refiner.save(tmp_path / "model")
    loaded = PaperRefiner.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(unseen, context=unseen), refiner.transform(unseen, context=unseen))
    assert loaded.get_params() == refiner.get_params()
    assert loaded.report() == refiner.report() == json.loads(json.dumps(refiner.report()))


def test_settings_that_come_as_numpy_numbers_can_be_saved_and_checkpointed(tmp_path, seen):
    settings = QUICK | {"n_blocks": np.int64(1), "learning_rate": np.float32(1e-3), "random_state": np.int64(3)}
    PaperRefiner(**settings).fit(*seen, checkpoint=tmp_path / "checkpoint").save(tmp_path / "model")
    assert PaperRefiner.load(tmp_path / "model").random_state == 3


def test_an_interrupted_fit_resumes_to_the_same_weights_and_refuses_other_data(tmp_path, seen, refiner):
    class Crash(Exception):
        pass

    def crash_in_epoch_2(title, done, total):
        if "epoch 2" in title:
            raise Crash

    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(Crash):
        PaperRefiner(**QUICK).fit(*seen, checkpoint=checkpoint, progress=crash_in_epoch_2)
    resumed = PaperRefiner(**QUICK).fit(*seen, checkpoint=checkpoint, resume=True)
    assert same_weights(resumed, refiner) and resumed.history_ == refiner.history_
    X, y = seen
    for changed, settings in [((X + 0.1, y), {}), ((X, y[::-1]), {}), ((X, y), {"beta": 50.0})]:
        with pytest.raises(FileError, match="other data or settings"):
            PaperRefiner(**QUICK, **settings).fit(*changed, checkpoint=checkpoint, resume=True)


# ---- steps and attention -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("out_dim", [None, 48])
def test_each_step_of_a_trajectory_is_the_output_with_that_many_blocks(seen, unseen, out_dim):
    refiner = PaperRefiner(**QUICK, out_dim=out_dim).fit(*seen)
    trajectory = refiner.trajectory(unseen)
    assert len(trajectory) == 4
    for step in range(4):
        np.testing.assert_array_equal(trajectory[step], refiner.transform(unseen, steps=step))
        np.testing.assert_allclose(np.linalg.norm(trajectory[step], axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(trajectory[-1], refiner.transform(unseen))
    assert trajectory.steps.shape == (4, len(unseen), out_dim or 32)
    if out_dim is None:
        np.testing.assert_array_equal(trajectory[0], Embeddings.from_vectors(unseen).vectors)


def test_attention_is_shared_out_among_the_neighbours_and_never_the_item_itself(refiner, unseen):
    items = Embeddings.from_vectors(unseen, ids=[f"picture {i}" for i in range(len(unseen))])
    attention = refiner.attention(items, context=items)
    assert attention.weights.shape == (3, len(unseen), 5)
    np.testing.assert_allclose(attention.weights.sum(axis=2), 1, atol=1e-6)
    assert (attention.weights > 0).all()
    np.testing.assert_array_equal(attention.neighbor_ids, items.ids[search(items, k=5).rows])
    assert not (attention.neighbor_ids == items.ids[:, None]).any()


def test_copies_of_one_vector_never_attend_to_themselves(refiner, unseen):
    copies = Embeddings.from_vectors(np.repeat(unseen[:2], 20, axis=0))
    attention = refiner.attention(copies)
    assert not (attention.neighbor_ids == copies.ids[:, None]).any()


# ---- context -----------------------------------------------------------------------------------------------------


def test_the_context_can_be_a_gallery(refiner, unseen):
    gallery = noisy_clusters(seed=2, n_classes=4)[0]
    refined = refiner.transform(unseen, context=gallery)
    assert refined.shape == unseen.shape
    assert not np.allclose(refined, refiner.transform(unseen), atol=1e-3)
    alone = np.concatenate([refiner.transform(unseen[i : i + 1], context=gallery) for i in range(10)])
    np.testing.assert_allclose(alone, refined[:10], atol=1e-6)  # queries do not see each other
    nearest = search(Embeddings.from_vectors(unseen), Embeddings.from_vectors(gallery), k=5).rows
    np.testing.assert_array_equal(refiner.attention(unseen, context=gallery).neighbor_ids, nearest)


# ---- which classes choose the stopping point ---------------------------------------------------------------------


def test_the_stopping_point_is_chosen_on_training_classes_the_batches_never_hold(monkeypatch, seen):
    """Watch what is scored and what is drawn: whole classes, on one side only."""
    X, y = seen
    scored, drawn = set(), set()
    draw = learning.class_balanced_batches

    def score(items):
        scored.update(items.labels.tolist())
        return mean_average_precision_at_r(items)

    def watch(codes, *arguments, **options):
        rows = draw(codes, *arguments, **options)
        drawn.update(codes[rows].ravel().tolist())  # the labels are 0..19: their own codes
        return rows

    monkeypatch.setattr(learning, "mean_average_precision_at_r", score)
    monkeypatch.setattr(learning, "class_balanced_batches", watch)
    refiner = PaperRefiner(**QUICK, validation_share=0.25).fit(X, y)
    assert len(scored) == refiner.report()["protocol"]["classes_held_out"] == 5
    assert drawn <= set(range(20)) - scored and len(drawn) > 10
    assert refiner.report()["protocol"]["stopping_point"] == "best score on the held-out classes"


def test_refitted_it_learns_from_all_classes_for_as_many_epochs(seen):
    X, y = seen
    refiner = PaperRefiner(**QUICK, refit=True).fit(X, y)
    chosen = refiner.history_.best_epoch
    assert chosen and refiner.history_ == PaperRefiner(**QUICK).fit(X, y).history_
    alone = PaperRefiner(**QUICK | {"epochs": chosen}, validation_share=0.0)
    with pytest.warns(EntourageWarning, match="no class was held out: whether refinement helps was not checked"):
        alone.fit(X, y)
    np.testing.assert_array_equal(refiner.transform(X, context=X), alone.transform(X, context=X))
    assert refiner.report()["protocol"]["stopping_point"].endswith(
        "then trained anew on all classes for as many epochs"
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fewer_than_four_usable_classes_train_without_validation(n_classes):
    X, y = noisy_clusters(seed=4, n_classes=n_classes)
    y[0] = 99  # a class with a single item does not count
    refiner = PaperRefiner(**QUICK).fit(X, y)
    report = refiner.report()
    assert set(report["metrics"].values()) == {None}
    assert report["protocol"]["classes_held_out"] == 0 and report["protocol"]["classes_with_one_item"] == 1
    assert report["protocol"]["kept_epoch"] == QUICK["epochs"]
    assert report["protocol"]["stopping_point"] == "the last epoch, unchecked"


# ---- what is refused ---------------------------------------------------------------------------------------------

BAD = {
    "n_neighbors": [0, -1, 240, 2.5],
    "n_blocks": [0, 1.5],
    "out_dim": [0, -3],
    "alpha": [0, -1.0],
    "beta": [0, -1.0],
    "threshold": [float("nan")],
    "loss_form": ["original"],
    "learning_rate": [0, -1e-3, float("nan")],
    "batch_classes": [0, 1],
    "batch_per_class": [1, 2.5],
    "epochs": [0, None],
    "patience": [0],
    "validation_share": [-0.1, 1, float("nan")],
    "refit": ["yes", None],
    "random_state": [-1, 1.5, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_bad_setting_is_refused_by_its_name(seen, name, value):
    with pytest.raises(InputError, match=name):
        PaperRefiner(**QUICK | {name: value}).fit(*seen)


def test_unusable_data_are_refused(refiner, seen, unseen):
    X, few = seen[0], unseen[:5]
    for call, error, message in [
        (lambda: PaperRefiner(**QUICK).fit(X), InputError, "no labels"),
        (lambda: refiner.transform(few, context=few), InputError, "5 vectors"),
    ]:
        with pytest.raises(error, match=message):
            call()


# ---- memory ------------------------------------------------------------------------------------------------------

MEASURE = """
import numpy as np
from entourage.neighbors import exact
from entourage.refiner import PaperRefiner

def most_memory_so_far():  # in bytes; unlike ru_maxrss, not inherited from the process that started this one
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

exact._TILE_VALUES = 2**20  # 4 MiB of similarities at once instead of 256
X = np.random.default_rng(0).standard_normal((8_000, 512), np.float32)
y = np.arange(len(X))
y[:20] = np.repeat(np.arange(10), 2)  # few items to learn from: one step; all others are context
settings = dict(n_neighbors=32, n_blocks=1, epochs=1)
PaperRefiner(**settings).fit(X[:200], y[:200])  # what torch and the network take anyway
before = most_memory_so_far()
PaperRefiner(**settings).fit(X, y)
print((most_memory_so_far() - before) / X.nbytes)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_may_be_any_as_long_as_it_stays(seen, threads):
    torch.set_num_threads(threads)
    try:
        assert same_weights(PaperRefiner(**QUICK).fit(*seen), PaperRefiner(**QUICK).fit(*seen))
    finally:
        torch.set_num_threads(1)


def test_an_output_head_starts_without_bias_and_within_glorots_limits():
    head = PaperNetwork(24, 1, out_dim=8).head
    assert head.bias.abs().max() == 0
    assert 0.9 < head.weight.abs().max() / np.sqrt(6 / (24 + 8)) <= 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_training_holds_each_vector_once_not_once_per_neighbour():
    """The normalised vectors, for a moment those of the training classes, and room to work; not 32 copies of each."""
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 4


def test_a_batch_is_learned_from_where_the_weights_are():
    """The device "meta" computes no values, but like any other one refuses to work with tensors elsewhere."""
    vectors, labels = noisy_clusters(0, 8, 5)
    items, network = Embeddings.from_vectors(vectors, labels=labels), PaperNetwork(32, 2).to("meta")
    context = search(items, k=3).rows
    loss = learning.batch_loss(PaperSettings(n_neighbors=3), network, items, labels, np.arange(40), context)
    value = loss(np.arange(10))
    value.backward()
    assert value.device.type == "meta" and all(each.grad.device.type == "meta" for each in network.parameters())


def test_the_device_is_chosen_for_the_fit_alone(monkeypatch):
    vectors, labels = noisy_clusters(0, 8, 5)
    seen = []
    monkeypatch.setattr(learning, "fit_model", lambda network, *args, **options: seen.append(chosen_device()) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        PaperRefiner(**QUICK).fit(vectors, labels, device="cpu:0")
    assert seen == [torch.device("cpu:0")] and chosen_device() == device_named("auto")
    with pytest.raises(InputError, match="the device is 'abacus'; wanted auto, cpu"):
        PaperRefiner(**QUICK).fit(vectors, labels, device="abacus")
