"""Vectors and labels of every kind: read alike by every public call, or refused in one sentence with the fix."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse

import entourage
from entourage import ContextRefiner, Embeddings
from entourage.baselines import QueryExpansion
from entourage.errors import InputError
from entourage.values import as_embeddings, as_matrix

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")

N, D = 40, 6
Y = np.arange(N) % 5
X = (np.random.default_rng(0).normal(size=(5, D))[Y] + 0.6 * np.random.default_rng(1).normal(size=(N, D))).astype("f4")


class Array:
    """What libraries such as xarray offer: an object that numpy can read."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def object_array(rows):
    column = np.empty(len(rows), object)
    column[:] = list(rows)
    return column


def on_disk(tmp_path):
    stored = np.memmap(tmp_path / "vectors", X.dtype, "w+", shape=X.shape)
    stored[:] = X
    return stored


KINDS = {
    "float64": lambda tmp_path: X.astype("f8"),
    "memory map": on_disk,
    "masked array without a mask": lambda tmp_path: np.ma.array(X),
    "np.matrix": lambda tmp_path: np.asmatrix(X),
    "objects that are numbers": lambda tmp_path: X.astype(object),
    "object array of arrays": lambda tmp_path: object_array(X),
    "object array of lists": lambda tmp_path: object_array(X.tolist()),
    "anything with __array__": lambda tmp_path: Array(X),
    "nested lists": lambda tmp_path: X.tolist(),
    "list of arrays": lambda tmp_path: list(X),
    "tuple of tuples": lambda tmp_path: tuple(map(tuple, X.tolist())),
    "list of tensors": lambda tmp_path: list(torch.tensor(X)),
    "list of tensors with gradients": lambda tmp_path: [torch.tensor(row, requires_grad=True) for row in X],
    "list of Series": lambda tmp_path: [pd.Series(row) for row in X],
    "tensor": lambda tmp_path: torch.tensor(X),
    "tensor with gradients": lambda tmp_path: torch.tensor(X, requires_grad=True) * 1,
    "parameter": lambda tmp_path: torch.nn.Parameter(torch.tensor(X)),
    "transposed tensor": lambda tmp_path: torch.tensor(X.T.copy()).T,
    "pandas frame": lambda tmp_path: pd.DataFrame(X),
    "pandas frame of types with missing values": lambda tmp_path: pd.DataFrame(X).astype("Float32"),
    "pandas frame of arrow types": lambda tmp_path: pd.DataFrame(X).astype("float[pyarrow]"),
    "pandas Series of lists": lambda tmp_path: pd.Series(X.tolist()),
    "pandas Series of arrays": lambda tmp_path: pd.Series(list(X), index=np.arange(N)[::-1]),
    "pandas Series of arrow lists": lambda tmp_path: pd.Series(X.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float32()))),
    "pandas frame of one column of lists": lambda tmp_path: pd.DataFrame({"vector": X.tolist()}),
    "polars frame": lambda tmp_path: pl.DataFrame(X),
    "polars lists": lambda tmp_path: pl.Series("vector", X.tolist(), dtype=pl.List(pl.Float32)),
    "polars arrays": lambda tmp_path: pl.Series("vector", X),
    "polars frame of one column of lists": lambda tmp_path: pl.DataFrame({"vector": X.tolist()}),
    "polars frame of one column of arrays": lambda tmp_path: pl.DataFrame({"vector": X}),
    "arrow lists": lambda tmp_path: pa.array(X.tolist(), pa.list_(pa.float32())),
    "arrow lists in chunks": lambda tmp_path: pa.chunked_array([pa.array(X.tolist())]),
    "arrow table of one column": lambda tmp_path: pa.table({"vector": X.tolist()}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_alike(kind, tmp_path):
    found = as_embeddings(KINDS[kind](tmp_path), Y)
    np.testing.assert_array_equal(found.vectors, Embeddings.from_vectors(X).vectors)
    np.testing.assert_array_equal(found.labels, Y)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn])
