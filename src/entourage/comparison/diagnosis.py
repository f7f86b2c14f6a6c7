"""Before any training: whether refinement will help these vectors, and why.

Everything comes from one neighbourhood graph among distinct items, the one that refinement itself uses. With labels the
items are refined by it, without training, and scored before and after: the verdict is what happened. docs/doctor.md
gives the rules of the verdict and where they come from.

N items, G distinct ones, k neighbours, C classes. Memory is O(N k).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import skew

from entourage.comparison.findings import Diagnosis, Finding
from entourage.comparison.verdict import verdict
from entourage.evaluation import evaluate_ranking
from entourage.evaluation.movement import mean_cosine
from entourage.neighbors import search, search_blocks
from entourage.refiner.graph import Graph, build_graph, most_neighbors
from entourage.refiner.rehearsal import CLASSES_TO_LEARN_FROM
from entourage.refiner.settings import PURITY_OF, RefinerSettings
from entourage.refiner.universal import JUDGED, Forecast, forecast, universal_network
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.randomness import generator
from entourage.values import Embeddings, Neighbors, as_embeddings, label_codes, labels_of

__all__ = ["doctor", "examine"]

HUBNESS_AT = 10
# From where on a note points it out.
_HUBS = 2.0
_NARROW = 0.5
_EXAMPLES = 5
_SAMPLE = 2000  # items that the structure is measured of


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
    graph = build_graph(items, universal_network().n_neighbors, progress)
    expected = forecast(items.without_labels(), graph=graph)
    findings = [*_copies(items, graph), *_expected(expected), _structure(items), *_hubness(graph), _cone(items)]
    if items.labels is not None:
        findings += [*_purity(graph), *_scores(items, graph, expected, progress), *_class_sizes(items)]
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


def _expected(expected: Forecast) -> list[Finding]:
    """What the universal scorer expects of the items."""
    names = ("estimated_purity", "same_class_neighbors")
    if expected.distinct == 1:
        return [Finding(name, None) for name in names]
    looked_at = min(JUDGED, most_neighbors(expected.distinct))
    note = "the share that the universal scorer judges to be of the same class"
    return [
        Finding(names[0], expected.purity, f"of the {min(PURITY_OF, looked_at)} nearest, {note}"),
        Finding(names[1], expected.same_class, f"how many of the {looked_at} nearest seem to be of the same class"),
    ]


def _structure(items: Embeddings) -> Finding:
    """How much nearer the nearest are than in vectors of the same mean and covariance that form no groups.

    Gaussian vectors m + g (X - m) / sqrt(n - 1), g (n, n) standard normal, have the mean m and covariance of X (n, d).
    """
    if len(items) <= PURITY_OF + 1:
        return Finding("structure", None)
    rng = generator(0)
    by_id = np.argsort(items.ids, kind="stable")  # what is drawn does not depend on the order of the rows
    sample = items.vectors[by_id[rng.permutation(len(items))[:_SAMPLE]]].astype(np.float64)
    mean = sample.mean(axis=0)
    random = mean + rng.standard_normal((len(sample), len(sample))) @ (sample - mean) / np.sqrt(len(sample) - 1)
    real, unstructured = (_distance_of_nearest(vectors) for vectors in (sample, random))
    ratio = real / unstructured if unstructured else 1.0
    return Finding("structure", ratio, "distance of the nearest relative to random vectors; 1 where nothing is grouped")


def _distance_of_nearest(vectors: np.ndarray) -> float:
    similarities = search(Embeddings.from_vectors(vectors), k=PURITY_OF).similarities
    return float((1 - similarities).clip(min=0).mean())


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
    on_the_way = "true purity on the way from chance to what is possible"
    wrong = "share of the neighbours that could be right and are not: the most that refinement can gain"
    return [
        Finding("true_purity", true, f"of the {k} nearest, the share of the same class"),
        Finding("chance_purity", chance, "what it would be with random neighbours"),
        Finding("possible_purity", possible, "the most it could be: classes may have fewer items"),
        Finding("above_chance", (true - chance) / (possible - chance) if possible > chance else 0.0, on_the_way),
        Finding("room", 1 - true / possible if possible else None, wrong),
    ]


def _scores(items: Embeddings, graph: Graph, expected: Forecast, progress: Progress | None) -> list[Finding]:
    names = ("recall@1", "recall@10", "map@r")
    if len(items) == 1:
        return [Finding(name, None) for name in (*names, "possible_map@r", *(f"refined_{name}" for name in names))]
    alone = int((np.unique(labels_of(items), return_counts=True)[1] == 1).sum())
    before = _mean_scores(items, names, progress)
    after = _mean_scores(_refined(items, graph, expected, progress), names, progress)
    return [
        *(Finding(name, before[name], "of the vectors as they are") for name in names),
        Finding("possible_map@r", 1 - alone / len(items), "items alone in their class count as 0"),
        *(Finding(f"refined_{name}", after[name], "of the vectors refined without labels") for name in names),
    ]


def _refined(items: Embeddings, graph: Graph, expected: Forecast, progress: Progress | None) -> Embeddings:
    """As `entourage refine` returns them without labels: as they are, where the forecast is that it would not help."""
    if expected.warning:
        return items
    network, steps = universal_network(), RefinerSettings.n_steps
    *_, (vectors, _, _) = network.refine(
        items, items, network.n_neighbors, steps, progress, last_only=True, graph=graph
    )
    return items.replace_vectors(vectors)


def _mean_scores(items: Embeddings, names: tuple[str, ...], progress: Progress | None) -> dict[str, float]:
    def rank(unlabelled: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        for block, found in search_blocks(unlabelled, k=k):
            yield block, found
            if progress:
                progress("ranking", block.stop, len(items))

    scores = evaluate_ranking(items, rank)
    return {name: float(scores[name].mean()) for name in names}


def _class_sizes(items: Embeddings) -> list[Finding]:
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
            "small_classes", int((sizes <= JUDGED).sum()), f"with fewer others than the {JUDGED} that items attend to"
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
