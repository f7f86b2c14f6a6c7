"""The refiners are estimators of scikit-learn: its own checks, and its tools."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.refiner.samples import clusters

from entourage import errors, evaluate
from entourage.refiner import ContextRefiner, PaperRefiner

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals", "tolerance_of_float32")

ESTIMATORS = [ContextRefiner(), PaperRefiner(n_neighbors=2, n_blocks=1, epochs=1)]
EXPECTED_TO_FAIL = {
    "check_estimators_dtypes": "its vectors of whole numbers have a row of zeros, which has no direction",
}
# Not among the checks that scikit-learn runs by itself. Those of set_output for pandas take it for granted that arrays
# come out if nothing is set; here it is the DataFrame that went in, and a test below does what they do.
MORE_CHECKS = [
    "check_dataframe_column_names_consistency",
    "check_get_feature_names_out_error",
    "check_global_set_output_transform_polars",
    "check_set_output_transform",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: EXPECTED_TO_FAIL, xfail_strict=True)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("check", MORE_CHECKS)
@pytest.mark.filterwarnings("ignore:X .* feature names")  # these checks fit with names, and transform without
def test_frames_and_names_of_columns_as_scikit_learn_wants_them(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


@pytest.mark.parametrize("make", [ContextRefiner, lambda: PaperRefiner(5, 2, epochs=1)])
@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("given", [np.asarray, pd.DataFrame])
def test_set_output_makes_frames_of_either_library_whatever_goes_in(make, container, given):
    X, y = clusters(seed=0, n_classes=6)
    refined = make().set_output(transform=container).fit(given(X), y).transform(given(X))
    assert type(refined).__module__.split(".")[0] == container
    assert list(refined.columns) == [f"x{i}" for i in range(32)]
    np.testing.assert_allclose(refined.to_numpy(), make().fit(X, y).transform(X), atol=1e-6)


@pytest.mark.parametrize("make", [lambda: ContextRefiner(5, 3), lambda: PaperRefiner(5, 3, epochs=2)])
def test_a_clone_has_the_parameters_and_nothing_that_was_learned(make):
    fitted = make().fit(*clusters(seed=0, n_classes=6))
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params() and not hasattr(copy, "network_")
    assert copy.set_params(n_neighbors=1).n_neighbors == 1
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        copy.transform(clusters(seed=1)[0])
    assert issubclass(errors.NotFittedError, NotFittedError) and issubclass(errors.NotFittedError, ValueError)


@pytest.mark.parametrize("make", [lambda: ContextRefiner(5, 3), lambda: PaperRefiner(5, 3, epochs=2)])
def test_it_works_in_a_pipeline(make):
    (X, y), (unseen, _) = clusters(seed=0, n_classes=6), clusters(seed=1, n_classes=6)
    pipeline = make_pipeline(StandardScaler(), Normalizer(), make())
    refined = pipeline.fit_transform(X, y)
    np.testing.assert_allclose(refined, pipeline.transform(X), atol=1e-6)
    assert pipeline.transform(unseen).shape == unseen.shape
    assert pipeline.get_feature_names_out().tolist() == [f"x{i}" for i in range(32)]


def test_a_grid_search_chooses_its_settings():
    X, y = clusters(seed=0, n_classes=6)

    def map_at_r(refiner, X, y) -> float:
        return evaluate(refiner.transform(X, context=X), y, nmi=False).metrics["map@r"]

    search = GridSearchCV(ContextRefiner(), {"n_steps": np.arange(1, 4)}, scoring=map_at_r, cv=2).fit(X, y)
    tried = dict(zip((1, 2, 3), search.cv_results_["mean_test_score"], strict=True))
    assert len(set(tried.values())) > 1
    assert search.best_params_["n_steps"] == max(tried, key=tried.get)
    assert search.transform(X).shape == X.shape


def test_a_grid_search_reaches_into_a_pipeline():
    X, y = clusters(seed=0, n_classes=6)
    pipeline = make_pipeline(PaperRefiner(epochs=1), KNeighborsClassifier(3))
    grid = {"paperrefiner__n_blocks": [1, 2], "paperrefiner__n_neighbors": [3, 6]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.9
