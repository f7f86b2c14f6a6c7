"""The estimator as its users meet it, by either recipe: it repeats itself, keeps ids apart and refuses nonsense."""

import json

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from entourage.errors import FileError, InputError, ModelError, NotFittedError
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.network import RelationalNetwork
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

SETTINGS = {
    "relational": {"n_neighbors": 5, "n_blocks": 3},
    "paper": {"recipe": "paper", "n_neighbors": 5, "n_blocks": 3, "learning_rate": 1e-3, "epochs": 2},
}


def noisy_clusters(seed: int, n_classes: int, per_class=12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    return rng.normal(size=(n_classes, 32))[labels] + 1.2 * rng.normal(size=(len(labels), 32)), labels


@pytest.fixture(scope="module")
def seen():
    return noisy_clusters(seed=0, n_classes=12)


@pytest.fixture(scope="module")
def unseen():
    return noisy_clusters(seed=1, n_classes=10)[0]


@pytest.fixture(scope="module", params=SETTINGS)
def settings(request):
    return SETTINGS[request.param]


@pytest.fixture(scope="module")
def refiner(settings, seen):
    return ContextRefiner(**settings).fit(*seen)


def same_weights(left, right) -> bool:
    left, right = (
        network.to_arrays() if isinstance(network, RelationalNetwork) else network.state_dict()
        for network in (left.network_, right.network_)
    )
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


# ---- repeating itself --------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_weights_to_the_bit_whatever_the_global_random_state(
    settings, seen, unseen, refiner
):
    torch.manual_seed(123)
    np.random.seed(123)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    again = ContextRefiner(**settings).fit(*seen)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)
    assert same_weights(refiner, again)
    assert (refiner.history_, refiner.report()) == (again.history_, again.report())
    np.testing.assert_array_equal(refiner.transform(unseen), again.transform(unseen))


def test_a_saved_refiner_gives_the_same_output_to_the_bit(tmp_path, unseen, refiner):
    refiner.save(tmp_path / "model")
    loaded = ContextRefiner.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(unseen), refiner.transform(unseen))
    np.testing.assert_array_equal(loaded.attention(unseen).weights, refiner.attention(unseen).weights)
    assert loaded.get_params() == refiner.get_params()
    assert loaded.report() == refiner.report() == json.loads(json.dumps(refiner.report()))
    for name in ("n_features_in_", "n_neighbors_", "n_blocks_", "n_parameters_", "history_"):
        assert getattr(loaded, name) == getattr(refiner, name), name


def test_a_saved_model_is_not_overwritten_unasked_nor_read_if_damaged(tmp_path, refiner):
    folder = tmp_path / "model"
    with pytest.raises(FileError, match=r"no config\.json"):
        ContextRefiner.load(folder)
    refiner.save(folder)
    with pytest.raises(FileError, match="exists already"):
        refiner.save(folder)
    refiner.save(folder, overwrite=True)
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    with pytest.raises(ModelError, match="cannot be used"):
        ContextRefiner.load(folder)
    weights.write_bytes(whole)
    config = json.loads((folder / "config.json").read_text())
    other = "paper" if config["settings"]["recipe"] == "relational" else "relational"
    config["settings"] |= {"recipe": other, "learning_rate": 1e-4, "epochs": 30}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="cannot be used"):  # the weights are of the other recipe
        ContextRefiner.load(folder)


def test_settings_that_come_as_numpy_numbers_can_be_saved(tmp_path, settings, seen):
    given = settings | {"n_neighbors": np.int64(4), "n_blocks": np.int64(1), "seed": np.int64(3)}
    ContextRefiner(**given).fit(*seen).save(tmp_path / "model")
    loaded = ContextRefiner.load(tmp_path / "model")
    assert (loaded.n_neighbors, loaded.n_blocks, loaded.seed) == (4, 1, 3)


# ---- steps and attention -----------------------------------------------------------------------------------------


