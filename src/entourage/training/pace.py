"""Progress of a training: which epoch, the best score, how fast it goes and how long it will take."""

import time
from collections.abc import Callable

from entourage.runtime.progress import Progress

__all__ = ["Pace"]

_REFRESH = 10.0  # seconds between two measurements of speed, so that a log of titles stays short


class Pace:
    """Counts batches and items; reports them as "title (epoch 3/20, best so far 41.2 %, 310 images/s, 4 min left)".

    Parameters
    ----------
    title : str
        What is reported before the bracket.
    unit : str
        What batches consist of.
    epochs : int
        How many there will be at most.
    progress : Progress or None
        What to report to; None only counts.
    clock : callable
        Seconds since any moment.
    """

    def __init__(
        self, title: str, unit: str, epochs: int, progress: Progress | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.title, self.unit, self.epochs, self.progress, self.clock = title, unit, epochs, progress, clock
        self.speed = ""
        self.start(0, 0, None)

    def start(self, epoch: int, n_batches: int, best_score: float | None) -> None:
        """Begin an epoch of that many batches; its time counts from now."""
        self.epoch, self.n_batches, self.best = epoch, n_batches, _percent(best_score, "best so far ")
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
            self.progress(f"{self.title} (kept epoch {kept_epoch}{_percent(best_score)})", 1, 1)

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
        self.marked, self.batches_then, self.items_then = now, self.batches, self.items

    def _measure(self, now: float) -> None:
        seconds = now - self.marked
        batches_left = self.n_batches - self.batches + (self.epochs - self.epoch) * self.n_batches
        left = batches_left * seconds / (self.batches - self.batches_then)
        self.speed = f", {(self.items - self.items_then) / seconds:,.0f} {self.unit}/s, {_duration(left)} left"
        self._mark(now)


def _percent(score: float | None, what: str = "") -> str:
    return "" if score is None else f", {what}{100 * score:.1f} %"


def _duration(seconds: float) -> str:
    """A duration in the largest unit that gives two or more.

    >>> [_duration(seconds) for seconds in (45, 150, 10000)]
    ['45 s', '2 min', '2.8 h']
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
