"""Values, metrics and changes as people write them.

A change is marked by a shape besides its colour: ▲ and ▼ where the interval leaves no doubt, △ and ▽ where there is no
interval, ≈ where it holds zero, = where nothing changed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "change_mark",
    "flattened",
    "footer",
    "in_sentence",
    "metric_meaning",
    "metric_title",
    "percent",
    "readable",
    "signed",
    "unbroken",
    "without_repeats",
]

_COUNTS = ("items", "queries", "gallery", "self_matches_removed_by_id")  # of a protocol, often all the same

_TITLES = {
    "map@r": "MAP@R",
    "map": "mAP",
    "map-trapezoid": "mAP, trapezoid",
    "mrr": "MRR",
    "nmi": "NMI",
    "r-precision": "R-precision",
}
_AT_K = {"map": "mAP", "mrr": "MRR", "ndcg": "nDCG"}
_MEANINGS = {
    "recall@1": "the nearest is right",
    "map@r": "right ones first",
    "map": "right ones first",
    "mrr": "1 / place of the first right one",
    "nmi": "clusters fit classes",
    "r-precision": "share of R that is right",
}


def metric_title(name: str) -> str:
    """A metric as papers write it.

    >>> [metric_title(name) for name in ("recall@1", "map@r", "map@1000", "ndcg@10", "cosine_to_input")]
    ['Recall@1', 'MAP@R', 'mAP@1000', 'nDCG@10', 'Cosine to input']
    """
    return _abbreviation(name) or name.replace("_", " ").capitalize()


def _abbreviation(name: str) -> str | None:
    """A metric that papers write in a way of its own, at the beginning of a sentence and within; None for others."""
    kind, at, k = name.partition("@")
    return _TITLES.get(name) or (f"{_AT_K[kind]}@{k}" if at and kind in _AT_K else None)


def metric_meaning(name: str) -> str:
    """A metric in a few words, or nothing where its title says it all."""
    if name in _MEANINGS:
        return _MEANINGS[name]
    kind, _, k = name.partition("@")
    meanings = {
        "recall": f"one of {k} is right",
        "precision": f"share of {k} that is right",
        "mrr": f"1 / place of the first right one of {k}",
        **dict.fromkeys(("map", "ndcg"), "right ones first"),
    }
    return meanings.get(kind, "")


def change_mark(difference: float, interval: Mapping[str, float] | None) -> tuple[str, str]:
    """Choose a shape and a word for a change, by the interval it lies in where that is known.

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


def in_sentence(name: str) -> str:
    """A metric as it is written within a sentence.

    >>> [in_sentence(name) for name in ("recall@1", "map@r", "mrr@5", "r-precision", "cosine_to_input")]
    ['recall@1', 'MAP@R', 'MRR@5', 'R-precision', 'cosine to input']
    """
    return _abbreviation(name) or metric_title(name).lower()


def without_repeats(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out counts that another fact of the same table gives: how many queries there are, where all items are.

    >>> without_repeats({"items": 90, "queries": 90, "gallery": 90, "gallery_is": "the queries themselves", "steps": 5})
    {'items': 90, 'gallery_is': 'the queries themselves', 'steps': 5}
    """
    kept: dict[str, Any] = {}
    for name, value in facts.items():
        if name not in _COUNTS or value not in [kept[other] for other in _COUNTS if other in kept]:
            kept[name] = value
    return kept


def readable(value: Any) -> str:
    """A setting or a fact as people write it.

    >>> [readable(value) for value in (None, True, [], [30, 50], 5960, 0.0001, "cosine")]
    ['none', 'yes', 'none', '30, 50', '5,960', '0.0001', 'cosine']
    """
    if value is None or (isinstance(value, list | tuple | dict) and not value):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(readable, value))
    return str(value)


def flattened(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Name settings within settings by dotted names, as `--set` takes them.

    >>> flattened({"loss": "margin", "loss_options": {"beta": 1.2}, "encoder_options": {}})
    {'loss': 'margin', 'loss_options.beta': 1.2, 'encoder_options': {}}
    """
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{before}{name}.")
        else:
            flat[f"{before}{name}"] = value
    return flat


def footer(run: Path, intervals: str | None) -> str:
    """The last line of a report: what made it, and how the intervals were made, if there are any."""
    how = "" if intervals is None else f"Intervals: {intervals}. "
    made = f"Made by entourage report {run.absolute().name}. "
    return f"{made}{how}This file holds everything it shows; it fetches nothing."


def percent(fraction: float) -> str:
    """A fraction in percent, with two digits: 0.625 is '62.50'."""
    return f"{100 * fraction:.2f}"


def signed(difference: float) -> str:
    """A difference of fractions in points, with its sign: 0.125 is '+12.50'."""
    return f"{100 * difference:+.2f}".replace("-", "−") if difference else "0.00"


def unbroken(text: str) -> str:
    """A text in which a number and its percent sign stay on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")