def test_each_step_of_a_trajectory_is_the_output_with_that_many_steps(refiner, unseen):
    trajectory = refiner.trajectory(unseen)
    assert trajectory.steps.shape == (4, *unseen.shape)
    for step in range(4):
        refined = refiner.transform(unseen, steps=step)
        assert refined.dtype == np.float32
        np.testing.assert_array_equal(trajectory[step], refined)
        np.testing.assert_allclose(np.linalg.norm(refined, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(trajectory[-1], refiner.transform(unseen))


def test_attention_is_shared_out_among_the_neighbours_and_never_the_item_itself(refiner, unseen):
    items = Embeddings.from_vectors(unseen, ids=[f"picture {i}" for i in range(len(unseen))])
    attention = refiner.attention(items)
    assert attention.weights.shape == (3, len(unseen), 5)
    np.testing.assert_allclose(attention.weights.sum(axis=2), 1, atol=1e-6)
    assert attention.ids.tolist() == items.ids.tolist()
    assert not (attention.neighbor_ids == items.ids[:, None]).any()
    assert all(len(set(row)) == 5 for row in attention.neighbor_ids.tolist())


# ---- context -----------------------------------------------------------------------------------------------------


def test_a_gallery_that_names_the_queries_is_the_set_itself(refiner, unseen):
    names = [f"picture {i:03}" for i in range(len(unseen))]
    items, gallery = (Embeddings.from_vectors(unseen, ids=names) for _ in range(2))
    np.testing.assert_allclose(refiner.transform(items, context=gallery), refiner.transform(unseen), atol=1e-6)
    np.testing.assert_array_equal(refiner.transform(unseen, context=unseen), refiner.transform(unseen))


def test_queries_do_not_see_each_other_and_come_with_the_gallery(refiner, unseen):
    queries, gallery = unseen[::3], np.delete(unseen, np.s_[::3], axis=0)
    refined, searched = refiner.transform_both(queries, gallery)
    np.testing.assert_array_equal(refined, refiner.transform(queries, context=gallery))
    np.testing.assert_array_equal(searched, refiner.transform(gallery))
    alone = np.concatenate([refiner.transform(queries[i : i + 1], context=gallery) for i in range(10)])
    np.testing.assert_allclose(alone, refined[:10], atol=1e-6)
    assert refiner.attention(queries, context=gallery).neighbor_ids.max() < len(gallery)
    assert refiner.trajectory(queries, context=gallery).steps.shape == (4, *queries.shape)


def test_the_order_of_the_items_does_not_matter(refiner, unseen):
    order = np.random.default_rng(3).permutation(len(unseen))
    np.testing.assert_allclose(refiner.transform(unseen[order]), refiner.transform(unseen)[order], atol=1e-6)


def test_what_comes_in_is_not_changed(refiner, settings, seen, unseen):
    (X, y), given = seen, unseen.copy()
    before = X.copy(), y.copy()
    ContextRefiner(**settings).fit(X, y)
    refiner.transform_both(given, given[:50])
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    np.testing.assert_array_equal(given, unseen)


# ---- kinds of input ----------------------------------------------------------------------------------------------


def test_embeddings_with_text_ids_and_text_labels_teach_the_same(settings, seen, unseen, refiner):
    X, y = seen
    items = Embeddings.from_vectors(X, ids=[f"{i:04}" for i in range(len(X))], labels=[f"{label:02}" for label in y])
    again = ContextRefiner(**settings).fit(items)
    assert same_weights(refiner, again)
    np.testing.assert_array_equal(
        again.transform(Embeddings.from_vectors(unseen, ids=[f"u{i:03}" for i in range(len(unseen))])),
        refiner.transform(unseen),
    )


def test_it_is_a_scikit_learn_estimator(settings, seen, unseen, refiner):
    copy = clone(refiner)
    assert copy.get_params() == refiner.get_params() and not hasattr(copy, "network_")
    assert copy.set_params(n_blocks=1).n_blocks == 1
    X, y = seen
    pipeline = make_pipeline(StandardScaler(), Normalizer(), ContextRefiner(**settings))
    assert pipeline.fit_transform(X, y).shape == X.shape
    assert pipeline.transform(unseen).shape == unseen.shape


def test_progress_never_counts_past_its_total_and_ends_at_it(settings, seen, unseen):
    told = {}

    def progress(title, done, total):
        title = title.partition(" (")[0]  # what is in brackets changes from epoch to epoch
        assert told.get(title, 0) <= done <= total, title
        told[title] = done if done < total else 0

    refiner = ContextRefiner(**settings).fit(*seen, progress=progress)
    refiner.transform(unseen, progress=progress)
    assert len(told) >= 3 and set(told.values()) == {0}, told


# ---- what is refused ---------------------------------------------------------------------------------------------

BAD = {"n_neighbors": [0, -1, 2.5], "n_blocks": [0, 1.5], "seed": [-1, 1.5], "recipe": ["Paper", None]}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_bad_setting_is_refused_by_its_name(settings, seen, name, value):
    with pytest.raises(InputError, match=f"^{name} is {value!r}; wanted"):
        ContextRefiner(**settings | {name: value}).fit(*seen)


def test_unusable_data_are_refused(settings, refiner, seen, unseen):
    X, y = seen
    new = ContextRefiner(**settings)
    for call, error, message in [
        (lambda: new.transform(X), NotFittedError, "call fit"),
        (lambda: new.report(), NotFittedError, "call fit"),
        (lambda: new.n_parameters_, NotFittedError, "call fit"),
        (lambda: new.save("nowhere"), NotFittedError, "call fit"),
        (lambda: new.fit(X, y[:-1]), InputError, "143 labels for 144 vectors"),
        (lambda: new.fit(X, np.arange(len(X))), InputError, "0 classes with two or more"),
        (lambda: new.fit(X, np.zeros(len(X), int)), InputError, "1 class with two or more"),
        (lambda: refiner.transform(unseen[:, :9]), ModelError, "9 dimensions .* trained on 32"),
        (lambda: refiner.transform(unseen, context=unseen[:, :9]), ModelError, "context vectors have 9 dimensions"),
        (lambda: refiner.transform(unseen * np.nan), InputError, "contains NaN"),
        (lambda: refiner.transform(unseen[:0]), InputError, "0 rows"),
        (lambda: refiner.transform(unseen, steps=4), InputError, "0 ≤ steps ≤ 3"),
        (lambda: refiner.transform(unseen, steps=-1), InputError, "0 ≤ steps ≤ 3"),
    ]:
        with pytest.raises(error, match=message):
            call()
    assert not hasattr(new, "network_"), "a fit that failed leaves nothing behind"
