"""Before any training: whether refinement will help these vectors, and why.

Everything comes from one neighbourhood graph among distinct items, the one that refinement itself uses, and with labels
from one ranking more. docs/doctor.md gives the rules of the verdict and where they come from.

N items, G distinct ones, k neighbours, C classes. Memory is O(N k).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import skew

from entourage.comparison.findings import Diagnosis, Finding
from entourage.comparison.splits import labels_of
from entourage.evaluation import evaluate_ranking
from entourage.evaluation.movement import mean_cosine
from entourage.neighbors import search_blocks
from entourage.refiner.graph import Graph, build_graph
from entourage.refiner.universal import LEAST_ITEMS, Forecast, universal_network
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.values import Embeddings, Neighbors, as_embeddings, label_codes

__all__ = ["doctor", "examine", "verdict"]

PURITY_OF = 8
HUBNESS_AT = 10
LEAST_K, MOST_K = 4, 24
LEAST_POSSIBLE = 0.3
# The rules of the verdict; docs/doctor.md has the measurements behind them.
PURE = 0.95
LITTLE_ROOM = 0.03
LEAST_ABOVE_CHANCE, CLEARLY_ABOVE_CHANCE = 0.15, 0.4
FEW_DIMENSIONS = 24
CLASSES_TO_LEARN_FROM = 6
# From where on a note points it out.
_HUBS = 2.0
_NARROW = 0.5
_EXAMPLES = 5


@shows_progress
def doctor(X: Any, y: Any = None, *, progress: ShowProgress = None) -> Diagnosis:
    """Find out, before any training, whether refinement will help these vectors, and why.

    Parameters
    ----------
    X : Embeddings, array, DataFrame, column of lists or tensor of shape (N, d)
        Embeddings may carry their own labels.
    y : array-like of shape (N,), optional
        Labels, integers or texts; with them there are more findings and the verdict is surer.
    progress : bool or callable, optional
        True shows progress on standard error; a callable is called as progress(title, done, total).

    Returns
    -------
    Diagnosis
        `print` shows its findings and the verdict.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(20), 10)
    >>> diagnosis = doctor(rng.normal(size=(20, 32))[y] + rng.normal(size=(200, 32)))
    >>> diagnosis.verdict.partition(":")[0]
    'refinement should help'
    >>> diagnosis.metrics["distinct_items"]
    200
    """
    return examine(as_embeddings(X, y, name="X"), progress=progress)


def examine(items: Embeddings, *, progress: Progress | None = None) -> Diagnosis:
    """Find out whether refinement will help these items, and why.

    Parameters
    ----------
    items : Embeddings of shape (N, d)
        With labels, if they are known, there are more findings and the verdict is surer.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    Diagnosis
        Findings and verdict.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(np.arange(20), 10)
    >>> vectors = rng.normal(size=(20, 32))[labels] + rng.normal(size=(200, 32))
    >>> examine(Embeddings.from_vectors(vectors)).verdict.partition(":")[0]
    'refinement should help'
    """
    network = universal_network()
    graph = build_graph(items, network.n_neighbors, progress)
    chances = network.scorer.probabilities(graph.relations) if graph.neighbors.k else None
    findings = [*_copies(items, graph), *_forecast(graph, chances), *_hubness(graph), _cone(items)]
    if items.labels is not None:
        findings += [*_purity(graph), *_scores(items, progress), *_class_sizes(items, findings)]
        findings += [*_copies_across_labels(items, graph.stands_for), _confusable_classes(graph)]
    values = {found.name: found.value for found in findings}
    return Diagnosis(_protocol(items, graph), tuple(findings), verdict(values, items.dim))


def _protocol(items: Embeddings, graph: Graph) -> dict[str, Any]:
    return {
        "items": len(items),
        "dimensions": items.dim,
        "classes": None if items.labels is None else len(np.unique(items.labels)),
        "neighbors": "exact, cosine, ties by id, copies counted once",
        "purity_of": min(PURITY_OF, graph.neighbors.k),
        "hubness_at": min(HUBNESS_AT, graph.neighbors.k),
        "copies_from_similarity": graph.copy_similarity,
    }


# ---- the verdict ---------------------------------------------------------------------------------------------------


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
    if obstacle:
        return _line(
            "will not help", obstacle, "give labels, if there are any, to see whether learning from them would"
        )
    if purity >= PURE:
        return _line("will do little", f"neighbours are already pure, {belong}", "use the vectors as they are")
    if dimensions < FEW_DIMENSIONS:
        reason = f"{belong}, but in {dimensions} dimensions even random vectors may look so"
        return _line("may help", reason, "give labels to be certain")
    return _line("should help", belong, "entourage refine, or entourage fit if there are labels")


def _verdict_with_labels(values: dict[str, Any]) -> str:
    if not values["possible_purity"]:
        return _line("will not help", "no class has two distinct items", "collect more items per class")
    if values["chance_purity"] == 1:
        return _line("cannot be judged", "all items are of one class", "give labels that differ, or none")
    obstacle, learnable = _obstacle(values), values["usable_classes"] >= CLASSES_TO_LEARN_FROM
    missing = values["possible_map@r"] - values["map@r"]
    if missing < LITTLE_ROOM:
        reason = f"neighbours are already pure, MAP@R is {100 * missing:.1f} points below the best possible"
        return _line("will do little", reason, "use the vectors as they are")
    if values["above_chance"] < LEAST_ABOVE_CHANCE:
        reason = "the nearest neighbours are hardly more often of an item's class than any others"
        return _line("will not help", reason, "check the labels, or try another encoder")
    if obstacle and not learnable:
        return _line("will not help", obstacle, f"collect {CLASSES_TO_LEARN_FROM} classes or more to learn from")
    share = f"{100 * (1 - values['room']):.0f} % of the nearest neighbours that could be of an item's class are"
    compare = "entourage compare, which learns from half of the classes and is scored on the others"
    if obstacle:
        return _line("may help", f"{share}, but only labels can teach which", compare)
    if values["possible_purity"] < LEAST_POSSIBLE:
        return _line("may help", f"{share}, but there are few of them", f"collect more items per class, or {compare}")
    if values["above_chance"] < CLEARLY_ABOVE_CHANCE:
        return _line("may help", f"only {share}", compare)
    return _line("should help", share, "entourage fit" if learnable else "entourage refine, as there are few classes")


def _obstacle(values: dict[str, Any]) -> str | None:
    """Why refinement without labels would not help, or None if it should."""
    return Forecast(values["estimated_purity"] or 0.0, values["distinct_items"]).warning


def _line(outcome: str, reason: str | None, advice: str) -> str:
    return f"refinement {outcome}: {reason}. Next: {advice}."


# ---- without labels ------------------------------------------------------------------------------------------------


def _copies(items: Embeddings, graph: Graph) -> list[Finding]:
    near = np.bincount(graph.stands_for)[graph.stands_for] > 1  # (N,)
    whole_rows = items.vectors[near].view(f"V{4 * items.dim}").ravel()
    sizes = np.unique(whole_rows, return_counts=True)[1]
    advice = "; remove them, as a search returns them side by side" if near.any() else ""
    return [
        Finding("distinct_items", len(graph.items), "copies counted once"),
        Finding("exact_copies", int(sizes[sizes > 1].sum()), "items with an equal vector"),
        Finding("near_copies", int(near.sum()), f"items with an equal or nearly equal vector{advice}"),
    ]


def _forecast(graph: Graph, chances: np.ndarray | None) -> list[Finding]:
    """What the universal scorer expects, from its probabilities (G, k) that both ends of an edge are of one class."""
    if chances is None:
        return [Finding("estimated_purity", None), Finding("suggested_k", None)]
    expected, of_last = chances.sum(axis=1).mean(), chances[:, -1].mean()
    beyond = of_last >= 0.5  # the list ends among neighbours that seem to be of the class: there are more
    k = int(np.clip(round(float(expected) * (1 + beyond)), LEAST_K, MOST_K))
    k = min(k, max(len(graph.items) // 4, 1))  # refinement uses no more
    nearest = min(PURITY_OF, graph.neighbors.k)
    why = f"{expected:.1f} of {graph.neighbors.k} seem to be of the same class{', even the last' * bool(beyond)}"
    return [
        Finding(
            "estimated_purity",
            float(chances[:, :PURITY_OF].mean()),
            f"of the {nearest} nearest, the share that the universal scorer judges to be of the same class",
        ),
        Finding("suggested_k", k, f"neighbours to attend to, `entourage refine VECTORS --neighbors {k}`: {why}"),
    ]


def _hubness(graph: Graph) -> list[Finding]:
    rows = graph.neighbors.rows[:, :HUBNESS_AT]  # (G, k)
    if not rows.size:
        return [Finding(name, None) for name in ("hubness", "never_listed", "most_listed")]
    listed = np.bincount(rows.ravel(), minlength=len(rows))
    skewness = float(skew(listed)) if np.ptp(listed) else 0.0  # which is not defined where all are listed as often
    hubs = "; some items are neighbours of far too many"
    return [
        Finding(
            "hubness",
            skewness,
            f"skewness of how often an item is among the {rows.shape[1]} nearest of others{hubs * (skewness > _HUBS)}",
        ),
        Finding("never_listed", float((listed == 0).mean()), "share of items that are among the nearest of no other"),
        Finding("most_listed", int(listed.max()), f"lists hold the same item; {rows.shape[1]} on average"),
    ]


def _cone(items: Embeddings) -> Finding:
    cosine = mean_cosine(items)
    if cosine is None:
        return Finding("mean_cosine", None)
    narrow = "; a narrow cone, which whitening may open: entourage compare tries it" if cosine > _NARROW else ""
    return Finding("mean_cosine", cosine, f"of two items; 0 where they fill all directions{narrow}")


# ---- with labels ---------------------------------------------------------------------------------------------------


def _purity(graph: Graph) -> list[Finding]:
    """Of distinct items; a copy's label is that of the item that stands for it."""
    rows = graph.neighbors.rows[:, :PURITY_OF]  # (G, k)
    count, k = rows.shape
    if not k:
        names = ("true_purity", "chance_purity", "possible_purity", "above_chance", "room")
        return [Finding(name, None) for name in names]
    codes = label_codes(labels_of(graph.items))
    others = np.bincount(codes)[codes] - 1  # (G,) of the same class
    true = float((codes[rows] == codes[:, None]).mean())
    chance, possible = float(others.mean() / (count - 1)), float(np.minimum(others, k).mean() / k)
    wrong = "share of the neighbours that could be right and are not: the most that refinement can gain"
    return [
        Finding("true_purity", true, f"of the {k} nearest, the share of the same class"),
        Finding("chance_purity", chance, "what it would be with random neighbours"),
        Finding("possible_purity", possible, "the most it could be: classes may have fewer items"),
        Finding("above_chance", (true - chance) / (possible - chance) if possible > chance else 0.0, "from 0 to 1"),
        Finding("room", 1 - true / possible if possible else None, wrong),
    ]


