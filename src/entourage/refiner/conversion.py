"""Tables of vectors of any kind: what an estimator is given as Embeddings, and its result in the same kind.

No library is imported for a table that is not its own: a table says by its type which one made it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._set_output import _auto_wrap_is_configured, _get_output_config
from sklearn.utils.validation import check_array, validate_data

from entourage.errors import InputError, ModelError, NotFittedError
from entourage.values import Embeddings

__all__ = ["SameKindTransformer", "Table", "as_table"]

_LIBRARIES = ("pandas", "polars", "torch")


@dataclass(frozen=True, eq=False)
class Table:
    """Vectors as they were given, and as the array to work with."""

    given: Any
    """Embeddings, ndarray, nested lists, DataFrame of pandas or polars, or tensor of torch."""
    array: np.ndarray
    """(N, d), numbers."""

    def embeddings(self, labels: Any = None) -> Embeddings:
        """The vectors scaled to length 1; Embeddings as they are, unless there are new labels (N,)."""
        labels = None if labels is None else _without_torch(labels)
        if not isinstance(self.given, Embeddings):
            return Embeddings.from_vectors(self.array, labels=labels)
        return self.given if labels is None else replace(self.given, labels=labels)

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
        Embeddings, ndarray, DataFrame or tensor of shape (N, m)
            float32 where whole numbers or lists were given. A DataFrame keeps its index and, if m = d, its columns.
        """
        given, library = self.given, _library(self.given)
        if isinstance(given, Embeddings):
            return given.replace_vectors(vectors)
        vectors = self.same_precision(vectors)
        if library == "torch":
            return _tensor_like(given, vectors)
        if library in ("pandas", "polars"):
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
    array = X.vectors if isinstance(X, Embeddings) else _without_torch(X)
    try:
        if reset or not isinstance(X, Embeddings):  # Embeddings name no columns: nothing to compare
            validate_data(estimator, array, reset=reset, skip_check_array=True, ensure_2d=False)
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
        """Vectors (N, m) in the kind of the table; see Table.same_kind."""
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


def _library(table: Any) -> str:
    """The package that defines the type of a table: "torch" for any kind of tensor."""
    return next((name for kind in type(table).__mro__ if (name := kind.__module__.split(".")[0]) in _LIBRARIES), "")


def _without_torch(values: Any) -> Any:
    """A tensor as an array in the processor's memory, in the least precision that numpy has for it."""
    if _library(values) != "torch":
        return values
    tensor = values.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def _tensor_like(given: Any, vectors: np.ndarray) -> Any:
    """A tensor on the same device, of the same type if that is floating; it takes no part in gradients."""
    import torch

    dtype = given.dtype if given.dtype.is_floating_point else torch.float32
    return torch.from_numpy(vectors).to(device=given.device, dtype=dtype)


def _data_frame_like(given: Any, vectors: np.ndarray, columns: Any) -> Any:
    """A DataFrame of the same library with these columns; pandas keeps the index, polars has none."""
    if _library(given) == "polars":
        import polars

        return polars.DataFrame(vectors, schema=list(columns))
    import pandas

    return pandas.DataFrame(vectors, index=given.index, columns=columns)
