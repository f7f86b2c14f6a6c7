"""Contenders timed side by side: one process, turn by turn, the best of several."""

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Result", "best_times"]


@dataclass(frozen=True)
class Result:
    """How much faster (or leaner) a contender is than its peer, and how much is asked of it.

    `ratio` is always better when larger: peer's time / contender's time, or peer's memory / contender's.
    """

    bench: str
    contender: str
    peer: str
    ratio: float
    needed: float | None
    """None where nothing is promised and the figure is reported for its own sake."""
    detail: dict
    """What the ratio was made of: seconds of each, sizes, throughput."""

    @property
    def ok(self) -> bool:
        return self.needed is None or self.ratio >= self.needed

    def document(self) -> dict:
        row = {"bench": self.bench, "contender": self.contender, "peer": self.peer, "ratio": round(self.ratio, 3)}
        return row | {"needed": self.needed, "ok": self.ok, "detail": self.detail}


def best_times(contenders: dict[str, Callable[[], object]], repeats: int = 3) -> dict[str, float]:
    """Seconds of each contender at its best; they take turns, so that a busy moment hurts all of them alike.

    The first round, in which kernels compile and memory is touched, is not counted.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for turn in range(repeats + 1):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best
