"""What the service has done, in the text format of Prometheus."""

import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator

from entourage.refiner.gallery import Report
from entourage.serve.limits import Application, Message, Receive, Send

__all__ = ["Metrics", "Timed"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


class Metrics:
    """Requests by endpoint and status, how long they took, and what changes did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._changes: Counter[str] = Counter()

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request; endpoints are those of the interface, never what a request made up."""
        with self._lock:
            self._requests[endpoint, status] += 1
            self._times[endpoint][bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[endpoint] += seconds

    def made(self, report: Report) -> None:
        """Count what a change did: added, updated, removed, refined, moved."""
        counts = report._asdict()
        del counts["version"]
        with self._lock:
            self._changes.update(counts)

    def text(self, **gauges: float) -> str:
        """All of it; gauges are numbers as they are now, by name."""
        with self._lock:
            return "\n".join([*self._request_lines(), *self._change_lines(), *_gauge_lines(gauges)]) + "\n"

    def _request_lines(self) -> Iterator[str]:
        yield from _head("requests_total", "counter", "Requests answered.")
        for (endpoint, status), count in sorted(self._requests.items()):
            yield f'entourage_requests_total{{endpoint="{endpoint}",status="{status}"}} {count}'
        yield from _head("request_seconds", "histogram", "How long requests took.")
        for endpoint, counts in sorted(self._times.items()):
            total = 0
            for bound, count in zip([*map(str, _BOUNDS), "+Inf"], counts, strict=True):
                total += count
                yield f'entourage_request_seconds_bucket{{endpoint="{endpoint}",le="{bound}"}} {total}'
            yield f'entourage_request_seconds_sum{{endpoint="{endpoint}"}} {self._seconds[endpoint]:.6f}'
            yield f'entourage_request_seconds_count{{endpoint="{endpoint}"}} {total}'

    def _change_lines(self) -> Iterator[str]:
        yield from _head("items_changed_total", "counter", "Items added, updated, removed, refined again, moved.")
        for what, count in sorted(self._changes.items()):
            yield f'entourage_items_changed_total{{what="{what}"}} {count}'


class Timed:
    """Counts the requests that an application answers.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
    """

    def __init__(self, app: Application, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            route = scope.get("route")
            self._metrics.answered(getattr(route, "path", "none"), status, time.perf_counter() - started)


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP entourage_{name} {text}"
    yield f"# TYPE entourage_{name} {kind}"


def _gauge_lines(gauges: dict[str, float]) -> Iterator[str]:
    for name, value in gauges.items():
        yield from _head(name, "gauge", f"The {name.replace('_', ' ')} now.")
        yield f"entourage_{name} {value:g}"
