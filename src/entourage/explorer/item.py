"""What the page shows of one item, or of a query that is none: its neighbours before and after, and why."""

from typing import Any

import numpy as np

from entourage.explorer.methods import Methods, Settings
from entourage.explorer.neighbourhood import SHOWN, attended, moved_ranks, ranked
from entourage.explorer.scene import Scene, Weighing
from entourage.neighbors import SearchIndex
from entourage.refiner.context import Context
from entourage.values import Embeddings, IntArray

__all__ = ["item_view", "names_of", "query_view"]


def item_view(scene: Scene, methods: Methods, row: int, settings: Settings | None = None) -> dict[str, Any]:
    """A point and its neighbourhood, before and after.

    Parameters
    ----------
    scene : Scene
    methods : Methods
    row : int
        The point.
    settings : Settings, optional
        How it is refined; as the run was kept, if None.

    Returns
    -------
    dict
        As JSON.
    """
    rows = np.array([row])
    before, pool = scene.points(rows, "before"), scene.pool["before"]
    if settings is None:
        after, after_pool = scene.points(rows, "after"), scene.pool["after"]
    else:
        refined = methods.refined(settings)
        after_pool = refined.pool
        inside = row >= scene.pool_start
        after = after_pool.items.take(rows - scene.pool_start) if inside else refined.refine(before)
    view = _rankings(scene, (before, pool), (after, after_pool))
    for when in ("before", "after"):
        view[when]["right"] = scene.right(row, view[when]["rows"])
    looked = _attention(scene, row) if settings is None else _attention_by(scene, row, refined.weighing, settings.steps)
    mentioned = {row, *view["before"]["rows"], *view["after"]["rows"], *(looked or {"rows": []})["rows"]}
    return {"row": row, "scores": _scores(scene, row), "attention": looked, **view, "names": names_of(scene, mentioned)}


def query_view(scene: Scene, methods: Methods, query: Embeddings, settings: Settings) -> dict[str, Any]:
    """A query that is no item: its neighbours before and after, and where it belongs on the map."""
    refined = methods.refined(settings)
    view = _rankings(scene, (query, scene.pool["before"]), (refined.refine(query), refined.pool))
    for when in ("before", "after"):
        view[when]["right"] = [-1] * len(view[when]["rows"])
    looked = None
    if refined.weighing is not None:
        looked = _looked(refined.weighing.context_of_queries(query, scene.pool["before"]), scene, settings.steps)
    mentioned = {*view["before"]["rows"], *view["after"]["rows"], *(looked or {"rows": []})["rows"]}
    return {"place": _place(scene, view), "attention": looked, **view, "names": names_of(scene, mentioned)}


def names_of(scene: Scene, rows: Any) -> dict[int, dict[str, str | None]]:
    """The id and the text of points."""
    return {int(row): {"id": scene.ids[row], "text": _short(scene.text(int(row)))} for row in sorted(rows)}


def _rankings(
    scene: Scene, before: tuple[Embeddings, SearchIndex], after: tuple[Embeddings, SearchIndex]
) -> dict[str, Any]:
    start = scene.pool_start
    (old, old_similar), (new, new_similar) = (ranked(*each, start, SHOWN) for each in (before, after))
    new_ranks, old_ranks = moved_ranks(*after, old - start), moved_ranks(*before, new - start)
    return {
        "before": _document(old, old_similar, new_ranks),
        "after": _document(new, new_similar, old_ranks),
    }


def _document(rows: IntArray, similarities: np.ndarray, others: IntArray) -> dict[str, Any]:
    """Of one query: rows, similarities, and the rank of each in the other ranking."""
    similar = [round(float(each), 4) for each in similarities[0]]
    return {"rows": rows[0].tolist(), "similarities": similar, "others": others[0].tolist()}


def _scores(scene: Scene, row: int) -> list[float] | None:
    """Average precision before and after."""
    scores = scene.run.per_query
    if scores is None or row >= scene.n_items:
        return None
    return [round(float(scores[when]["map@r"][row]), 4) for when in ("before", "after")]


def _attention(scene: Scene, row: int) -> dict[str, Any] | None:
    """Whom the point attends to, and why; None where it was refined by something else."""
    if scene.explains:
        return _attention_by(scene, row, scene.weighing, scene.run.n_steps)
    if not scene.run.has_refiner or row >= scene.n_items:
        return None
    kept = scene.run.attention_of([row])  # (T, 1, k)
    rows = scene.pool["before"].rows_of(kept.neighbor_ids[0]) + scene.pool_start
    weights = [[round(float(each), 4) for each in step[0]] for step in kept.weights]
    return {"rows": rows.tolist(), "weights": weights, "steps": len(weights), "length": len(rows)}


def _attention_by(scene: Scene, row: int, by: Weighing | None, steps: int) -> dict[str, Any] | None:
    """Whom the point attends to by another method; None where that weighs nobody, or takes no step."""
    return None if by is None or not steps else _looked(scene.context_of(np.array([row]), by), scene, steps)


def _looked(context: Context, scene: Scene, steps: int) -> dict[str, Any]:
    found = attended(context, scene.pool_start)
    looked = found.document()
    return looked | {"weights": [looked["weights"]], "steps": steps, "length": found.rows.shape[1]}


def _place(scene: Scene, view: dict[str, Any]) -> list[list[float]]:
    """Where a query belongs at each step: amid its five nearest, before at first and after at last."""
    last = len(scene.places) - 1
    ends = [scene.places[step, view[when]["rows"][:5]].mean(axis=0) for step, when in ((0, "before"), (last, "after"))]
    shares = [step / max(last, 1) for step in range(last + 1)]
    return [[float(each) for each in (1 - share) * ends[0] + share * ends[1]] for share in shares]


def _short(text: str | None, most: int = 280) -> str | None:
    return text if text is None or len(text) <= most else text[: most - 1] + "…"
