"""How a row is measured: values by name, fractions but for correlations and gradients, and series for the figures."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from entourage.errors import InputError
from entourage.evaluation import evaluate_embeddings, evaluate_ranking
from entourage.evaluation.names import RECALL_AT, RECALL_AT_WITH_EXCLUSIONS
from entourage.neighbors import search
from entourage.runs.reproduce.making import Making, Order
from entourage.runtime.config import check_known
from entourage.values import Embeddings, Neighbors, brief

if TYPE_CHECKING:
    from entourage.encoders.protocol import FeatureMapEncoder

__all__ = ["MEASURES", "lost_at", "measure"]

_TRAIN = "train "  # what a metric of the training classes begins with
_FITTED = ("paper", "relational")


class Sets(NamedTuple):
    """The test items, or queries and their gallery."""

    queries: Embeddings
    gallery: Embeddings | None

    def __repr__(self) -> str:
        return brief(self)


def measure(how: str, making: Making, order: Order, metrics: Iterable[str]) -> dict[str, Any]:
    """Measure a row.

    Parameters
    ----------
    how : str
        One of MEASURES.
    making : Making
        What makes trainings, vectors and refiners.
    order : Order
        What the row asks for.
    metrics : iterable of str
        What is shown of it; more may be measured.

    Returns
    -------
    dict
        Values by name; lists are series over steps or learners.
    """
    check_known(how, MEASURES, "the measure")
    return MEASURES[how](making, order, tuple(metrics))


# ---- what is done with the embeddings ----------------------------------------------------------------------------


def test_sets(making: Making, order: Order) -> Sets:
    """The test items as the encoder sees them."""
    found = [making.embedded(order, split) for split in making.test_splits(order.dataset)]
    return Sets(found[0], found[1] if len(found) > 1 else None)


def refined_sets(making: Making, order: Order) -> Sets:
    """The test items after what the recipe does with them."""
    sets, by = test_sets(making, order), order.recipe.refine.get("by", "")
    if not by:
        return sets
    if by in _FITTED:
        return _moved(making.refiner(order), sets)
    if by == "self-attention":
        from entourage.baselines import SelfAttention

        known = SelfAttention().get_params()
        options = {name: value for name, value in making.scale.refiner(order.recipe).items() if name in known}
        method = SelfAttention(**options | {"random_state": order.seed})
        method.fit(making.embedded(order, "train"))
        gallery = None if sets.gallery is None else method.transform(sets.gallery)
        return Sets(method.transform(sets.queries), gallery)
    if by == "average":
        return _averaged(sets, **making.scale.refining(order.recipe))
    return _by_messages(making, order, sets)


def _moved(refiner: Any, sets: Sets) -> Sets:
    """By a refiner: items among themselves, or queries and gallery."""
    if sets.gallery is not None:
        return Sets(*refiner.transform_both(sets.queries, sets.gallery))
    return Sets(refiner.transform(sets.queries, context=sets.queries), None)


def _averaged(sets: Sets, k: int, alpha: float) -> Sets:
    """Every item and its k nearest, weighted by their similarities to the power of alpha."""
    from entourage.baselines.expansion import expand_queries

    searched = sets.queries if sets.gallery is None else sets.gallery
    expanded = [
        None if items is None else expand_queries(items, searched, search(items, searched, k), alpha) for items in sets
    ]
    return Sets(cast(Embeddings, expanded[0]), expanded[1])


def _by_messages(making: Making, order: Order, sets: Sets) -> Sets:
    """By the network of the training; queries and gallery exchange messages as one set."""
    from entourage.systems.intra_batch.inference import refine_by_messages
    from entourage.systems.intra_batch.saving import load_network

    network = load_network(making.trained(order).run.folder)
    together = sets.queries if sets.gallery is None else _joined(sets.queries, sets.gallery)
    options = making.scale.refining(order.recipe) | {"seed": order.seed}
    refined = refine_by_messages(network, together, order.recipe.refine["by"], progress=making.progress, **options)
    if sets.gallery is None:
        return Sets(refined, None)
    count = len(sets.queries)
    return Sets(
        sets.queries.replace_vectors(refined.vectors[:count]), sets.gallery.replace_vectors(refined.vectors[count:])
    )


def _joined(queries: Embeddings, gallery: Embeddings) -> Embeddings:
    return Embeddings.from_vectors(np.concatenate([queries.vectors, gallery.vectors]))


# ---- measures ----------------------------------------------------------------------------------------------------


def _scores(making: Making, order: Order, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Retrieval scores of the test items and, where asked for, of the training items."""
    if order.recipe.refine.get("by") == "conditional":
        return _conditional(making, order)
    sets = refined_sets(making, order)
    values = _evaluated(making, order, sets, metrics)
    if any(name.startswith(_TRAIN) for name in metrics):
        seen = Sets(making.embedded(order, "train"), None)
        of_training = evaluate_embeddings(seen.queries, nmi=False, progress=making.progress).metrics
        values |= {f"{_TRAIN}{name}": value for name, value in of_training.items()}
    return values


