"""Open Metric Learning: its tables written as it checks them, and re-ranking as one of its retrieval post-processors.

Its tables are read wherever pictures are (`entourage train table.csv`). Nothing here imports the library: a
post-processor is whatever has `process`, and results are made of the class that came. N queries, M gallery items.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from entourage.errors import InputError
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.rerank import Reranker
from entourage.stores import StrPath, whole_file
from entourage.values import BoolArray, LabelArray, as_embeddings, checked_column, label_codes

__all__ = ["ContextPostprocessor", "write_table"]

_SPLITS = ("train", "validation")


class ContextPostprocessor:
    """Re-ranks RetrievalResults by the graph among each query and what was retrieved for it.

    Parameters
    ----------
    query_embeddings : array or tensor of shape (N, d)
        Raw vectors of the queries, in the order of the results.
    gallery_embeddings : array or tensor of shape (M, d)
        Raw vectors of the gallery, which `retrieved_ids` number.
    refiner : ContextRefiner, optional
        A fitted refiner; default: the universal scorer.
    top_n : int
        How many of each list to re-rank; the others stay behind them as they are.
    """

    def __init__(
        self,
        query_embeddings: Any,
        gallery_embeddings: Any,
        *,
        refiner: ContextRefiner | None = None,
        top_n: int = 100,
    ) -> None:
        self._queries = as_embeddings(query_embeddings, name="the queries").vectors
        self._gallery = as_embeddings(gallery_embeddings, name="the gallery").vectors
        self.top_n = top_n
        self._reranker = Reranker(refiner)

    def process(self, rr: Any) -> Any:
        """Order results anew.

        Parameters
        ----------
        rr : RetrievalResults of Open Metric Learning
            A list for each of the N queries.

        Returns
        -------
        RetrievalResults
            The same items in the new order. Distances are 1 - score, and go on from there for what was not re-ranked.
        """
        if len(rr.retrieved_ids) != len(self._queries):
            raise InputError(
                f"there are {len(rr.retrieved_ids)} lists for {len(self._queries)} queries; wanted a list for each"
            )
        ids, distances = [], []
        for query, retrieved, given in zip(self._queries, rr.retrieved_ids, rr.distances, strict=True):
            first = retrieved[: self.top_n]
            done = self._reranker.rerank(query, self._gallery[first.numpy(force=True)])
            new = given.new_tensor(1 - done.scores)
            rest = given[len(first) :]
            if len(rest) and len(new):
                rest = rest - rest[0] + new[-1]
            ids.append(first[retrieved.new_tensor(done.rows)].tolist() + retrieved[len(first) :].tolist())
            distances.append(given.new_tensor([*new.tolist(), *rest.tolist()]))
        as_tensors = [rr.retrieved_ids[0].new_tensor(each) for each in ids]
        return type(rr)(distances=distances, retrieved_ids=as_tensors, gt_ids=rr.gt_ids)


def write_table(
    path: StrPath,
    paths: Sequence[StrPath],
    labels: Any,
    splits: Any,
    *,
    is_query: Any = None,
    is_gallery: Any = None,
    sequences: Any = None,
    overwrite: bool = False,
) -> None:
    """Write a table of images that Open Metric Learning reads, and refuse what it would.

    Parameters
    ----------
    path : str or path-like
        The .csv file.
    paths : sequence of paths
        The pictures.
    labels : array-like
        A class for each; texts are numbered, and written beside the numbers as `label_name`.
    splits : array-like
        "train" or "validation" for each.
    is_query, is_gallery : array-like of bool, optional
        The role of each in validation; by default both, so that each is searched among the others.
    sequences : array-like, optional
        Which pictures belong together: none of them finds another of its own.
    overwrite : bool
        Whether a file that is there is replaced.
    """
    count = len(paths)
    known = checked_column(labels, "labels", count, "picture")
    split = checked_column(splits, "splits", count, "picture").astype(str)
    wrong = np.flatnonzero(~np.isin(split, _SPLITS))
    if len(wrong):
        raise InputError(f"the split of {paths[wrong[0]]} is {str(split[wrong[0]])!r}; wanted train or validation")
    tested = split == "validation"
    query, gallery = (_role(flags, count, tested) for flags in (is_query, is_gallery))
    _check_roles(paths, known, tested, query, gallery)
    codes = known if known.dtype.kind in "iu" else label_codes(known)
    columns: dict[str, Sequence[Any]] = {"path": [Path(each).as_posix() for each in paths], "label": codes.tolist()}
    columns |= {"split": split.tolist(), "is_query": _flags(query, tested), "is_gallery": _flags(gallery, tested)}
    if known.dtype.kind not in "iu":
        columns["label_name"] = known.tolist()
    if sequences is not None:
        columns["sequence"] = checked_column(sequences, "sequences", count, "picture").tolist()
    with whole_file(path, overwrite=overwrite) as new, new.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _role(flags: Any, count: int, tested: BoolArray) -> BoolArray:
    if flags is None:
        return tested
    given = np.asarray(flags)
    if given.shape != (count,) or given.dtype != bool:
        raise InputError(f"the roles are {given.dtype} of shape {given.shape}; wanted True or False for each picture")
    return given & tested


def _check_roles(
    paths: Sequence[StrPath], labels: LabelArray, tested: BoolArray, query: BoolArray, gallery: BoolArray
) -> None:
    neither = np.flatnonzero(tested & ~query & ~gallery)
    if len(neither):
        raise InputError(f"{paths[neither[0]]} is neither query nor gallery; wanted one of them in validation")
    missing = np.setdiff1d(labels[query], labels[gallery])
    if len(missing):
        raise InputError(f"the class {missing[0]} of some queries is not in the gallery; wanted one of it there")


def _flags(role: BoolArray, tested: BoolArray) -> list[str]:
    """As the format has it: True or False in validation, empty in train."""
    return [str(bool(flag)) if test else "" for flag, test in zip(role, tested, strict=True)]
