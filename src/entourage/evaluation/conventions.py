"""Whose definitions a score follows: those of the papers, of pytorch-metric-learning or of Open Metric Learning.

The same ranking has other figures in other tools, under the same names. A convention says which metrics are reported,
as that tool names and defines them, and how queries without a match count.

N queries, R matches of a query.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from entourage.errors import InputError
from entourage.evaluation.hits import Hits
from entourage.evaluation.names import measured, usual_names
from entourage.runtime.config import check_known
from entourage.values import IntArray

__all__ = ["CONVENTIONS", "PAPERS", "Convention", "Measure", "convention_of"]

Measure = Callable[[Hits, IntArray], NDArray[np.float64]]
"""Of the hits of N queries and R of each (N,), a score of each query (N,)."""

PAPERS = "papers"
_OML_AT = (1, 5)


@dataclass(frozen=True)
class Convention:
    """What one tool reports of a ranking."""

    name: str
    """What options and protocols call it."""
    no_match: str
    """Whether queries without a match count as 0 ("zero") or are left out ("drop")."""
    clustering: tuple[str, ...]
    """What its scores of a clustering are called: NMI and, where it has it, AMI."""

    def measures(
        self,
        cutoffs: tuple[int, ...] | None = None,
        recalls: tuple[int, ...] | None = None,
        *,
        exclusions: bool = False,
    ) -> dict[str, Measure]:
        """The metrics of each query that are reported, by name.

        Parameters
        ----------
        cutoffs : tuple of int, optional
            At which k to measure; by default those that are usual.
        recalls : tuple of int, optional
            At which k to measure recall@k alone, as the papers have it.
        exclusions : bool
            Whether cameras or sequences are known, for which the papers report more.

        Returns
        -------
        dict of callable
        """
        if recalls is not None and self.name != PAPERS:
            raise InputError(
                f"recall_at is {', '.join(map(str, recalls))}, which the convention {self.name} does not have; leave "
                "it out, or choose the convention papers"
            )
        if self.name == "oml":
            return _of_oml(_OML_AT if cutoffs is None else cutoffs)
        if self.name == "pml":
            if cutoffs is not None:
                raise InputError(
                    f"at is {', '.join(map(str, cutoffs))}, but pytorch-metric-learning has no metrics at k but "
                    "precision_at_1; leave it out, or choose another convention"
                )
            return {name: partial(measured, ours) for name, ours in _PML.items()}
        return {name: partial(measured, name) for name in usual_names(cutoffs, recalls=recalls, exclusions=exclusions)}


CONVENTIONS = {
    PAPERS: Convention(PAPERS, "zero", ("nmi",)),
    "pml": Convention("pml", "drop", ("NMI", "AMI")),
    "oml": Convention("oml", "zero", ()),
}
"""By name: the papers' (and ours), pytorch-metric-learning's AccuracyCalculator, Open Metric Learning's metrics."""

# What AccuracyCalculator reports with k=None, where the whole ranking counts, by our name for the same.
_PML = {
    "precision_at_1": "recall@1",
    "r_precision": "r-precision",
    "mean_average_precision_at_r": "map@r",
    "mean_average_precision": "map",
    "mean_reciprocal_rank": "mrr",
}


def convention_of(name: str, no_match: str | None = None) -> tuple[Convention, str]:
    """A convention by name, and how queries without a match count.

    Parameters
    ----------
    name : {"papers", "pml", "oml"}
    no_match : {"zero", "drop"}, optional
        How they should; of other tools only what they do is possible.

    Returns
    -------
    convention : Convention
    no_match : str
    """
    check_known(name, CONVENTIONS, "the convention")
    convention = CONVENTIONS[name]
    if no_match is None:
        return convention, convention.no_match
    if name != PAPERS and no_match != convention.no_match:
        raise InputError(
            f"no_match is {no_match}, but the convention {name} has {convention.no_match}; leave it out, or choose the "
            "convention papers"
        )
    return convention, no_match


def _of_oml(cutoffs: tuple[int, ...]) -> dict[str, Measure]:
    kinds = {"cmc": _found_at, "precision": _precision_at, "map": _average_precision_at}
    return {f"{name}@{k}": partial(measure, k=k) for name, measure in kinds.items() for k in cutoffs}


def _found_at(hits: Hits, matches: IntArray, k: int) -> NDArray[np.float64]:
    """cmc@k: 1 if one of the first k items matches; our recall@k."""
    return measured(f"recall@{k}", hits, matches)


def _precision_at(hits: Hits, matches: IntArray, k: int) -> NDArray[np.float64]:
    """precision@k divided by min(k, R), so that a perfect ranking always has 1."""
    return hits.counted(hits.rank < k) / np.clip(matches, 1, k)


def _average_precision_at(hits: Hits, matches: IntArray, k: int) -> NDArray[np.float64]:
    """map@k divided by how many of the first k items match, not by how many could: what is not found costs nothing."""
    within = hits.rank < k
    return hits.counted(within, hits.precision) / np.maximum(hits.counted(within), 1)
