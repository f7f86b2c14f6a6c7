"""Whether refinement will help, decided from what was found: the outcome, the main reason and what to do next."""

from typing import Any

from entourage.refiner.rehearsal import CLASSES_TO_LEARN_FROM
from entourage.refiner.universal import LEAST_ITEMS, Forecast

__all__ = ["verdict"]

# The rules; docs/doctor.md has the measurements behind them.
PURE = 0.95
LITTLE_ROOM = 0.03
LEAST_GAIN, MOST_LOSS = 0.01, 0.005  # of MAP@R and of R@1
LEAST_ABOVE_CHANCE = 0.15
FEW_DIMENSIONS = 24
UNGROUPED = 0.95
GROUPED = 0.85  # random vectors, also of heavy tails or uneven variances, are at 0.9 and above


def verdict(values: dict[str, Any], dimensions: int) -> str:
    """Decide from the findings whether refinement helps.

    Parameters
    ----------
    values : name -> value
        The findings.
    dimensions : int
        Dimensions of the vectors.

    Returns
    -------
    str
        One line: whether refinement helps, the main reason and what to do next.
    """
    if values["distinct_items"] < LEAST_ITEMS:
        return _line("will not help", _obstacle(values), "collect more items")
    return _verdict_with_labels(values) if "map@r" in values else _verdict_without_labels(values, dimensions)


def _verdict_without_labels(values: dict[str, Any], dimensions: int) -> str:
    purity, obstacle = values["estimated_purity"], _obstacle(values)
    belong = f"about {100 * purity:.0f} % of the nearest neighbours seem to belong together"
    if obstacle and (values["structure"] or 1.0) < GROUPED:
        near = f"the nearest are nearer than in random vectors ({values['structure']:.2f} of their distance)"
        reason = f"{obstacle}; but {near}, as in large round classes, which only labels can tell"
        return _line("cannot be judged", reason, "give labels, of some of the items at least")
    if obstacle:
        return _line(
            "will not help", obstacle, "give labels, if there are any, to see whether learning from them would"
        )
    if purity >= PURE:
        return _line("will do little", f"neighbours are already pure, {belong}", "use the vectors as they are")
    if dimensions < FEW_DIMENSIONS:
        reason = f"{belong}, but in {dimensions} dimensions even random vectors may look so"
        return _line("may help", reason, "give labels to be certain")
    if values["structure"] is not None and values["structure"] >= UNGROUPED:
        near = f"{belong}, but they are no nearer than in random vectors ({values['structure']:.2f} of their distance)"
        return _line("may help", near, "give labels to be certain")
    return _line("should help", belong, "entourage refine, or entourage fit if there are labels")


def _verdict_with_labels(values: dict[str, Any]) -> str:
    """By what refinement without training does to the scores."""
    if not values["possible_purity"]:
        return _line("will not help", "no class has two distinct items", "collect more items per class")
    if values["chance_purity"] == 1:
        return _line("cannot be judged", "all items are of one class", "give labels that differ, or none")
    missing = values["possible_map@r"] - values["map@r"]
    if missing < LITTLE_ROOM:
        reason = f"neighbours are already pure, MAP@R is {100 * missing:.1f} points below the best possible"
        return _line("will do little", reason, "use the vectors as they are")
    gain, of_first = (values[f"refined_{name}"] - values[name] for name in ("map@r", "recall@1"))
    learnable = values["usable_classes"] >= CLASSES_TO_LEARN_FROM
    compare = "entourage compare, which learns from half of the classes and is scored on the others"
    whole, first = _change("MAP@R", values, "map@r"), _change("R@1", values, "recall@1")
    ten = _change("R@10", values, "recall@10")
    fewer = f"; {ten}, as first places fill with items that are alike" if "falls" in ten else ""
    if gain >= LEAST_GAIN and of_first >= -MOST_LOSS:
        reason = f"without training, {whole} and {first}{fewer}"
        return _line(
            "should help", reason, "entourage fit" if learnable else "entourage refine, as there are few classes"
        )
    if gain >= LEAST_GAIN:
        reason = f"without training, {whole}, but {first}: whole rankings gain and first hits lose{fewer}"
        return _line("may help", reason, compare if learnable else "decide which of them matters to you")
    if values["above_chance"] < LEAST_ABOVE_CHANCE:
        reason = "the nearest neighbours are hardly more often of an item's class than any others"
        return _line("will not help", reason, "check the labels, or try another encoder")
    if learnable:
        return _line("may help", f"without training it does not, {whole}; what labels teach may", compare)
    reason = f"{whole}, and there are too few classes to learn from"
    return _line("will not help", reason, f"collect {CLASSES_TO_LEARN_FROM} classes or more")


def _change(title: str, values: dict[str, Any], name: str) -> str:
    before, after = (f"{100 * values[key]:.1f}" for key in (name, f"refined_{name}"))
    if before == after:
        return f"{title} stays at {before} %"
    return f"{title} {'rises' if values[f'refined_{name}'] > values[name] else 'falls'} from {before} to {after} %"


def _obstacle(values: dict[str, Any]) -> str | None:
    """Why refinement without labels would not help, or None if it should."""
    return Forecast(values["estimated_purity"] or 0.0, values["distinct_items"]).warning


def _line(outcome: str, reason: str | None, advice: str) -> str:
    return f"refinement {outcome}: {reason}. Next: {advice}."
