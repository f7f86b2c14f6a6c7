"""Progress of a training: which epoch, the best score and how fast it goes."""

import time
from collections.abc import Callable

from entourage.runtime.progress import Progress

__all__ = ["Pace"]

_REFRESH = 10.0  # seconds between two measurements of speed, so that a log of titles stays short


class Pace:
    """Counts batches and items; reports them as "title (epoch 3/20, best MAP@R 41.2 %, 310 images/s)".

    Parameters
    ----------
    title : str
        What is reported before the bracket.
    unit : str
        What batches consist of.
    metric : str
        What the score of an epoch is called.
    epochs : int
        How many there will be at most.
    progress : Progress or None
        What to report to; None only counts.
    clock : callable
        Seconds since any moment.
    """

    def __init__(
        self,
        title: str,
        unit: str,
        metric: str,
        epochs: int,
        progress: Progress | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.unit, self.metric, self.epochs = title, unit, metric, epochs
        self.progress, self.clock = progress, clock
        self.speed = ""
        self.start(0, 0, None)

    def start(self, epoch: int, n_batches: int, best_score: float | None) -> None:
        """Begin an epoch of that many batches; its time counts from now."""
        self.epoch, self.n_batches, self.best = epoch, n_batches, self._percent(best_score, "best ")
        self.batches = self.items = 0
        self.started = self.clock()
        self._mark(self.started)

    def step(self, n_items: int) -> None:
        """Count a batch of that many items, and report."""
        self.batches += 1
        self.items += n_items
        if not self.progress:
            return
        now = self.clock()
        if now - self.marked >= _REFRESH:
            self._measure(now)
        self.progress(self.where, (self.epoch - 1) * self.n_batches + self.batches, self.epochs * self.n_batches)

    def finish(self, kept_epoch: int, best_score: float | None) -> None:
        """Report that training is over, and which epoch was kept."""
        if self.progress:
            total = max(self.epochs * self.n_batches, 1)
            self.progress(f"{self.title} (kept epoch {kept_epoch}{self._percent(best_score)})", total, total)

    @property
    def where(self) -> str:
        """The title with all that is known now."""
        return f"{self.title} (epoch {self.epoch}/{self.epochs}{self.best}{self.speed})"

    @property
    def seconds(self) -> float:
        """Since the epoch began."""
        return self.clock() - self.started

    def _mark(self, now: float) -> None:
        """Remember this moment: speed is measured from here."""
        self.marked, self.items_then = now, self.items

    def _measure(self, now: float) -> None:
        seconds = now - self.marked
        self.speed = f", {(self.items - self.items_then) / seconds:,.0f} {self.unit}/s"
        self._mark(now)

    def _percent(self, score: float | None, what: str = "") -> str:
        return "" if score is None else f", {what}{self.metric} {100 * score:.1f} %"
