"""The page of a scene as one file that opens from disk: everything the server would answer, computed beforehand."""

import base64
from pathlib import Path
from typing import Any

import numpy as np

from entourage.errors import InputError
from entourage.explorer.bundle import one_file
from entourage.explorer.desk import Desk
from entourage.explorer.neighbourhood import SHOWN, attended, moved_ranks, ranked
from entourage.explorer.scene import Scene
from entourage.stores.atomic import whole_file
from entourage.values import IntArray

__all__ = ["MOST_POINTS", "export_page"]

MOST_POINTS = 12_000
_SIDE = 72  # pixels of a picture in the file
_NO_ROW = -1
_TEXT = 280  # letters of a text


def export_page(desk: Desk, path: Path, *, overwrite: bool = False) -> Path:
    """Write the page.

    Parameters
    ----------
    desk : Desk
    path : Path
        A .html.
    overwrite : bool
        Whether a file that is there is replaced.

    Returns
    -------
    Path
        The same path.
    """
    scene = desk.scene
    if len(scene) > MOST_POINTS:
        raise InputError(
            f"there are {len(scene):,} points; wanted {MOST_POINTS:,} at most in one file: refine a part of them, or "
            "serve the page"
        )
    with whole_file(
        path, overwrite=overwrite, ours=lambda there: there.read_bytes()[:9].lower() == b"<!doctype"
    ) as new:
        new.write_text(one_file(_data(desk.prepare())), encoding="utf-8")
    return path


def _data(desk: Desk) -> dict[str, Any]:
    scene = desk.scene
    texts = [scene.text(row) for row in range(len(scene))] if scene.run.appearance.texts is not None else None
    labels = None if scene.labels is None else _packed(scene.labels[1].astype(np.int32))
    return {
        "scene": desk.summary | {"methods": {}, "encoder": None},
        "places": _packed(scene.places),
        "labels": labels,
        "columns": {name: _packed(column.values) for name, column in desk.columns.items()},
        "ids": scene.ids,
        "texts": None if texts is None else [None if text is None else text[:_TEXT] for text in texts],
        "items": _neighbourhoods(scene),
        "pictures": _pictures(desk) if scene.has_pictures() else None,
        "overview": desk.overview,
        "doctor": desk.doctor,
        "suspects": desk.suspects,
        "scores": _scores(scene),
    }


def _packed(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _neighbourhoods(scene: Scene) -> dict[str, Any]:
    """What `item_view` says of each point, as arrays (P, k), with how many columns each has."""
    groups = [np.arange(scene.n_items), np.arange(scene.n_items, len(scene))]
    parts = [_of_group(scene, rows) for rows in groups if len(rows)]
    packed: dict[str, Any] = {}
    for name in parts[0]:
        width = max(part[name].shape[1] for part in parts)
        whole = np.concatenate([_widened(part[name], width) for part in parts])
        packed[name] = {"width": width, "real": whole.dtype.kind == "f", "values": _packed(_small(whole))}
    packed["steps"] = scene.run.n_steps
    return packed


def _of_group(scene: Scene, rows: IntArray) -> dict[str, np.ndarray]:
    start = scene.pool_start
    found: dict[str, np.ndarray] = {}
    points = {when: scene.points(rows, when) for when in ("before", "after")}
    near = {when: ranked(points[when], scene.pool[when], start, SHOWN) for when in points}
    for when, other in (("before", "after"), ("after", "before")):
        found[f"{when}_rows"], found[f"{when}_similarities"] = near[when]
        found[f"{when}_others"] = moved_ranks(points[other], scene.pool[other], near[when][0] - start)
        found[f"{when}_right"] = np.array([scene.right(int(row), near[when][0][at]) for at, row in enumerate(rows)])
    if scene.explains:
        looked = attended(scene.context_of(rows), start)
        found |= {f"attention_{name}": np.asarray(values) for name, values in looked._asdict().items()}
    return found


def _widened(array: np.ndarray, width: int) -> np.ndarray:
    return np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=_NO_ROW)


def _small(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int32)


def _pictures(desk: Desk) -> list[str | None]:
    """Each as a data: address, small."""
    made = (desk.thumbnail(row, _SIDE) for row in range(len(desk.scene)))
    return [None if each is None else f"data:{each[1]};base64,{base64.b64encode(each[0]).decode()}" for each in made]


def _scores(scene: Scene) -> dict[str, str] | None:
    scores = scene.run.per_query
    if scores is None:
        return None
    return {when: _packed(scores[when]["map@r"].astype(np.float32)) for when in ("before", "after")}
