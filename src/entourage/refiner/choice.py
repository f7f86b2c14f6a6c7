"""What the rehearsals decide: candidates with their scores, which of them is best, and what is reported of it.

The highest MAP@R + R@1 / 2 wins among candidates that lower nothing that is guarded: R@1 always, and what a user
protects.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from entourage.errors import InputError
from entourage.evaluation.names import cutoff_of
from entourage.refiner.base_map import NO_MAP
from entourage.refiner.rehearsal import CLASSES_TO_LEARN_FROM, FOLDS, Rehearsal, ValidationGallery, score
from entourage.refiner.settings import LOSS_ALLOWED, RefinerSettings
from entourage.values import IntArray

__all__ = [
    "BaseMap",
    "Chosen",
    "Scored",
    "Weighing",
    "best_of",
    "check_enough_to_protect",
    "check_reach",
    "floors_of",
    "report_on",
    "scored",
]

_SPARSE_SLACK = 0.01

Candidate = TypeVar("Candidate")
BaseMap = tuple[float, int]
"""Shrinkage of the whitening and steps of the head; see base_map.py."""


class Weighing(NamedTuple):
    """How neighbours are weighed."""

    n_neighbors: int
    """k, how many neighbours to attend to."""
    scorer: str
    """"universal", "adapted" or "similarity"."""
    sharpness: float
    """s, the power to which their trust is raised."""
    blend: float
    """b, the share of the item itself; 1 leaves it as it is."""
    pull: float = 0.0
    """c, how strongly items are pulled to their closest neighbours."""
    n_steps: int = RefinerSettings.n_steps
    """T, the number of steps."""


@dataclass(frozen=True, eq=False)
class Scored(Generic[Candidate]):
    """A candidate and its scores, averaged over the rehearsals."""

    settings: Candidate
    """What was tried."""
    scores: Mapping[str, float]
    """"recall@1", "map@r" and what is protected."""

    @property
    def map_at_r(self) -> float:
        return self.scores["map@r"]

    def no_worse_than(self, other: "Scored[Any]") -> bool:
        """Whether its MAP@R is at most a point below that of the other."""
        return self.map_at_r >= other.map_at_r - _SPARSE_SLACK

    @property
    def worth(self) -> float:
        """MAP@R and half of R@1: by both, choices carry over to unseen classes better than by MAP@R alone."""
        return self.map_at_r + 0.5 * self.scores["recall@1"]

    def keeps(self, floors: Mapping[str, float], allowed: float = LOSS_ALLOWED) -> bool:
        """Whether no score is below its floor by more than is allowed."""
        return all(self.scores[name] >= floor - allowed for name, floor in floors.items())

    def margin(self, floors: Mapping[str, float]) -> float:
        """How far the score that does worst stands above its floor; negative where it is below."""
        return min(self.scores[name] - floor for name, floor in floors.items())


@dataclass(frozen=True)
class Chosen:
    """What the rehearsals decided."""

    base: BaseMap
    weighing: Weighing
    raw: Scored[Any]
    """The scores of the vectors as they came."""
    best: Scored[Any]
    """The scores of what was chosen."""
    unprotected: Scored[Any]
    """The scores of the best of all that was tried if R@1 alone had been guarded."""


def scored(
    candidate: Candidate, galleries: Iterable[ValidationGallery], settings: RefinerSettings
) -> Scored[Candidate]:
    """Score a candidate by the galleries it makes of the rehearsals."""
    names = dict.fromkeys(["recall@1", "map@r", *settings.protect])
    scores = [score(gallery, list(names)) for gallery in galleries]
    return Scored(candidate, {name: float(np.mean([each[name] for each in scores])) for name in names})


def best_of(candidates: list[Scored[Candidate]], floors: Mapping[str, float]) -> Scored[Candidate]:
    """Choose the candidate of most worth that keeps to the floors; if none does, the one that stays nearest to them."""
    safe = [scored for scored in candidates if scored.keeps(floors)]
    return max(safe, key=lambda s: s.worth) if safe else max(candidates, key=lambda s: s.margin(floors))


def floors_of(settings: RefinerSettings, raw: Scored[Any]) -> dict[str, float]:
    """What must not fall below that of the raw vectors: R@1, and what is protected."""
    return {name: raw.scores[name] for name in (*settings.protect, "recall@1")}


def check_enough_to_protect(protect: tuple[str, ...], n_classes: int) -> None:
    """Refuse to protect anything where there are too few classes to hold some out."""
    if protect:
        raise InputError(
            f"protect is {', '.join(protect)}, but {n_classes} classes with two items or more are too few to rehearse "
            f"with; wanted {CLASSES_TO_LEARN_FROM}: add classes, or leave protect out"
        )


def check_reach(protect: tuple[str, ...], rehearsals: list[Rehearsal]) -> None:
    """Refuse what could not fall, because a query of a rehearsal retrieves every item."""
    fewest = min(len(rehearsal.held_out) for rehearsal in rehearsals) - 1
    for name in protect:
        if (cutoff_of(name) or 0) >= fewest:
            raise InputError(
                f"protect is {name}, but a query has only {fewest} items to retrieve in the rehearsals; "
                f"wanted a k below {fewest}: choose a smaller one, or leave protect out"
            )


# ---- the report ----------------------------------------------------------------------------------------------------


def report_on(settings: RefinerSettings, codes: IntArray, chosen: Chosen) -> dict[str, Any]:
    """What was learned from, what was chosen, and how it did in the rehearsals."""
    protocol = {
        "recipe": "relational",
        "items": len(codes),
        "classes": int(codes.max()) + 1,
        "classes_with_one_item": int((np.bincount(codes) == 1).sum()),
        "context": "exact neighbours among distinct items, ties by id, never the item itself",
        "score": f"rehearsals on training classes in {FOLDS} folds, each mapped by what the others teach",
        **_protected(settings),
        "base_map": "none" if chosen.base == NO_MAP else _described(chosen.base),
        "scorer": chosen.weighing.scorer,
        "neighbors": chosen.weighing.n_neighbors,
        "steps": chosen.weighing.n_steps,
        "sharpness": chosen.weighing.sharpness,
        "blend": chosen.weighing.blend,
        "pull": chosen.weighing.pull,
        "seed": settings.random_state,
    }
    states = {"raw": chosen.raw, "refined": chosen.best}
    if settings.protect:
        states["unprotected"] = chosen.unprotected
    rehearsed = {
        f"rehearsal_{name}_{state}": each.scores[name] for state, each in states.items() for name in each.scores
    }
    return {"protocol": protocol, "metrics": rehearsed, "warnings": _warnings(settings, chosen)}


def _protected(settings: RefinerSettings) -> dict[str, str]:
    if not settings.protect:
        return {}
    rule = f"at most {100 * LOSS_ALLOWED:.1f} points below the raw vectors in the rehearsals"
    return {"protected": f"{', '.join(settings.protect)}: {rule}"}


def _warnings(settings: RefinerSettings, chosen: Chosen) -> list[str]:
    if chosen.weighing.blend != 1.0 or chosen.base != NO_MAP:
        return []
    if chosen.unprotected.map_at_r > chosen.raw.map_at_r and settings.protect:
        fell = f"whatever raised MAP@R in the rehearsals lowered {' or '.join(settings.protect)}"
        return [f"{fell}: the vectors are returned as they are, to protect it"]
    return ["in the rehearsals nothing was better than the raw vectors: they are returned as they are"]


def _described(base: BaseMap) -> str:
    shrinkage, steps = base
    whitening = [f"within-class whitening, shrinkage {shrinkage}"] if shrinkage < 1 else []
    return ", then ".join(whitening + ([f"head, {steps} steps"] if steps else []))
