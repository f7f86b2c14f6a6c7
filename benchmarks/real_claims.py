"""Which claims hold on which set, from what compare_real.py has measured.

A claim about "every rival" is held against the best of them, which is known only after the fact. Differences are in
points, over the class splits that both methods have; intervals are over classes.
"""

from collections.abc import Iterator
from typing import NamedTuple

from entourage.comparison.intervals import intervals_between
from entourage.comparison.methods import METHODS
from real_results import on_common_splits, score

OURS = ("universal", "relational")
ALLOWED = 0.5  # points


class Claim(NamedTuple):
    """A claim on one set."""

    text: str
    name: str
    """Of the set."""
    holds: bool
    margin: float
    """In points; below 0 where it fails, by so much."""
    remark: str = ""

    def __str__(self) -> str:
        verdict = "holds" if self.holds else f"fails by {-self.margin:.2f}"
        return f"{self.name:24} {verdict:15} {self.remark}"


def claims(results: dict) -> list[Claim]:
    """Check every claim on every set, as far as it has been measured there."""
    return [claim for name, tasks in results.items() for claim in _of_set(name, tasks)]


def described(checked: list[Claim]) -> str:
    """Lay out the claims, one after the other, with a line for each set."""
    lines = []
    for text in dict.fromkeys(claim.text for claim in checked):
        own = [claim for claim in checked if claim.text == text]
        lines += ["", f"{text}: {sum(claim.holds for claim in own)} of {len(own)} sets", *map(str, own)]
    return "\n".join(lines).strip()


def _of_set(name: str, tasks: dict) -> Iterator[Claim]:
    together = tasks.get("together", {})
    for method, kind in (
        ("relational", "every rival"),
        ("universal", "every rival without labels"),
        ("universal-tuned", "every untrained rival, tuned"),
    ):
        rivals = [each for each in together if _is_rival(each) and _is_of(kind, each)]
        if method in together and rivals:
            yield _against_best(f"{method}: MAP@R not below {kind}", name, together, method, rivals, "map@r")
            if kind == "every rival":
                text = f"{method}: R@1 not below {kind} beyond the interval"
                yield _against_best(text, name, together, method, rivals, "recall@1", beyond_interval=True)
    if set(OURS) <= together.keys():
        yield _against_best("relational: MAP@R not below universal", name, together, *OURS[::-1], "map@r")
    yield from _against_raw(name, tasks)


def _against_raw(name: str, tasks: dict) -> Iterator[Claim]:
    sparse = [task for task in tasks if task.startswith("sparse")]
    for method in OURS:
        limits = [("together", "recall@10", ALLOWED, f"{method}: recall@10 not below raw by more than {ALLOWED}")]
        if method == "universal":
            limits.append(("together", "recall@1", ALLOWED, f"{method}: R@1 not below raw by more than {ALLOWED}"))
        limits.append(("served", "recall@1", 0.0, f"{method}, served: R@1 not below raw"))
        for metric, title in (("recall@1", "R@1"), ("map@r", "MAP@R")):
            text = f"{method}, sparse: {title} not below raw by more than {ALLOWED}, in the worst gallery"
            limits += [(task, metric, ALLOWED, text) for task in sparse]
        limits.append(("open", "auroc", 0.0, f"{method}, open: AUROC not below raw"))
        found = [_above_raw(name, tasks[task], method, *limit) for task, *limit in limits if _both(tasks, task, method)]
        places = [task for task, *_ in limits if _both(tasks, task, method)]
        for text in dict.fromkeys(claim.text for claim in found):
            worst, place = min(
                ((claim, place) for claim, place in zip(found, places, strict=True) if claim.text == text),
                key=lambda pair: pair[0].margin,
            )
            yield worst._replace(remark=f"{worst.remark}, {place}")


def _both(tasks: dict, task: str, method: str) -> bool:
    return {"raw", method} <= tasks.get(task, {}).keys()


def _above_raw(name: str, methods: dict, method: str, metric: str, allowed: float, text: str) -> Claim:
    """Whether a method is above raw, or below it by no more than allowed, as the scores are printed."""
    common = methods[method].keys() & methods["raw"].keys()
    own, raw = ({split: methods[each][split] for split in sorted(common)} for each in (method, "raw"))
    difference = 100 * (score(own, metric) - score(raw, metric))
    margin = round(difference + allowed, 9)
    return Claim(text, name, margin >= 0, margin, f"{difference:+.2f} to raw, {100 * score(own, metric):.1f}")


def _against_best(
    text: str,
    name: str,
    methods: dict,
    method: str,
    rivals: str | list[str],
    metric: str,
    beyond_interval: bool = False,
) -> Claim:
    """Whether a method is not below the best of its rivals; beyond_interval: below it for certain."""
    rivals = [rivals] if isinstance(rivals, str) else rivals
    found = []
    for rival in rivals:
        scores, labels = on_common_splits({each: methods[each] for each in (method, rival)})
        if scores:
            interval = intervals_between({metric: scores[method][metric]}, scores[rival], labels)[metric]
            margin = interval.high if beyond_interval else interval.difference
            found.append((100 * margin, rival, interval))
    margin, rival, interval = min(found, key=lambda each: each[0])
    low, high = 100 * interval.low, 100 * interval.high
    remark = f"{100 * interval.difference:+.2f} ({low:+.2f} to {high:+.2f}) to {rival}"
    return Claim(text, name, margin >= -1e-9, margin, remark)


def _is_of(kind: str, method: str) -> bool:
    """Whether a method is one of a kind of rivals: those that learn nothing may still choose settings by labels."""
    if kind == "every rival":
        return True
    return not METHODS[method].is_trained and (kind.endswith("tuned") or METHODS[method].settings_are == "fixed")


def _is_rival(method: str) -> bool:
    return method != "raw" and not METHODS[method].is_refiner