def test_tensors_of_little_precision_are_read_as_they_are(dtype):
    given = torch.tensor(X).to(dtype).requires_grad_(dtype != torch.float8_e4m3fn)
    np.testing.assert_array_equal(as_matrix(given), given.detach().float().numpy())


def test_a_tensor_of_another_device_is_brought_here(monkeypatch):
    given, moved = torch.tensor(X, requires_grad=True), []
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: moved.append(tensor) or tensor)
    np.testing.assert_array_equal(as_matrix(given), X)
    assert len(moved) == 1 and not moved[0].requires_grad


def test_an_array_is_not_copied():
    assert np.shares_memory(as_matrix(X), X)
    assert np.shares_memory(as_matrix(torch.tensor(X).requires_grad_()), X) is False
    tensor = torch.tensor(X)
    assert np.shares_memory(as_matrix(tensor), tensor.numpy())


# ---- every call takes every kind -------------------------------------------------------------------------------------

CALLS = {
    "search": lambda X, y: entourage.search(X, k=3).rows,
    "search in a gallery": lambda X, y: entourage.search(X, X, k=3).rows,
    "evaluate": lambda X, y: entourage.evaluate(X, y, nmi=False).per_query["map@r"],
    "evaluate in a gallery": lambda X, y: entourage.evaluate(X, y, gallery=X, gallery_labels=y, nmi=False).per_query[
        "map@r"
    ],
    "doctor": lambda X, y: list(entourage.doctor(X, y).metrics.values()),
    "compare": lambda X, y: entourage.compare(X, y, ["alpha-qe-8-3"]).result("alpha-qe-8-3").per_query["map@r"],
    "ContextRefiner": lambda X, y: as_matrix(ContextRefiner(3).fit_transform(X)),
    "serve": lambda X, y: as_matrix(ContextRefiner(3).fit(X).serve(X).refined_gallery),
    "a baseline": lambda X, y: as_matrix(QueryExpansion(3).fit_transform(X)),
}
LABELS = {
    "pandas Series": pd.Series,
    "pandas categories": lambda y: pd.Categorical(y),
    "pandas with missing values": lambda y: pd.Series(y, dtype="Int64"),
    "polars Series": pl.Series,
    "tensor": torch.tensor,
    "frame of one column": lambda y: pd.DataFrame({"label": y}),
    "objects": lambda y: y.astype(object),
    "floats": lambda y: y.astype(float),
    "iterator": iter,
    "arrow": pa.array,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "kind", ["pandas Series of lists", "polars frame of one column of arrays", "tensor with gradients", "np.matrix"]
)
def test_every_call_takes_every_kind(call, kind, tmp_path):
    given = KINDS[kind](tmp_path)
    np.testing.assert_allclose(CALLS[call](given, pd.Series(Y)), CALLS[call](X, Y), atol=1e-6)


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_are_read_alike(kind):
    found = as_embeddings(X, LABELS[kind](Y)).labels
    assert found.dtype.kind in "iu" and found.tolist() == Y.tolist()


@pytest.mark.parametrize("kind", ["pandas Series", "pandas categories", "polars Series", "objects", "arrow"])
def test_texts_of_every_kind_are_read_alike(kind):
    names = np.array(["ant", "bee", "cat", "dog", "elk"])[Y]
    assert as_embeddings(X, LABELS[kind](names)).labels.tolist() == names.tolist()


