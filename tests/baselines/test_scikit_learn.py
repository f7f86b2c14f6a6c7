"""The baselines are estimators of scikit-learn: its own checks, and kinds in and out."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

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

pytestmark = pytest.mark.usefixtures("one_thread", "tolerance_of_float32")

ESTIMATORS = [
    Raw(),
    PCAWhitening(),
    WithinClassWhitening(),
    LDA(),
    QueryExpansion(),
    QuerySideExpansion(),
    KReciprocal(),
    Diffusion(),
    GraphNetwork(),
    SuperGlobal(),
    LinearHead(epochs=1),
    BaseMap(steps=1),
    SelfAttention(n_blocks=1, epochs=1),
    ContextualSimilarity(width=8, layers=1, epochs=1),
    AttentionExpansion(width=8, layers=1, epochs=1),
    GraphExpansion(k=4, width=8, epochs=1),
    Chain(PCAWhitening(), QueryExpansion()),
    Chain(WithinClassWhitening(), KReciprocal()),
]
GIVE_VECTORS = [estimator for estimator in ESTIMATORS if hasattr(estimator, "transform")]
ZEROS = {"check_estimators_dtypes": "its vectors of whole numbers have a row of zeros, which has no direction"}


def test_every_baseline_is_checked():
    public = {getattr(baselines, name) for name in baselines.__all__}
    methods = {value for value in public if isinstance(value, type)} - {Method, VectorMethod}
    assert {type(estimator) for estimator in ESTIMATORS} == methods


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: ZEROS, xfail_strict=True)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", GIVE_VECTORS, ids=repr)
@pytest.mark.filterwarnings("ignore:X .* feature names")  # these checks fit with names, and transform without
def test_frames_and_names_of_columns_as_scikit_learn_wants_them(estimator):
    name = type(estimator).__name__
    estimator_checks.check_dataframe_column_names_consistency(name, estimator)
    estimator_checks.check_transformer_get_feature_names_out(name, estimator)
    estimator_checks.check_transformer_get_feature_names_out_pandas(name, estimator)


@pytest.mark.parametrize("estimator", GIVE_VECTORS, ids=repr)
def test_the_kind_that_goes_in_comes_out(estimator, clusters):
    items = clusters(48)
    method = clone(estimator).fit(items)
    expected = method.transform(items).vectors
    size = expected.shape[1]
    for dtype in (np.float16, np.float32, np.float64):
        given = items.vectors.astype(dtype)  # in half precision some neighbours are others
        moved = method.transform(given)
        assert moved.dtype == dtype and moved.flags.writeable
        exact = method.transform(given.astype(np.float64))
        np.testing.assert_allclose(moved, exact, atol=1e-3 if dtype == np.float16 else 1e-6)
    assert method.transform(torch.tensor(items.vectors).bfloat16()).dtype == torch.bfloat16
    frame = pd.DataFrame(items.vectors, index=items.ids)
    moved = method.transform(frame)
    assert moved.index.equals(frame.index)
    numbered = [f"{type(estimator).__name__.lower()}{i}" for i in range(size)]
    assert list(moved.columns) == (list(range(8)) if size == 8 else numbered)
    np.testing.assert_allclose(moved, expected, atol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_arrays_are_ranked_as_embeddings_are(estimator, clusters, ranked):
    items = clusters(48)
    method = clone(estimator).fit(items.vectors, items.labels)
    same = type(items)(items.vectors)
    np.testing.assert_array_equal(ranked(method, items.vectors, 10), ranked(method, same, 10))


def test_a_chain_leaves_its_parts_as_they_were_and_says_their_parameters(clusters):
    chain = Chain(LinearHead(epochs=1), QueryExpansion(k=3)).fit(clusters(48))
    assert not hasattr(chain.first, "map_") and hasattr(chain.first_, "map_")
    assert chain.set_params(second__k=5).second.k == 5
    seeded = with_random_state(chain, 7)
    assert seeded.first.random_state == 7 and chain.first.random_state == 0 and not hasattr(seeded, "first_")


def test_it_works_in_a_pipeline(clusters):
    items = clusters(48)
    pipeline = make_pipeline(StandardScaler(), LDA(), QueryExpansion())
    moved = pipeline.fit_transform(items.vectors, items.labels)
    assert moved.shape == (48, 5)
    frame = pipeline.set_output(transform="pandas").fit_transform(items.vectors, items.labels)
    assert frame.columns.tolist() == [f"lda{i}" for i in range(5)]
