"""What every baseline promises, whatever it does."""

import numpy as np
import pytest
from sklearn.utils import get_tags

from entourage import baselines
from entourage.baselines import (
    LDA,
    AttentionExpansion,
    BaseMap,
    Chain,
    ContextualSimilarity,
    Diffusion,
    GraphExpansion,
    GraphNetwork,
    KReciprocal,
    LinearHead,
    Method,
    PCAWhitening,
    QueryExpansion,
    QuerySideExpansion,
    Raw,
    SelfAttention,
    SuperGlobal,
    VectorMethod,
    WithinClassWhitening,
    with_random_state,
)
from entourage.errors import InputError, ModelError, NotFittedError
from entourage.values import Embeddings

METHODS = {
    "raw": Raw,
    "pca": PCAWhitening,
    "pca, 4 axes": lambda: PCAWhitening(n_components=4, shrinkage=0.0),
    "within-class whitening": WithinClassWhitening,
    "lda": LDA,
    "both sides": QueryExpansion,
    "average of neighbours": lambda: QueryExpansion(k=8, alpha=0),
    "query side": lambda: QuerySideExpansion(k=4, steps=2, blend=0.3),
    "k-reciprocal": KReciprocal,
    "diffusion": Diffusion,
    "graph network": GraphNetwork,
    "super global": SuperGlobal,
    "base map": lambda: BaseMap(steps=2),
    "attention expansion": lambda: AttentionExpansion(k=4, width=8, layers=1, epochs=1),
    "graph expansion": lambda: GraphExpansion(k=4, width=8, epochs=1),
    "contextual similarity": lambda: ContextualSimilarity(candidates=8, anchors=8, width=8, layers=1, epochs=1),
    "linear head": lambda: LinearHead(epochs=2),
    "self-attention": lambda: SelfAttention(n_blocks=2, epochs=2),
    "chain of vectors": lambda: Chain(WithinClassWhitening(0.1), QueryExpansion(k=4)),
    "chain to a ranking": lambda: Chain(PCAWhitening(), KReciprocal(k1=5, k2=2)),
}
RANK_ONLY = {
    "query side",
    "k-reciprocal",
    "diffusion",
    "graph network",
    "super global",
    "contextual similarity",
    "chain to a ranking",
}
PARAMETERS = {  # of 8 dimensions and 6 classes
    "pca": 8 * 8 + 8,
    "pca, 4 axes": 8 * 4 + 8,
    "within-class whitening": 8 * 8,
    "lda": 8 * 5,
    "linear head": 8 * 8,
    "base map": 8 * 8,
    "self-attention": 2 * (6 * 8 * 8 + 5 * 8),
    "chain of vectors": 8 * 8,
    "chain to a ranking": 8 * 8 + 8,
}

NETWORKS = {"attention expansion", "graph expansion", "contextual similarity"}  # of several kinds of layers

every_method = pytest.mark.parametrize("name", METHODS)


@pytest.fixture
def training(clusters):
    return clusters(60, seed=1)


def test_every_method_is_tested_here():
    public = [getattr(baselines, name) for name in baselines.__all__]
    offered = {value for value in public if isinstance(value, type)} - {Method, VectorMethod}
    assert offered == {type(make()) for make in METHODS.values()}


@every_method
def test_fit_learns_from_the_training_items_and_returns_the_method(name, training):
    method = METHODS[name]()
    assert method.fit(training) is method
    if name in NETWORKS:
        assert method.n_parameters_ == sum(weights.numel() for weights in method.network_.parameters()) > 0
    else:
        assert method.n_parameters_ == PARAMETERS.get(name, 0)


@every_method
def test_transform_keeps_ids_and_labels_and_is_missing_where_there_are_no_vectors(name, training, clusters):
    method, items = METHODS[name]().fit(training), clusters(48)
    if name in RANK_ONLY:
        assert not hasattr(method, "transform") and not hasattr(method, "fit_transform")
        return
    for given in (items, Embeddings(items.vectors), items.take([5, 3, 20, 40, 8, 9, 30, 31, 1, 2])):
        moved = method.transform(given)
        np.testing.assert_array_equal(moved.ids, given.ids)
        np.testing.assert_array_equal(moved.labels, given.labels)
        assert moved.named == given.named
        np.testing.assert_allclose(np.linalg.norm(moved.vectors, axis=1), 1, atol=1e-6)


@every_method
@pytest.mark.parametrize("k", [1, 10, 47])
@pytest.mark.parametrize("named", [True, False])
def test_rank_gives_every_item_k_different_others(name, k, named, training, clusters):
    method, items = METHODS[name]().fit(training), clusters(48)
    items = items if named else Embeddings(items.vectors)
    done = 0
    for block, found in method.rank(items, k):
        assert block.start == done
        assert found.rows.shape == (block.stop - block.start, k)
        for query, row in zip(range(block.start, block.stop), found.rows, strict=True):
            assert query not in row
            assert len(set(row)) == k
        done = block.stop
    assert done == len(items)


@every_method
def test_the_ranking_does_not_depend_on_the_order_of_the_rows(name, training, clusters, ranked):
    method, items = METHODS[name]().fit(training), clusters(48)
    shuffled = items.take(np.random.default_rng(2).permutation(48))
    by_id = {item: items.ids[row].tolist() for item, row in zip(items.ids, ranked(method, items, 20), strict=True)}
    for item, row in zip(shuffled.ids, ranked(method, shuffled, 20), strict=True):
        assert shuffled.ids[row].tolist() == by_id[item]


