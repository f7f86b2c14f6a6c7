"""Tables of vectors of any kind: what an estimator is given as Embeddings, and its result in the same kind.

What may go in is decided in values/conversion.py, for estimators and functions alike.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._set_output import _auto_wrap_is_configured, _get_output_config
from sklearn.utils.validation import check_array, validate_data

from entourage.errors import InputError, ModelError, NotFittedError
from entourage.values import Embeddings, as_embeddings, as_matrix, holds_lists, library, without_direction

__all__ = ["SameKindTransformer", "Table", "as_table"]


@dataclass(frozen=True, eq=False)
class Table:
    """Vectors as they were given, and as the array to work with."""

    given: Any
    """Embeddings, ndarray, nested lists, DataFrame or column of lists of pandas or polars, or tensor of torch."""
    array: np.ndarray
    """(N, d), numbers."""

    def embeddings(self, labels: Any = None) -> Embeddings:
        """The vectors scaled to length 1; Embeddings as they are, unless there are new labels (N,)."""
        return as_embeddings(self.given if isinstance(self.given, Embeddings) else self.array, labels)

    def same_kind(self, vectors: np.ndarray, prefix: str) -> Any:
        """Other vectors of the same items in the kind, the precision and on the device of what was given.

        Parameters
        ----------
        vectors : ndarray of shape (N, m)
            float32.
        prefix : str
            Columns of a DataFrame are called by it and their number if m is not d.

        Returns
        -------
        Embeddings, ndarray, DataFrame, column of lists or tensor of shape (N, m)
            float32 where whole numbers or lists were given. A DataFrame keeps its index and, if m = d, its columns; a
            column of lists its index and its name.
        """
        given, kind = self.given, library(self.given)
        if isinstance(given, Embeddings):
            return given.replace_vectors(vectors)
        vectors = self.same_precision(vectors)
        if kind == "torch":
            return _tensor_like(given, vectors)
        if holds_lists(given):
            return _lists_like(given, vectors)
        if kind in ("pandas", "polars"):
            same_size = vectors.shape[1] == self.array.shape[1]
            numbered = [f"{prefix}{number}" for number in range(vectors.shape[1])]
            return _data_frame_like(given, vectors, given.columns if same_size else numbered)
        return vectors

    def same_precision(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (N, m) in the floating type of what was given, in memory of their own."""
        is_float = self.array.dtype.kind == "f" and not isinstance(self.given, list | tuple)
        vectors = vectors.astype(self.array.dtype if is_float else np.float32, copy=False)
        return vectors if vectors.flags.writeable else vectors.copy()


def as_table(estimator: Any, X: Any, *, name: str = "X", reset: bool = False, least: tuple[int, int] = (1, 1)) -> Table:
    """Check a table for an estimator as scikit-learn does: its shape, its type, the number and names of its columns.

    Parameters
    ----------
    estimator : estimator
        Keeps n_features_in_ and, for a DataFrame, feature_names_in_.
    X : Embeddings or array-like of shape (N, d)
    name : str
        What messages call it.
    reset : bool
        Whether the estimator takes these columns for its own, as in fit, or compares with those it has.
    least : tuple of int
        How many rows and columns there must be.

    Returns
    -------
    Table
    """
    array = as_matrix(X, name)
    names_columns = library(X) in ("pandas", "polars") and not holds_lists(X)
    try:
        if reset or not isinstance(X, Embeddings):  # Embeddings name no columns: nothing to compare
            named = X if names_columns else array
            validate_data(estimator, named, reset=reset, skip_check_array=True, ensure_2d=False)
        # Whether the values are finite is asked of Embeddings, which name the row.
        sizes = {"ensure_min_samples": least[0], "ensure_min_features": least[1]}
        array = check_array(array, ensure_all_finite=False, estimator=estimator, input_name=name, **sizes)
    except ValueError as error:
        raise InputError(str(error).strip()) from error
    if reset:
        estimator.n_features_in_ = array.shape[1]
    elif array.shape[1] != getattr(estimator, "n_features_in_", array.shape[1]):
        raise ModelError(_other_size(estimator, X, name, array.shape[1]))
    return Table(X, array)


class SameKindTransformer(OneToOneFeatureMixin, TransformerMixin):
    """A transformer of scikit-learn that returns the kind it is given, or the DataFrame that set_output asks for."""

    n_features_in_: int

    def __init_subclass__(cls, auto_wrap_output_keys: tuple[str, ...] | None = ("transform",), **options: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=auto_wrap_output_keys, **options)

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the input columns, if the transformer was not fitted on a DataFrame.

        Returns
        -------
        ndarray of str
            The same names where the size is the same, otherwise the name of the class with numbers.
        """
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(X, y) first")
        mixin = OneToOneFeatureMixin if self._n_features_out == self.n_features_in_ else ClassNamePrefixFeaturesOutMixin
        return mixin.get_feature_names_out(self, input_features)

    def _same_kind(self, table: Table, vectors: np.ndarray) -> Any:
        """Vectors (N, m) in the kind of the table; see Table.same_kind. What cannot be compared is never returned."""
        unusable = without_direction(vectors)
        if unusable:
            raise ModelError(
                f"{unusable} after this {type(self).__name__} was applied; it is damaged, or was fitted on vectors of "
                "another kind: fit it again"
            )
        asked_for = _get_output_config("transform", self)["dense"]
        if asked_for != "default" and _auto_wrap_is_configured(self):  # scikit-learn makes the DataFrame of it
            return table.same_precision(vectors)
        return table.same_kind(vectors, type(self).__name__.lower())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "float16"]
        return tags


def _other_size(estimator: Any, X: Any, name: str, size: int) -> str:
    """That the vectors are not those the estimator was fitted on: of a plain table in the words of scikit-learn."""
    kind, fitted = type(estimator).__name__, estimator.n_features_in_
    if isinstance(X, Embeddings):
        subject = "the vectors have" if name == "X" else f"{name} has"
        message = f"{subject} {size} dimensions, but this {kind} was fitted on {fitted}"
    else:
        message = f"{name} has {size} features, but {kind} is expecting {fitted} features as input"
    return f"{message}; use vectors of the encoder it was fitted on, or fit it on these"


def _tensor_like(given: Any, vectors: np.ndarray) -> Any:
    """A tensor on the same device, of the same type if that is floating; it takes no part in gradients."""
    like = given.detach()
    return (like if like.dtype.is_floating_point else like.float()).new_tensor(vectors)


def _data_frame_like(given: Any, vectors: np.ndarray, columns: Any) -> Any:
    """A DataFrame of the same library with these columns; pandas keeps the index, polars has none."""
    if library(given) == "polars":
        import polars

        return polars.DataFrame(vectors, schema=list(columns))
    import pandas

    return pandas.DataFrame(vectors, index=given.index, columns=columns)


def _lists_like(given: Any, vectors: np.ndarray) -> Any:
    """A column of lists, or a DataFrame of one; pandas keeps the index, polars the kind of list."""
    if hasattr(given, "columns"):
        (name,) = given.columns
        column = _lists_like(given.iloc[:, 0] if library(given) == "pandas" else given[name], vectors)
        return column.to_frame()
    if library(given) == "polars":
        import polars

        fixed = polars.Series(given.name, vectors)  # an Array of the size of the vectors
        return fixed if type(given.dtype).__name__ == "Array" else fixed.arr.to_list()
    import pandas

    rows = vectors.tolist() if isinstance(given.iloc[0], list) else list(vectors)
    return pandas.Series(rows, index=given.index, name=given.name, dtype=given.dtype)
