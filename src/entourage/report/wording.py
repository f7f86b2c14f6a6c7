"""Values, metrics and changes as people write them.

A change is marked by a shape besides its colour: ▲ and ▼ where the interval leaves no doubt, △ and ▽ where there is no
interval, ≈ where it holds zero, = where nothing changed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "change_mark",
    "changes_in_words",
    "flattened",
    "metric_meaning",
    "metric_title",
    "percent",
    "readable",
    "signed",
    "unbroken",
]

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
    """A metric in a few words, or nothing where its title says it all."""
    if name.startswith("recall@") and name not in _MEANINGS:
        return f"one of {name.removeprefix('recall@')} is right"
    return _MEANINGS.get(name, "right ones first" if name.startswith("map@") else "")


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


def changes_in_words(
    before: Mapping[str, float],
    after: Mapping[str, float],
    intervals: Mapping[str, Mapping[str, float]],
    names: Iterable[str],
) -> str:
    """Say what became of the named metrics, as the end of a sentence.

    Parameters
    ----------
    before, after : name -> fraction
        The scores.
    intervals : name -> {"low", "high"}
        The intervals of the changes, where they are known.
    names : names
        Which metrics to speak of.

    >>> before, after = {"recall@1": 0.5, "map@r": 0.3}, {"recall@1": 0.6, "map@r": 0.31}
    >>> changes_in_words(before, after, {"map@r": {"low": -0.01, "high": 0.03}}, ["recall@1", "map@r"])
    'raised recall@1 from 50.0 to 60.0 % and left MAP@R about the same (30.0 to 31.0 %)'
    """
    clauses: list[str] = []
    last = None
    for name in names:
        verb = _verb(change_mark(after[name] - before[name], intervals.get(name))[0])
        title = metric_title(name) if name in _TITLES else name
        numbers = f"{100 * before[name]:.1f} to {100 * after[name]:.1f} %"
        change = f"{title} about the same ({numbers})" if verb == "left" else f"{title} from {numbers}"
        clauses.append(change if verb == last else f"{verb} {change}")
        last = verb
    return " and ".join(clauses)


def _verb(mark: str) -> str:
    return "raised" if mark in "▲△" else "lowered" if mark in "▼▽" else "left"


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


def percent(fraction: float) -> str:
    """A fraction in percent, with two digits: 0.625 is '62.50'."""
    return f"{100 * fraction:.2f}"


def signed(difference: float) -> str:
    """A difference of fractions in points, with its sign: 0.125 is '+12.50'."""
    return f"{100 * difference:+.2f}".replace("-", "−") if difference else "0.00"


def unbroken(text: str) -> str:
    """A text in which a number and its percent sign stay on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")
