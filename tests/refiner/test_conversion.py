"""Vectors of any kind go in, and refined ones of the same kind come out."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from tests.refiner.samples import clusters

from entourage.errors import InputError, ModelError
from entourage.refiner import ContextRefiner, PaperRefiner
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

NAMES = [f"axis {i}" for i in range(32)]


@pytest.fixture(scope="module")
def labelled():
    return clusters(seed=0, n_classes=6)


@pytest.fixture(scope="module")
def vectors():
    return clusters(seed=1, n_classes=6)[0]


@pytest.fixture(scope="module", params=["context", "paper", "paper with a head"])
def refiner(request, labelled):
    if request.param == "context":
        return ContextRefiner(5).fit(*labelled)
    return PaperRefiner(5, 2, epochs=1, out_dim=9 if "head" in request.param else None).fit(*labelled)


def close(refined, expected, places=6) -> None:
    np.testing.assert_allclose(np.asarray(refined, np.float64), expected, atol=10.0**-places)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floating_arrays_keep_their_type_and_are_not_shared(refiner, vectors, dtype):
    given = vectors.astype(dtype)
    refined = refiner.transform(given)
    assert refined.dtype == dtype and refined.flags.writeable and not np.shares_memory(refined, given)
    close(refined, refiner.transform(given.astype(np.float64)), places=3 if dtype == np.float16 else 6)
    nothing = refiner.transform(given, steps=0)
    assert nothing.dtype == dtype and nothing.flags.writeable and not np.shares_memory(nothing, given)


def test_lists_and_whole_numbers_become_float32(refiner, vectors):
    whole = np.round(10 * vectors).astype(int)
    for given in (whole, whole.astype(np.uint8), whole.tolist(), vectors.tolist(), tuple(map(tuple, vectors))):
        refined = refiner.transform(given)
        assert isinstance(refined, np.ndarray) and refined.dtype == np.float32
        close(refined, refiner.transform(np.asarray(given, np.float64)))


def test_embeddings_keep_ids_and_labels(refiner, vectors):
    items = Embeddings.from_vectors(vectors, ids=np.arange(72) + 100, labels=np.arange(72) % 6)
    refined = refiner.transform(items)
    assert isinstance(refined, Embeddings)
    assert refined.ids.tolist() == items.ids.tolist() and refined.labels.tolist() == items.labels.tolist()
    close(refined.vectors, refiner.transform(vectors))
    np.testing.assert_array_equal(np.asarray(refined), refined.vectors)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pandas_frame_keeps_its_index_and_its_columns(refiner, vectors, dtype):
    frame = pd.DataFrame(vectors.astype(dtype), index=[f"row {i}" for i in range(72)], columns=NAMES)
    refined = refitted(refiner, frame).transform(frame)
    assert isinstance(refined, pd.DataFrame) and refined.index.equals(frame.index)
    assert set(refined.dtypes) == {np.dtype(dtype)}
    assert refined.columns.tolist() == (NAMES if refined.shape[1] == 32 else [f"paperrefiner{i}" for i in range(9)])
    close(refined, refiner.transform(vectors))


def test_a_pandas_frame_without_names_keeps_its_numbers(refiner, vectors):
    frame = pd.DataFrame(vectors)
    refined = refiner.transform(frame)
    if refined.shape[1] == 32:
        assert refined.columns.equals(frame.columns)
    close(refined, refiner.transform(vectors))


def test_a_polars_frame_keeps_its_columns(refiner, vectors):
    frame = pl.DataFrame(vectors.astype(np.float32), schema=NAMES)
    refined = refitted(refiner, frame).transform(frame)
    assert isinstance(refined, pl.DataFrame) and set(refined.dtypes) == {pl.Float32}
    assert refined.columns == (NAMES if refined.width == 32 else [f"paperrefiner{i}" for i in range(9)])
    close(refined, refiner.transform(vectors))


LISTS = {
    "pandas lists": lambda X: pd.Series(X.tolist(), index=[f"row {i}" for i in range(len(X))], name="vector"),
    "pandas arrays": lambda X: pd.Series(list(X.astype(np.float32)), name="vector"),
    "pandas frame": lambda X: pd.DataFrame({"vector": X.tolist()}, index=np.arange(len(X))[::-1]),
    "polars lists": lambda X: pl.Series("vector", X.tolist(), dtype=pl.List(pl.Float32)),
    "polars arrays": lambda X: pl.Series("vector", X.astype(np.float32)),
    "polars frame": lambda X: pl.DataFrame({"vector": X.tolist()}),
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_column_of_lists_comes_back_as_one(refiner, vectors, kind):
    given = LISTS[kind](vectors)
    refined = refiner.transform(given)
    expected = refiner.transform(vectors)
    assert type(refined) is type(given)
    if "frame" in kind:
        assert list(refined.columns) == ["vector"]
    else:
        assert refined.name == "vector"
    if "pandas" in kind:
        assert refined.index.equals(given.index)
        column = refined["vector"] if "frame" in kind else refined
        first = (given["vector"] if "frame" in kind else given).iloc[0]
        assert type(column.iloc[0]) is type(first)
    else:
        column = refined["vector"] if "frame" in kind else refined
        assert type(column.dtype) is (pl.Array if "arrays" in kind else pl.List)
    close(np.stack([np.asarray(row) for row in column]), expected, places=6)


def test_a_column_of_lists_names_no_columns_and_serves(vectors):
    column = pd.Series(vectors.tolist())
    refiner = ContextRefiner(5).fit(column)
    assert refiner.n_features_in_ == 32 and not hasattr(refiner, "feature_names_in_")
    served = refiner.serve(column)
    assert isinstance(served.refined_gallery, pd.Series) and isinstance(served.transform(vectors[:3]), np.ndarray)
    framed = ContextRefiner(5).set_output(transform="pandas").fit(column).transform(column)
    assert framed.shape == (72, 32)


def refitted(refiner, frame):
    """A refiner that learned the same from a frame of the same kind."""
    X, y = clusters(seed=0, n_classes=6)
    named = pd.DataFrame(X, columns=NAMES) if isinstance(frame, pd.DataFrame) else pl.DataFrame(X, schema=NAMES)
    again = type(refiner)(**refiner.get_params()).fit(named, y)
    assert again.feature_names_in_.tolist() == NAMES
    return again


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_tensor_keeps_its_type_and_leaves_the_gradient_out(refiner, vectors, dtype):
    given = torch.tensor(vectors, dtype=dtype, requires_grad=True)
    refined = refiner.transform(given)
    assert isinstance(refined, torch.Tensor) and refined.dtype == dtype and not refined.requires_grad
    assert refined.device == given.device
    expected = refiner.transform(given.detach().double().numpy())
    close(refined.double(), expected, places=2 if dtype == torch.bfloat16 else 3 if dtype == torch.float16 else 6)


def test_a_tensor_of_whole_numbers_and_a_parameter(refiner, vectors):
    assert refiner.transform(torch.tensor(np.round(10 * vectors)).long()).dtype == torch.float32
    close(refiner.transform(torch.nn.Parameter(torch.tensor(vectors))), refiner.transform(vectors))


def test_labels_of_any_kind_teach_the_same(labelled):
    X, y = labelled
    expected = ContextRefiner(5).fit(X, y).network_.to_arrays()
    for given in (torch.tensor(y), pd.Series(y), pl.Series(y), y.tolist(), pd.Series(y).astype(str)):
        found = ContextRefiner(5).fit(torch.tensor(X), given).network_.to_arrays()
        assert found.keys() == expected.keys()
        for name in found:
            np.testing.assert_array_equal(found[name], expected[name])


def test_queries_and_gallery_each_keep_their_kind(refiner, vectors):
    queries, gallery = torch.tensor(vectors[:20]), pd.DataFrame(vectors[20:].astype(np.float32))
    refined, searched = refiner.transform_both(queries, gallery)
    assert isinstance(refined, torch.Tensor) and isinstance(searched, pd.DataFrame)
    served = refiner.serve(gallery)
    assert isinstance(served.transform(queries), torch.Tensor)
    pd.testing.assert_frame_equal(served.refined_gallery, searched, atol=1e-6)


def test_columns_of_other_names_are_refused(labelled, vectors):
    X, y = labelled
    refiner = ContextRefiner(5).fit(pd.DataFrame(X, columns=NAMES), y)
    with pytest.raises(InputError, match="feature names should match"):
        refiner.transform(pd.DataFrame(vectors, columns=NAMES[::-1]))
    with pytest.raises(ModelError, match="the gallery has 9 features, but ContextRefiner is expecting 32"):
        ContextRefiner(5).fit(X, y).transform_both(vectors, vectors[:, :9])


def test_names_of_columns_come_back_from_disk(labelled, vectors, tmp_path):
    X, y = labelled
    ContextRefiner(5).fit(pd.DataFrame(X, columns=NAMES), y).save(tmp_path / "model")
    loaded = ContextRefiner.load(tmp_path / "model")
    assert loaded.get_feature_names_out().tolist() == NAMES
    assert loaded.transform(pd.DataFrame(vectors, columns=NAMES)).columns.tolist() == NAMES


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "polars", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
from entourage import ContextRefiner, PaperRefiner, baselines
from entourage.errors import MissingExtra

X = np.random.default_rng(0).normal(size=(40, 4))
print(ContextRefiner().fit_transform(X).shape)
for learning in (ContextRefiner(), PaperRefiner(), baselines.LinearHead(), baselines.SelfAttention()):
    try:
        learning.fit(X, np.arange(40) % 8)
    except MissingExtra as error:
        print(error)
"""


def test_tables_of_numpy_need_none_of_the_other_libraries_and_what_learns_names_the_pip_line():
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", WITHOUT], capture_output=True, text=True)
    shape, *refusals = run.stdout.splitlines()
    assert (shape, run.stderr) == ("(40, 4)", "")
    assert len(refusals) == 4 and all(text.endswith("pip install 'entourage[train]'") for text in refusals), refusals
