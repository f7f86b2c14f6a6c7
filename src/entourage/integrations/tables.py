"""Tables with a column of vectors: refined ones as another column, in one line.

DataFrames of pandas and polars, and datasets of Hugging Face. N rows, d dimensions.
"""

from typing import Any

import numpy as np

from entourage.errors import InputError, few
from entourage.refiner.estimator import ContextRefiner

__all__ = ["refine_column"]

_KINDS = {"pandas": "DataFrame", "polars": "DataFrame", "datasets": "Dataset"}


def refine_column(
    table: Any, column: str, into: str | None = None, *, refiner: ContextRefiner | None = None, context: Any = None
) -> Any:
    """Refine a column of vectors into another column of the same table.

    Parameters
    ----------
    table : DataFrame of pandas or polars, or Dataset of Hugging Face
        N rows.
    column : str
        Holds a list or an array of d numbers in each row.
    into : str, optional
        The column for the refined vectors; by default "COLUMN_refined". One that is there is replaced.
    refiner : ContextRefiner, optional
        A fitted refiner. Default: one that is fitted to the column, without labels.
    context : as `ContextRefiner.transform` takes it, optional
        Where to find neighbours; by default among the vectors of the column.

    Returns
    -------
    as table
        A new table; the given one stays as it is. Numbers of a DataFrame are as precise as those of the column, those
        of a Dataset are float32.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sku": list("abcdef"), "vector": np.eye(6).tolist()})
    >>> refine_column(frame, "vector").columns.tolist()
    ['sku', 'vector', 'vector_refined']
    """
    kind = type(table).__module__.partition(".")[0]
    if type(table).__name__ != _KINDS.get(kind):
        raise InputError(
            f"the table is a {type(table).__name__}; wanted a DataFrame of pandas or polars (of a LazyFrame, what "
            "collect() gives), or a Dataset of Hugging Face (of a DatasetDict, one split)"
        )
    names = list(table.column_names if kind == "datasets" else table.columns)
    if column not in names:
        raise InputError(f"the table has {few(names, 'columns')} and no {column!r}; name the column of the vectors")
    into = f"{column}_refined" if into is None else into
    vectors = np.asarray(table.with_format("numpy")[column][:]) if kind == "datasets" else table[column]
    refined = _refined(vectors, refiner, context)
    if kind == "pandas":
        return table.assign(**{into: refined})
    if kind == "polars":
        return table.with_columns(refined.alias(into))
    kept = table.remove_columns(into) if into in names else table
    return kept.add_column(into, list(refined))


def _refined(vectors: Any, refiner: ContextRefiner | None, context: Any) -> Any:
    if refiner is None:
        refiner = ContextRefiner()
        if context is None:
            return refiner.fit_transform(vectors)
        refiner.fit(context)
    return refiner.transform(vectors, context=vectors if context is None else context)