MISSING = {
    "None": lambda y: [None, *y[1:]],
    "NaN": lambda y: np.where(np.arange(N) == 0, np.nan, y),
    "NaN among texts": lambda y: pd.Series(y).astype(str).where(np.arange(N) > 0).to_numpy(),
    "NA": lambda y: pd.Series(y, dtype="Int64").where(np.arange(N) > 0),
    "NA of categories": lambda y: pd.Categorical([None, *y[1:]]),
    "NaT": lambda y: pd.Series(pd.to_datetime(["2020-01-01"] * N)).where(np.arange(N) > 0).astype(object),
    "null": lambda y: pl.Series([None, *y[1:].tolist()]),
    "null among texts": lambda y: pl.Series([None, *map(str, y[1:])]),
    "masked": lambda y: np.ma.array(y, mask=np.arange(N) == 0),
}


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("call", [entourage.evaluate, entourage.doctor, entourage.compare, ContextRefiner().fit])
def test_missing_labels_are_named_by_their_row(kind, call):
    with pytest.raises(InputError, match=r"the labels contain missing values \(1 in all, the first in row 0\)"):
        call(X, MISSING[kind](Y))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (Y[:, None], r"labels of shape \(40, 1\) for 40 vectors; .*: flatten them by ravel\(\)"),
        (Y[:-1], "39 labels for 40 vectors"),
        (Y + 0.5, "not whole numbers"),
        (Y.astype("M8[D]"), "of type datetime64"),
        ("label", r"labels of shape \(\)"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        entourage.evaluate(X, labels)


@pytest.mark.parametrize("call", [entourage.evaluate, entourage.compare])
def test_without_labels_what_needs_them_says_so(call):
    with pytest.raises(InputError, match=r"labels; wanted one per vector|wanted one per vector: compare\(X, y\)"):
        call(X)


def test_embeddings_carry_their_own_labels_and_ids():
    items = Embeddings.from_vectors(X, ids=np.arange(N) + 7, labels=Y)
    assert entourage.evaluate(items, nmi=False).metrics == entourage.evaluate(X, Y, nmi=False).metrics
    assert "map@r" in entourage.doctor(items).metrics
    assert entourage.compare(items, methods=["raw"]).ids.min() >= 7
    with_ids = entourage.evaluate(items, gallery=items.take(Y >= 0), nmi=False)
    assert with_ids.protocol["self_matches_removed_by_id"] == N


# ---- what is no table of numbers -----------------------------------------------------------------------------------

ODD = X.tolist()
ODD[3] = ODD[3][:4]
REFUSED = {
    "nothing": (None, "not None: give the vectors"),
    "a number": (3.0, r"not of shape \(\). Reshape your data: give one row of numbers per item"),
    "one vector": (
        X[0],
        r"not of shape \(6,\). Reshape your data: a single vector is a table of one row after reshape\(1, -1\)",
    ),
    "one vector as a tensor": (torch.tensor(X[0]), r"not of shape \(6,\). Reshape your data: a single vector"),
    "a Series of numbers": (pd.Series(X[0]), r"not of shape \(6,\). Reshape your data: a single vector"),
    "pictures": (
        np.ones((4, 8, 8)),
        r"not of shape \(4, 8, 8\). Reshape your data: make each item one row by reshape\(len\(items\), -1\)",
    ),
    "a path": ("vectors.npy", r"not the text 'vectors.npy': read a file first, as with numpy.load"),
    "texts": (["a cat", "a dog"], "not text such as 'a cat': turn it into vectors first"),
    "a table of texts": (np.array([["a", "b"]]), "not text such as 'a'"),
    "a Series of texts": (pd.Series(["a cat", "a dog"]), "a cat"),
    "bytes": (np.array([[b"a"]]), "not text such as"),
    "times": (np.zeros((2, 2), "M8[s]"), r"not values of type datetime64\[s\]: convert them"),
    "truth values": (X > 0, "not values of type bool: convert them to numbers"),
    "complex numbers": (X + 1j, "Complex data not supported: .* real numbers"),
    "objects": (np.array([[{}, 1.0]]), "not one of mixed values .*dict.*: convert every value to a number"),
    "a word among numbers": (np.array([[1.0, "far"]], object), "mixed values .*'far'"),
    "a generator": ((row for row in X), "not a generator, which has no rows to count: make a list of it"),
    "a map": (map(list, X), "not a map, which has no rows to count: make a list of it"),
    "a set": ({1.0, 2.0}, "not a set, which has no rows to count"),
    "a dict": ({"a": [1.0]}, r"not a dict: give its values\(\) as a list, and its keys as ids"),
    "a sparse matrix": (sparse.csr_matrix(X), r"not a sparse matrix: call its toarray\(\)"),
    "a sparse array": (sparse.coo_array(X), r"not a sparse matrix: call its toarray\(\)"),
    "a sparse tensor": (torch.tensor(X).to_sparse(), r"not a sparse tensor: call its to_dense\(\)"),
    "a tensor without values": (torch.empty(3, 2, device="meta"), "not a tensor that numpy cannot read"),
    "masked values": (np.ma.array(X, mask=X > 2), r"not one with \d+ masked values: fill them, or drop their rows"),
    "rows of several sizes": (
        ODD,
        "not one whose row 3 has 4 values and row 0 6: give every item a vector of the same",
    ),
    "a column of several sizes": (pd.Series(ODD), "row 3 has 4 values and row 0 6"),
    "a polars column of several sizes": (pl.Series(ODD), "row 3 has 4 values and row 0 6"),
    "a missing row": (pd.Series([None, *X.tolist()]), r"row 0 is missing \(1 in all\): drop those rows"),
    "a row that is NaN": (pd.Series([float("nan"), *X.tolist()]), r"row 0 is missing \(1 in all\): drop those rows"),
    "a row that is NA": (pd.Series([*X.tolist(), pd.NA]), r"row 40 is missing \(1 in all\)"),
    "a list with a row that is NaN": ([X[0], float("nan")], r"row 1 is missing \(1 in all\)"),
    "a frame with NaN before its vectors": (pd.DataFrame({"v": [np.nan, *X.tolist()]}), "row 0 is missing"),
    "a list of numbers": ([float("nan"), 1.0], r"not of shape \(2,\)"),
    "a frame with NaN before its text": (
        pd.DataFrame(X).assign(name=[np.nan, *["bird"] * (N - 1)]),
        "not a DataFrame whose column 'name' holds text such as 'bird'",
    ),
    "a missing row of polars": (pl.Series([*X.tolist(), None]), r"row 40 is missing \(1 in all\)"),
    "a frame with a column of text": (
        pd.DataFrame(X).assign(name="bird"),
        "not a DataFrame whose column 'name' holds text such as 'bird': pass the columns of numbers alone",
    ),
    "a polars frame with a column of text": (
        pl.DataFrame(X).with_columns(name=pl.lit("bird")),
        "column 'name' holds text such as 'bird'",
    ),
    "a frame with more than the vectors": (
        pd.DataFrame({"sku": range(N), "vector": X.tolist()}),
        r"not a DataFrame whose column 'vector' holds the vectors: pass that column alone, \['vector'\]",
    ),
    "a polars frame with more than the vectors": (
        pl.DataFrame({"sku": range(N), "vector": X.tolist()}),
        r"pass that column alone, \['vector'\]",
    ),
    "a lazy frame": (pl.DataFrame(X).lazy(), r"not a LazyFrame: call its collect\(\) first"),
    "a function": (len, "not a builtin_function_or_method: give an array, a DataFrame, a tensor or Embeddings"),
    "NaN": (np.where(X[2, 1] == X, np.nan, X), r"row 2 of the vectors contains NaN"),
    "no rows": (X[:0], "one row|0 sample"),
    "no columns": (X[:, :0], "shape"),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize(
    "call",
    [entourage.search, entourage.doctor, ContextRefiner().fit, QueryExpansion().fit],
    ids=["search", "doctor", "refiner", "baseline"],
)
def test_what_is_no_table_of_numbers_is_refused_in_one_sentence(kind, call):
    given, message = REFUSED[kind]
    with pytest.raises((InputError, TypeError), match=message) as refused:
        call(given)
    said = str(refused.value)
    assert isinstance(refused.value, InputError)
    assert "\n" not in said and len(said) < 300 and not re.search(r"sklearn|Expected 2D", said)


def test_the_message_names_which_of_two_is_meant():
    with pytest.raises(InputError, match=r"^the gallery must be a table of numbers"):
        entourage.search(X, X[0])
    with pytest.raises(InputError, match=r"^the gallery must be a table of numbers"):
        entourage.evaluate(X, Y, gallery=X[0], gallery_labels=Y[:1])
    with pytest.raises(InputError, match=r"^the context must be a table of numbers"):
        ContextRefiner().fit(X).transform(X, context=X[0])