def _scores(items: Embeddings, progress: Progress | None) -> list[Finding]:
    names = ("recall@1", "map@r")
    if len(items) == 1:
        return [Finding(name, None) for name in (*names, "possible_map@r")]

    def rank(unlabelled: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        for block, found in search_blocks(unlabelled, k=k):
            yield block, found
            if progress:
                progress("ranking", block.stop, len(items))

    scores = evaluate_ranking(items, rank)
    alone = int((np.unique(labels_of(items), return_counts=True)[1] == 1).sum())
    return [
        *(Finding(name, float(scores[name].mean()), "of the vectors as they are") for name in names),
        Finding("possible_map@r", 1 - alone / len(items), "items alone in their class count as 0"),
    ]


def _class_sizes(items: Embeddings, findings: list[Finding]) -> list[Finding]:
    k = next(found.value for found in findings if found.name == "suggested_k")
    sizes = np.unique(labels_of(items), return_counts=True)[1]
    alone = int((sizes == 1).sum())
    usable = len(sizes) - alone
    return [
        Finding("smallest_class", int(sizes.min())),
        Finding("median_class", float(np.median(sizes))),
        Finding("largest_class", int(sizes.max())),
        Finding("usable_classes", usable, f"with two items or more; fit learns from {CLASSES_TO_LEARN_FROM} and up"),
        Finding(
            "classes_with_one_item", alone, "collect more of these: as queries they have nothing to find" * bool(alone)
        ),
        Finding(
            "classes_below_k",
            int((sizes < k).sum()) if isinstance(k, int) else None,
            "with fewer items than suggested k",
        ),
    ]


def _copies_across_labels(items: Embeddings, group: np.ndarray) -> list[Finding]:
    """Pairs of copies with different labels: all pairs of a group, less those of one label within it."""
    by_group = np.unique(group, return_counts=True)[1]
    both, first, by_both = np.unique(
        np.stack([group, label_codes(labels_of(items))], axis=1), axis=0, return_index=True, return_counts=True
    )
    pairs = int((by_group * (by_group - 1) // 2).sum() - (by_both * (by_both - 1) // 2).sum())
    split = np.flatnonzero(np.diff(both[:, 0]) == 0)[:_EXAMPLES]  # rows of one group with two labels, side by side
    examples = items.ids[np.stack([first[split], first[split + 1]], axis=1)].tolist()
    pairs_named = "; ".join(f"{one} and {other}" for one, other in examples)
    return [
        Finding("copies_across_labels", pairs, "pairs of copies with different labels"),
        Finding("copies_to_check", examples, f"ids: {pairs_named}; one of each may be mislabelled" if examples else ""),
    ]


def _confusable_classes(graph: Graph) -> Finding:
    """The pairs of classes with the most neighbours in each other's class, both ways together."""
    names, codes = np.unique(labels_of(graph.items), return_inverse=True)
    rows = graph.neighbors.rows[:, :PURITY_OF]  # (G, k)
    own, other = np.broadcast_to(codes[:, None], rows.shape), codes[rows]
    wrong = own != other
    ends = np.sort(np.stack([own[wrong], other[wrong]], axis=1), axis=1)
    pairs, counts = np.unique(ends, axis=0, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_EXAMPLES]
    value = [
        {"classes": names[pair].tolist(), "wrong_neighbors": int(n)}
        for pair, n in zip(pairs[most], counts[most], strict=True)
    ]
    named = "; ".join(f"{entry['classes'][0]} / {entry['classes'][1]} {entry['wrong_neighbors']}" for entry in value)
    return Finding("confusable_classes", value, f"most often each other's wrong neighbours: {named}" if value else "")