@every_method
def test_copies_are_ranked_without_the_item_itself(name, training, ranked):
    items = Embeddings.from_vectors(np.repeat(np.random.default_rng(3).normal(size=(2, 8)), 15, axis=0))
    rows = ranked(METHODS[name]().fit(training), items, 14)
    assert not (rows == np.arange(30)[:, None]).any()
    assert (rows // 15 == np.arange(30)[:, None] // 15).all(), "the copies come first"


@every_method
def test_two_items_find_each_other(name, training, clusters, ranked):
    assert ranked(METHODS[name]().fit(training), clusters(48).take([3, 10]), 1).tolist() == [[1], [0]]


@pytest.mark.parametrize("name", ["k-reciprocal", "diffusion"])
def test_few_queries_at_a_time_are_ranked_as_all_at_once(name, clusters, ranked, monkeypatch):
    items, method = clusters(48), METHODS[name]()
    at_once = ranked(method, items, 47)
    monkeypatch.setattr("entourage.baselines.ranking._VALUES_AT_ONCE", 48 * 7)
    assert [block.stop - block.start for block, _ in method.rank(items, 47)] == [7] * 6 + [6]
    np.testing.assert_array_equal(ranked(method, items, 47), at_once)


@every_method
@pytest.mark.parametrize("k", [0, 48])
def test_more_ranks_than_there_are_others_are_refused_at_once(name, k, training, clusters):
    with pytest.raises(InputError, match=f"k is {k}, .* 1 ≤ k ≤ 47"):
        METHODS[name]().fit(training).rank(clusters(48), k)


@every_method
def test_the_same_seed_gives_the_same_ranking(name, training, clusters, ranked):
    first, again = (ranked(with_random_state(METHODS[name](), 3).fit(training), clusters(48), 47) for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_method_that_learns_says_so_before_fit(name, clusters):
    with pytest.raises(NotFittedError, match="call fit"):
        METHODS[name]().rank(clusters(48), 1)
    with pytest.raises(NotFittedError, match="call fit"):
        _ = METHODS[name]().n_parameters_


@pytest.mark.parametrize("name", PARAMETERS)
def test_vectors_of_another_encoder_are_refused(name, training, clusters):
    with pytest.raises(ModelError, match=r"the vectors have 5 dimensions, but this \w+ was fitted on 8; use"):
        METHODS[name]().fit(training).rank(clusters(48, dim=5), 1)


@pytest.mark.parametrize("name", ["within-class whitening", "lda", "linear head", "self-attention", "chain of vectors"])
def test_methods_that_learn_from_labels_ask_for_them(name, training):
    with pytest.raises(InputError, match="no labels"):
        METHODS[name]().fit(Embeddings(training.vectors))


def test_what_needs_no_labels_asks_for_none(training):
    assert PCAWhitening().fit(Embeddings(training.vectors)).n_parameters_ == 72


@pytest.mark.parametrize(
    ("make", "setting", "value"),
    [
        (PCAWhitening, "shrinkage", -0.1),
        (PCAWhitening, "n_components", 0),
        (WithinClassWhitening, "shrinkage", 1.1),
        (WithinClassWhitening, "shrinkage", "much"),
        (LDA, "shrinkage", float("nan")),
        (LDA, "n_components", 2.5),
        (QueryExpansion, "k", 0),
        (QueryExpansion, "alpha", -1),
        (QueryExpansion, "alpha", float("inf")),
        (QueryExpansion, "steps", 0),
        (QueryExpansion, "blend", 2),
        (KReciprocal, "k1", 0),
        (KReciprocal, "k2", 0),
        (KReciprocal, "weight", 1.5),
        (Diffusion, "k", 0),
        (Diffusion, "alpha", 1),
        (Diffusion, "gamma", -1),
        (Diffusion, "iterations", 0),
        (LinearHead, "epochs", 0),
        (LinearHead, "learning_rate", -1e-3),
        (LinearHead, "random_state", None),
        (SelfAttention, "n_blocks", 0),
        (SelfAttention, "epochs", 1.5),
        (SelfAttention, "patience", 0),
        (SelfAttention, "learning_rate", "fast"),
        (SelfAttention, "validation_share", 1.0),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(make, setting, value, training):
    method = make(**{setting: value})
    with pytest.raises(InputError, match=f"^{setting} is .*; wanted"):
        method.fit(training)
    if not get_tags(method).requires_fit:
        with pytest.raises(InputError, match=f"^{setting} is .*; wanted"):
            method.rank(training, 1)


# ---- Chain -------------------------------------------------------------------------------------------------------


def test_a_chain_fits_the_second_on_what_the_first_gives(training, clusters):
    items = clusters(48)
    chain = Chain(WithinClassWhitening(0.2), PCAWhitening(shrinkage=0.3)).fit(training)
    first = WithinClassWhitening(0.2).fit(training)
    second = PCAWhitening(shrinkage=0.3).fit(first.transform(training))
    np.testing.assert_array_equal(chain.transform(items).vectors, second.transform(first.transform(items)).vectors)


def test_a_chain_cannot_go_on_from_a_ranking(training):
    with pytest.raises(InputError, match="gives rankings and no vectors"):
        Chain(KReciprocal(), Raw()).fit(training)
    with pytest.raises(AttributeError, match="no attribute 'transform'") as error:
        _ = Chain(Raw(), KReciprocal()).fit(training).transform
    assert "use rank" in str(error.value.__cause__)


def test_a_chain_is_made_of_methods(training):
    with pytest.raises(InputError, match="second is 'raw'; wanted a method"):
        Chain(Raw(), "raw").fit(training)
