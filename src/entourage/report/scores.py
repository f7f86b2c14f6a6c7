"""The table of scores: before, after, and what lies between them with its interval; and the same in one sentence.

A change is marked by a shape besides its colour: ▲ and ▼ where the interval leaves no doubt, △ and ▽ where there is no
interval, ≈ where it holds zero, = where nothing changed. NMI is a score of the whole set: queries that are drawn again
would have no clusters of their own, so that it has no interval.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape

__all__ = ["ScoreTable", "change_mark", "changes_in_words", "metric_title"]

_TITLES = {
    "map@r": "MAP@R",
    "map": "mAP",
    "map-trapezoid": "mAP, trapezoid",
    "nmi": "NMI",
    "r-precision": "R-precision",
}
_MEANINGS = {
    "recall@1": "the nearest is right",
    "map@r": "right ones first",
    "map": "right ones first",
    "nmi": "clusters fit classes",
    "r-precision": "share of R that is right",
}
_WIDTH, _HEIGHT, _MARGIN = 220, 22, 8  # of the drawn intervals, in CSS pixels


def metric_title(name: str) -> str:
    """A metric as papers write it.

    >>> [metric_title(name) for name in ("recall@1", "map@r", "map@1000", "cosine_to_input")]
    ['Recall@1', 'MAP@R', 'mAP@1000', 'Cosine to input']
    """
    if name in _TITLES:
        return _TITLES[name]
    if name.startswith("map@"):
        return f"mAP@{name.removeprefix('map@')}"
    return name.replace("_", " ").capitalize()


def metric_meaning(name: str) -> str:
    if name.startswith("recall@") and name not in _MEANINGS:
        return f"one of {name.removeprefix('recall@')} is right"
    return _MEANINGS.get(name, "right ones first" if name.startswith("map@") else "")


def change_mark(difference: float, interval: Mapping | None) -> tuple[str, str]:
    """A shape and a word for a change.

    >>> change_mark(0.02, {"low": 0.01, "high": 0.03}), change_mark(-0.02, None)
    (('▲', 'better'), ('▽', 'lower'))
    >>> change_mark(0.02, {"low": -0.01, "high": 0.05})
    ('≈', 'no clear change')
    """
    if difference == 0 and (interval is None or interval["low"] == interval["high"] == 0):  # for every single query
        return "=", "the same"
    if interval is None:
        return ("△", "higher") if difference > 0 else ("▽", "lower")
    if interval["low"] > 0:
        return "▲", "better"
    return ("▼", "worse") if interval["high"] < 0 else ("≈", "no clear change")


def changes_in_words(before: Mapping, after: Mapping, intervals: Mapping, names) -> str:
    """What became of these metrics, as the end of one sentence that begins with what did it.

    >>> before, after = {"recall@1": 0.5, "map@r": 0.3}, {"recall@1": 0.6, "map@r": 0.31}
    >>> changes_in_words(before, after, {"map@r": {"low": -0.01, "high": 0.03}}, ["recall@1", "map@r"])
    'raised recall@1 from 50.0 to 60.0 % and left MAP@R about the same (30.0 to 31.0 %)'
    """
    clauses, last = [], None
    for name in names:
        verb = _verb(change_mark(after[name] - before[name], intervals.get(name))[0])
        title = metric_title(name) if name in _TITLES else name
        numbers = f"{100 * before[name]:.1f} to {100 * after[name]:.1f} %"
        told = f"{title} about the same ({numbers})" if verb == "left" else f"{title} from {numbers}"
        clauses.append(told if verb == last else f"{verb} {told}")
        last = verb
    return " and ".join(clauses)


def _verb(mark: str) -> str:
    return "raised" if mark in "▲△" else "lowered" if mark in "▼▽" else "left"


@dataclass(frozen=True)
class ScoreTable:
    """Scores in percent.

    metrics: name -> fraction. before: the same before the change, or None if there is only one state. intervals:
    name -> {"difference", "low", "high"} of the change; without a state before, {"low", "high"} of the score itself.
    """

    caption: str
    metrics: Mapping[str, float]
    before: Mapping[str, float] | None = None
    intervals: Mapping[str, Mapping] = field(default_factory=dict)
    names: tuple[str, str] = ("before", "after")

    def html(self) -> str:
        rows = "\n".join(self._change_row(name) if self.before else self._score_row(name) for name in self.metrics)
        caption = f"<caption>{escape(self._said())}</caption>"
        return f'<table class="scores">{caption}{self._head()}<tbody>\n{rows}\n</tbody></table>'

    def _said(self) -> str:
        lacks = self.intervals and "nmi" in self.metrics
        return self.caption + " NMI has no interval: it is no mean over queries." * bool(lacks)

    def _head(self) -> str:
        change = "change (95 % interval)" if self.intervals else "change"
        names = [*self.names, change] if self.before else ["score (95 % interval)" if self.intervals else "score"]
        cells = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in names)
        if self.before and self.intervals:
            cells += '<td class="bar"></td>'  # draws what the cell before it says
        return f'<thead><tr><th scope="col">metric</th>{cells}</tr></thead>'

    def _change_row(self, name: str) -> str:
        before, after, interval = self.before[name], self.metrics[name], self.intervals.get(name)
        mark, word = change_mark(after - before, interval)
        kind = {"▲": "right", "△": "right", "▼": "wrong", "▽": "wrong"}.get(mark, "quiet")
        shape = f'<span class="{kind}" role="img" aria-label="{word}" title="{word}">{mark}</span>'
        change = f"{shape} {_signed(after - before)}{_interval(interval, _signed)}"
        cells = "".join(f'<td class="number">{cell}</td>' for cell in (_percent(before), _percent(after), change))
        bar = f'<td class="bar">{self._bar(interval)}</td>' if self.intervals else ""
        return f"<tr>{_name(name)}{cells}{bar}</tr>"

    def _score_row(self, name: str) -> str:
        score = f"{_percent(self.metrics[name])}{_interval(self.intervals.get(name), _percent)}"
        return f'<tr>{_name(name)}<td class="number">{score}</td></tr>'

    def _bar(self, interval: Mapping | None) -> str:
        """The interval as a line on the scale of the whole table, its mean as a square; the cells have the numbers."""
        if interval is None:
            return ""
        ends = [value for each in self.intervals.values() for value in (each["low"], each["high"])]
        low, high = min(0.0, *ends), max(0.0, *ends)
        per_unit = (_WIDTH - 2 * _MARGIN) / (high - low) if high > low else 0.0
        zero, start, end, mean = (
            _MARGIN + (value - low) * per_unit
            for value in (0.0, interval["low"], interval["high"], interval["difference"])
        )
        middle = _HEIGHT / 2
        return (
            f'<svg width="{_WIDTH}" height="{_HEIGHT}" aria-hidden="true" stroke="currentColor">'
            f'<path d="M{zero:.1f} 0V{_HEIGHT}" stroke-dasharray="2 3" opacity=".6"/>'
            f'<path d="M{start:.1f} {middle}H{end:.1f}" stroke-width="2"/>'
            f'<rect x="{mean - 3.5:.1f}" y="{middle - 3.5}" width="7" height="7" fill="currentColor"/></svg>'
        )


def _name(name: str) -> str:
    meaning = metric_meaning(name)
    small = f"<small>{escape(meaning)}</small>" if meaning else ""
    return f'<th scope="row">{escape(metric_title(name))}{small}</th>'


def _interval(interval: Mapping | None, form: Callable[[float], str]) -> str:
    return "" if interval is None else f"<small>{form(interval['low'])} to {form(interval['high'])}</small>"


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _signed(value: float) -> str:
    return f"{100 * value:+.2f}".replace("-", "−") if value else "0.00"
