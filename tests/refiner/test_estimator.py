"""The refiners as their users meet them: each repeats itself, keeps ids apart and refuses nonsense."""

import functools
import json
import re

import numpy as np
import pytest
import torch

from entourage.errors import FileError, InputError, ModelError, NotFittedError
from entourage.neighbors import copies
from entourage.refiner import ContextRefiner, PaperRefiner, load_refiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

MAKE = {
    "context": functools.partial(ContextRefiner, n_neighbors=5, n_steps=3),
    "paper": functools.partial(PaperRefiner, n_neighbors=5, n_blocks=3, learning_rate=1e-3, epochs=2),
}
STEPS = {ContextRefiner: "n_steps", PaperRefiner: "n_blocks"}


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


@pytest.fixture(scope="module", params=MAKE)
def make(request):
    """make(**settings) gives a new refiner with quick settings, of either class."""
    return MAKE[request.param]


@pytest.fixture(scope="module")
def refiner(make, seen):
    return make().fit(*seen)


def same_weights(left, right) -> bool:
    left, right = left.network_.to_arrays(), right.network_.to_arrays()
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


# ---- repeating itself --------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_weights_to_the_bit_whatever_the_global_random_state(make, seen, unseen, refiner):
    torch.manual_seed(123)
    np.random.seed(123)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    again = make().fit(*seen)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)
    assert same_weights(refiner, again)
    assert refiner.report() == again.report()
    assert getattr(refiner, "history_", None) == getattr(again, "history_", None)
    np.testing.assert_array_equal(refiner.transform(unseen), again.transform(unseen))


def test_a_saved_refiner_gives_the_same_output_to_the_bit(tmp_path, unseen, refiner):
    refiner.save(tmp_path / "model")
    loaded = type(refiner).load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(unseen, context=unseen), refiner.transform(unseen, context=unseen))
    np.testing.assert_array_equal(
        loaded.attention(unseen, context=unseen).weights, refiner.attention(unseen, context=unseen).weights
    )
    assert loaded.get_params() == refiner.get_params()
    assert loaded.report() == refiner.report() == json.loads(json.dumps(refiner.report()))
    for name in ("n_features_in_", "n_neighbors_", "n_steps_", "n_parameters_"):
        assert getattr(loaded, name) == getattr(refiner, name), name
    assert getattr(loaded, "history_", None) == getattr(refiner, "history_", None)


def test_a_folder_is_opened_by_what_it_says_it_is(tmp_path, refiner, unseen):
    refiner.save(tmp_path / "model")
    kind, other = (ContextRefiner, PaperRefiner)[:: 1 if isinstance(refiner, ContextRefiner) else -1]
    loaded = load_refiner(tmp_path / "model")
    assert type(loaded) is kind
    np.testing.assert_array_equal(loaded.transform(unseen, context=unseen), refiner.transform(unseen, context=unseen))
    with pytest.raises(ModelError, match=f"is a {kind.__name__}, not a {other.__name__}; open it with {kind.__name__}"):
        other.load(tmp_path / "model")


def test_a_saved_model_is_not_overwritten_unasked_nor_read_if_damaged(tmp_path, refiner):
    folder = tmp_path / "model"
    for load in (type(refiner).load, load_refiner):
        with pytest.raises(FileError, match=r"no config\.json"):
            load(folder)
    refiner.save(folder)
    with pytest.raises(FileError, match="exists already"):
        refiner.save(folder)
    refiner.save(folder, overwrite=True)
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    with pytest.raises(ModelError, match="cannot be used"):
        load_refiner(folder)
    weights.write_bytes(whole)
    config = json.loads((folder / "config.json").read_text())
    wrong = PaperRefiner() if isinstance(refiner, ContextRefiner) else ContextRefiner()
    config |= {"system": wrong.system, "settings": wrong.settings(), "history": {}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="cannot be used"):  # the weights are of the other refiner
        load_refiner(folder)