def _evaluated(making: Making, order: Order, sets: Sets, metrics: tuple[str, ...]) -> dict[str, Any]:
    searched = len(sets.queries) - 1 if sets.gallery is None else len(sets.gallery)
    asked = {int(name.removeprefix("recall@")) for name in metrics if name.startswith("recall@")}
    usual = not asked - {*RECALL_AT, *RECALL_AT_WITH_EXCLUSIONS}
    depths = None if usual else sorted(k for k in {*RECALL_AT, *asked} if k <= searched)
    options: dict[str, Any] = {"recall_at": depths, "nmi": "nmi" in metrics, "seed": order.seed}
    found = evaluate_embeddings(*sets, **options, progress=making.progress).metrics
    return dict(found)


def _steps(making: Making, order: Order, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Scores after every block of the refiner; the last are the row's own."""
    sets, refiner = test_sets(making, order), making.refiner(order)
    among = sets.queries if sets.gallery is None else sets.gallery
    queries = refiner.trajectory(sets.queries, among, progress=making.progress).steps
    gallery = None if sets.gallery is None else refiner.trajectory(sets.gallery, sets.gallery).steps
    scores = []
    for step, vectors in enumerate(queries):
        refined = sets.queries.replace_vectors(vectors)
        searched = None if gallery is None or sets.gallery is None else sets.gallery.replace_vectors(gallery[step])
        scores.append(_evaluated(making, order, Sets(refined, searched), metrics))
    by_step = {f"{name} by step": [each[name] for each in scores] for name in ("recall@1", "map@r")}
    return scores[-1] | by_step


def _slices(making: Making, order: Order, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Every slice of the embedding alone, the first ones together, and how alike they are."""
    from entourage.systems.divide_and_conquer.analysis import score_slices

    sets = test_sets(making, order)
    items = sets.queries if sets.gallery is None else sets.gallery
    count = making.scale.settings.get("learners", 8)
    depth = lost_at(len(items))
    found = score_slices(items, count, recall_at=(1, 2, 4, 8), lost_at=depth, progress=making.progress)
    alone = {f"learner {number}": value for number, value in enumerate(found.alone[1], 1)}
    first = {f"recall@{k} of the first": values for k, values in found.first.items()}
    rest = {
        "mean of learners": float(np.mean(found.alone[1])),
        "correlation": found.correlation,
        "found by one alone": sum(map(len, found.only)),
        "lost at": depth,
    }
    return _evaluated(making, order, sets, metrics) | alone | rest | first


def lost_at(count: int) -> int:
    """How deep the other learners must find nothing: less deep in small sets, where hardly a query is lost at 30."""
    return 30 if count >= 20_000 else 5


def _gradients(making: Making, order: Order, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Scores, and the median magnitude of gradients at the feature map in the last epoch."""
    from entourage.systems.cross_image.probe import median_magnitude, read_gradients

    values = _scores(making, order, metrics)
    if order.recipe.refine.get("by"):
        return values
    entries = read_gradients(making.trained(order).run.folder)
    medians = [median_magnitude(entry["with_blocks"]) for entry in entries]
    return values | ({"median gradient": medians[-1], "median gradient by epoch": medians} if medians else {})


def _conditional(making: Making, order: Order) -> dict[str, Any]:
    """Scores of the nearest m ranked anew by conditional similarity."""
    from entourage.runs.layout import CROSS_IMAGE
    from entourage.systems.cross_image.blocks import load_blocks
    from entourage.systems.cross_image.encoding import encode
    from entourage.systems.cross_image.reranking import rerank

    run = making.trained(order).run
    searched = making.items(order.dataset, making.test_splits(order.dataset)[-1])
    if isinstance(searched, Embeddings):
        raise InputError(f"{order.dataset} holds vectors; wanted pictures to condition on one another")
    blocks = load_blocks(run.folder / CROSS_IMAGE)
    encoder = cast("FeatureMapEncoder", run.encoder)
    # A gallery is searched among itself: conditional similarities know no cameras.
    encoded = encode(encoder, blocks, searched, progress=making.progress)
    items = Embeddings.from_vectors(encoded.vectors.numpy(), searched.ids, searched.labels)
    least = int(order.recipe.refine.get("m", 20))

    def ranked(_: Embeddings, k: int) -> Iterator[tuple[slice, Neighbors]]:
        m = min(max(k, least), len(items) - 1)
        yield slice(0, len(items)), rerank(blocks, encoded, m=m, progress=making.progress)

    return {name: float(values.mean()) for name, values in evaluate_ranking(items, ranked).items()}


def _nothing(making: Making, order: Order, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Of a figure without numbers: what it is drawn from is made, and the recall of that is kept."""
    return {"recall@1": _evaluated(making, order, refined_sets(making, order), ("recall@1",))["recall@1"]}


MEASURES: dict[str, Callable[[Making, Order, tuple[str, ...]], dict[str, Any]]] = {
    "scores": _scores,
    "steps": _steps,
    "slices": _slices,
    "gradients": _gradients,
    "nothing": _nothing,
}
