"""What the JSON files of a run hold, declared field by field, and checked when a run is opened (stores/documents.py).

Fields that are not named here are shown as they are. Fields of a class with total=False may be missing: older versions
did not write them.
"""

from typing import Annotated, Any, TypedDict

from entourage.refiner.settings import MOST_STEPS
from entourage.runtime.declared import COUNT

__all__ = ["RefinementMetrics", "RefinementRecord", "Texts", "TrainingConfig", "TrainingMetrics"]


class _Interval(TypedDict):
    difference: float
    low: float
    high: float


class _RefinementProtocol(TypedDict):
    steps: Annotated[int, range(MOST_STEPS + 1)]


class _Movement(TypedDict, total=False):
    movement: dict[str, float]


class RefinementMetrics(_Movement):
    """metrics.json of a refinement."""

    protocol: _RefinementProtocol
    metrics: dict[str, float]
    metrics_before: dict[str, float]
    intervals: dict[str, _Interval]
    warnings: list[str]


class PicturesFrom(TypedDict):
    """Where pictures are, as `media.PictureSource` has it."""

    source: str
    root: str | None
    split: str
    options: dict[str, Any]


class _Media(TypedDict, total=False):
    pictures: PicturesFrom
    texts: str


class _RefinementNotes(TypedDict, total=False):
    settings: dict[str, Any]
    seed: int | None
    seconds: float | None
    versions: dict[str, str]
    media: _Media | None


class RefinementRecord(_RefinementNotes):
    """run.json of a refinement."""

    kind: str


class Texts(TypedDict):
    """texts.json of a refinement."""

    items: list[str]
    context: list[str] | None


class _DataFrom(TypedDict):
    source: str
    root: str | None
    options: dict[str, Any]


class _TrainingNotes(TypedDict, total=False):
    seed: int
    versions: dict[str, str]


class TrainingConfig(_TrainingNotes):
    """config.json of a training run; its settings are checked as those of the system."""

    system: str
    data: _DataFrom
    settings: dict[str, Any]


class _TrainingProtocol(TypedDict):
    data: str
    trained_on: str
    epoch_kept: str
    queries: COUNT


class TrainingMetrics(TypedDict):
    """metrics.json of a training run."""

    protocol: _TrainingProtocol
    metrics: dict[str, float]
    warnings: list[str]