def test_settings_that_come_as_numpy_numbers_can_be_saved(tmp_path, make, seen):
    steps = STEPS[make.func]
    given = {"n_neighbors": np.int64(4), steps: np.int64(1), "random_state": np.int64(3)}
    make(**given).fit(*seen).save(tmp_path / "model")
    loaded = load_refiner(tmp_path / "model")
    assert (loaded.n_neighbors, getattr(loaded, steps), loaded.random_state) == (4, 1, 3)


# ---- steps and attention -----------------------------------------------------------------------------------------


def test_each_step_of_a_trajectory_is_the_output_with_that_many_steps(refiner, unseen):
    trajectory = refiner.trajectory(unseen)
    assert trajectory.steps.shape == (4, *unseen.shape)
    for step in range(4):
        refined = refiner.transform(unseen, steps=step)
        np.testing.assert_array_equal(trajectory[step], refined)
        np.testing.assert_allclose(np.linalg.norm(refined, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(trajectory[-1], refiner.transform(unseen))
    few = list(refiner.iter_steps(unseen, steps=2))
    np.testing.assert_array_equal(few, trajectory.steps[:3])


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
    np.testing.assert_allclose(
        refiner.transform(items, context=gallery), refiner.transform(unseen, context=unseen), atol=1e-6
    )
    np.testing.assert_array_equal(
        refiner.transform(unseen, context=unseen.copy()), refiner.transform(unseen, context=unseen)
    )


def test_queries_do_not_see_each_other_and_come_with_the_gallery(refiner, unseen):
    queries, gallery = unseen[::3], np.delete(unseen, np.s_[::3], axis=0)
    refined, searched = refiner.transform_both(queries, gallery)
    np.testing.assert_array_equal(refined, refiner.transform(queries, context=gallery))
    np.testing.assert_array_equal(searched, refiner.transform(gallery, context=gallery))
    for steps in (0, 2):
        for both, alone in zip(
            refiner.transform_both(queries, gallery, steps=steps),
            (refiner.transform(queries, gallery, steps=steps), refiner.transform(gallery, gallery, steps=steps)),
            strict=True,
        ):
            np.testing.assert_array_equal(both, alone)
    alone = np.concatenate([refiner.transform(queries[i : i + 1], context=gallery) for i in range(10)])
    np.testing.assert_allclose(alone, refined[:10], atol=1e-6)
    assert refiner.attention(queries, context=gallery).neighbor_ids.max() < len(gallery)
    assert refiner.trajectory(queries, context=gallery).steps.shape == (4, *queries.shape)


def test_the_order_of_the_items_does_not_matter(refiner, unseen):
    order = np.random.default_rng(3).permutation(len(unseen))
    np.testing.assert_allclose(refiner.transform(unseen[order]), refiner.transform(unseen)[order], atol=1e-6)


def test_what_comes_in_is_not_changed(refiner, make, seen, unseen):
    (X, y), given = seen, unseen.copy()
    before = X.copy(), y.copy()
    make().fit(X, y)
    refiner.transform_both(given, given[:50])
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    np.testing.assert_array_equal(given, unseen)


def test_another_number_of_neighbours_needs_no_other_fit(refiner, unseen):
    other = refiner.with_neighbors(7)
    assert other.attention(unseen).weights.shape[2] == 7
    assert refiner.attention(unseen).weights.shape[2] == refiner.n_neighbors_ == 5


@pytest.mark.parametrize("n_neighbors", [None, 5, 20])
def test_without_labels_the_graph_is_built_once_for_fit_and_transform(n_neighbors, unseen, monkeypatch):
    searched = []

    def counted(gallery, k, **options):
        searched.append(k)
        return search(gallery, k, **options)

    search = copies.search_distinct
    monkeypatch.setattr("entourage.refiner.graph.search_distinct", counted)
    refined = ContextRefiner(n_neighbors).fit_transform(unseen)
    assert len(searched) == 1
    np.testing.assert_array_equal(refined, ContextRefiner(n_neighbors).fit(unseen).transform(unseen))
    assert len(searched) == 3


def test_with_labels_too_fitting_and_transforming_is_the_same_in_one_step_and_in_two(make, seen):
    np.testing.assert_array_equal(make().fit_transform(*seen), make().fit(*seen).transform(seen[0]))


def test_embeddings_with_text_ids_and_text_labels_teach_the_same(make, seen, unseen, refiner):
    X, y = seen
    items = Embeddings.from_vectors(X, ids=[f"{i:04}" for i in range(len(X))], labels=[f"{label:02}" for label in y])
    again = make().fit(items)
    assert same_weights(refiner, again)
    named = Embeddings.from_vectors(unseen, ids=[f"u{i:03}" for i in range(len(unseen))])
    np.testing.assert_array_equal(again.transform(named, context=named), refiner.transform(unseen, context=unseen))


def test_progress_never_counts_past_its_total_and_ends_at_it(make, seen, unseen):
    told = {}

    def progress(title, done, total):
        title = title.partition(" (")[0]  # what is in brackets changes from epoch to epoch
        assert told.get(title, 0) <= done <= total, title
        told[title] = done if done < total else 0

    refiner = make().fit(*seen, progress=progress)
    refiner.transform(unseen, progress=progress)
    assert len(told) >= 3 and set(told.values()) == {0}, told


# ---- what is refused ---------------------------------------------------------------------------------------------

BAD = {"n_neighbors": [0, -1, 2.5], "steps": [0, 1.5], "random_state": [-1, 1.5, None, np.random.RandomState(0)]}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_bad_setting_is_refused_by_its_name(make, seen, name, value):
    name = STEPS[make.func] if name == "steps" else name
    with pytest.raises(InputError, match=re.escape(f"{name} is {value!r}; wanted")):
        make(**{name: value}).fit(*seen)


@pytest.mark.parametrize("name", ["out_dim", "epochs", "n_blocks", "learning_rate", "recipe"])
def test_what_only_the_paper_uses_the_context_refiner_does_not_know(name):
    with pytest.raises(TypeError, match=name):
        ContextRefiner(**{name: 1})


def test_unusable_data_are_refused(make, refiner, seen, unseen):
    X, y = seen
    new = make()
    for call, error, message in [
        (lambda: new.transform(X), NotFittedError, "call fit"),
        (lambda: new.report(), NotFittedError, "call fit"),
        (lambda: new.n_parameters_, NotFittedError, "call fit"),
        (lambda: new.save("nowhere"), NotFittedError, "call fit"),
        (lambda: new.fit(X, y[:-1]), InputError, "143 labels for 144 vectors"),
        (lambda: new.fit(X, np.arange(len(X))), InputError, "0 classes with two or more"),
        (lambda: new.fit(X, np.zeros(len(X), int)), InputError, "1 class with two or more"),
        (lambda: refiner.transform(unseen[:, :9]), ModelError, "X has 9 features, but .*Refiner is expecting 32"),
        (lambda: refiner.transform(unseen, context=unseen[:, :9]), ModelError, "the context has 9 features"),
        (lambda: refiner.transform(unseen * np.nan), InputError, "contains NaN"),
        (lambda: refiner.transform(unseen[:0]), InputError, "0 sample"),
        (lambda: refiner.transform(unseen, steps=4), InputError, "0 ≤ steps ≤ 3"),
        (lambda: refiner.transform(unseen, steps=-1), InputError, "0 ≤ steps ≤ 3"),
    ]:
        with pytest.raises(error, match=message):
            call()
    assert not hasattr(new, "network_"), "a fit that failed leaves nothing behind"


def test_another_number_of_neighbours_is_checked_and_reported():
    refiner = ContextRefiner().fit(np.random.default_rng(0).normal(size=(80, 8)))
    fewer = refiner.with_neighbors(4)
    assert (fewer.n_neighbors_, fewer.report()["protocol"]["neighbors"]) == (4, 4)
    assert refiner.report()["protocol"]["neighbors"] == refiner.n_neighbors_ == 12
    for wrong in (0, -3, 2.7, "x"):
        with pytest.raises(InputError, match="n_neighbors is"):
            refiner.with_neighbors(wrong)
