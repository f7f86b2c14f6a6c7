"""Everything the page can ask about one scene, each answer computed once where it is always the same."""

import functools
import io
import secrets
import threading
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException

from entourage.explorer.columns import Column, columns_of
from entourage.explorer.item import item_view, names_of, query_view
from entourage.explorer.methods import Methods, Settings
from entourage.explorer.overview import copies_across_labels, doctor_of, overview, suspects
from entourage.explorer.queries import Encoder, read_dropped
from entourage.explorer.scene import Scene
from entourage.neighbors import check_same_encoder

__all__ = ["Desk"]

_SUSPECTS = 300  # on the page; the .csv has all
_PICTURES_KEPT = 4096


class Desk:
    """Answers what is asked about a scene.

    Parameters
    ----------
    scene : Scene
    encoder : Encoder, optional
        What makes vectors of dropped pictures and texts; see queries.py.
    """

    def __init__(self, scene: Scene, encoder: Encoder | None = None) -> None:
        self.scene, self.methods, self._encoder = scene, Methods(scene), encoder or Encoder(None)
        self._examining = threading.Lock()
        self._stamp = secrets.token_hex(4)  # what a browser keeps of one run is not shown for another
        self.thumbnail = functools.lru_cache(_PICTURES_KEPT)(self._thumbnail)

    def prepare(self) -> "Desk":
        """Compute now what the page asks for first."""
        _ = self.scene.places, self.columns, self.summary
        return self

    @functools.cached_property
    def columns(self) -> dict[str, Column]:
        """What points can be coloured by."""
        return columns_of(self.scene)

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        """What the page has to know before it shows anything."""
        scene, run = self.scene, self.scene.run
        return {
            "name": scene.name or run.folder.absolute().name,
            "points": len(scene),
            "items": scene.n_items,
            "poolStart": scene.pool_start,
            "steps": len(scene.places) - 1,
            "labels": None if scene.labels is None else scene.labels[0],
            "kind": run.appearance.kind,
            "columns": {name: column.document() for name, column in self.columns.items()},
            "methods": self.methods.offered,
            "own": self.methods.own,
            "stamp": self._stamp,
            "usual": self.usual_method,
            "most": {
                "k": min(self.methods.most_neighbors, max(len(scene) - scene.pool_start - 1, 1)),
                "steps": self.methods.most_steps,
            },
            "encoder": self._encoder.name,
            "dim": run.items.dim,
        }

    @property
    def usual_method(self) -> str:
        """What dropped queries are refined by: the run's own refiner, where it can refine one."""
        return next(name for name in ("fitted", "universal", "raw") if name in self.methods.offered)

    @property
    def usual(self) -> Settings:
        """The usual method with its own settings."""
        of = self.methods.offered[self.usual_method]
        return Settings(self.usual_method, of["k"], of["steps"], of["blend"])

    def check_row(self, row: int) -> None:
        """A 404 for what is no point."""
        if not 0 <= row < len(self.scene):
            raise HTTPException(404, f"there is no item {row}; wanted 0 to {len(self.scene) - 1}")

    def item(self, row: int, settings: Settings | None) -> dict[str, Any]:
        """See `item_view`."""
        with self.scene.computing():
            return item_view(self.scene, self.methods, row, settings)

    def names(self, rows: list[int]) -> dict[int, dict[str, str | None]]:
        """The id and the text of points."""
        return names_of(self.scene, set(rows))

    def _thumbnail(self, row: int, side: int = 160) -> tuple[bytes, str] | None:
        """The picture of a point and its type, small."""
        picture = self.scene.picture(row, side)
        if picture is None:
            return None
        content, grey = io.BytesIO(), picture.mode == "L"
        picture.save(content, "PNG" if grey else "JPEG", **({} if grey else {"quality": 85}))
        return content.getvalue(), "image/png" if grey else "image/jpeg"

    def find(self, words: str, most: int) -> dict[str, Any]:
        """Labels and points that match: by id, by label, by text."""
        wanted = words.strip().casefold()
        if not wanted:
            return {"labels": [], "rows": [], "names": {}}
        labels = [] if self.scene.labels is None else self.scene.labels[0]
        named = sorted(
            (name.casefold().find(wanted), code) for code, name in enumerate(labels) if wanted in _fold(name)
        )
        rows = self._found_rows(wanted)[:most]
        return {"labels": [code for _, code in named[:8]], "rows": rows, "names": names_of(self.scene, rows)}

    def _found_rows(self, wanted: str) -> list[int]:
        ids = [(each != wanted, len(each), row) for row, each in enumerate(self._folded_ids) if wanted in each]
        found = [row for *_, row in sorted(ids)]
        texts = [row for row, text in enumerate(self._folded_texts) if wanted in text]
        return list(dict.fromkeys([*found, *texts]))

    @functools.cached_property
    def _folded_ids(self) -> list[str]:
        return [_fold(each) for each in self.scene.ids]

    @functools.cached_property
    def _folded_texts(self) -> list[str]:
        texts = (self.scene.text(row) for row in range(len(self.scene)))
        return [_fold(each or "") for each in texts] if self.scene.run.appearance.texts is not None else []

    # ---- the set -----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def overview(self) -> dict[str, Any]:
        """Scores and classes."""
        return overview(self.scene)

    @functools.cached_property
    def doctor(self) -> dict[str, Any]:
        """The doctor's verdict; items can be looked at meanwhile."""
        with self._examining:
            return doctor_of(self.scene)

    @functools.cached_property
    def suspects(self) -> dict[str, Any]:
        """Labels to check: suspected errors, and copies with different labels."""
        found, pairs = self._suspects, self._copies
        shown = [
            {
                "row": each.row,
                "suggested": each.suggested,
                "share": round(each.share, 3),
                "near": each.neighbors[:6].tolist(),
            }
            for each in found[:_SUSPECTS]
        ]
        rows = {each["row"] for each in shown} | {row for each in shown for row in each["near"]}
        rows |= {row for pair in pairs for row in pair}
        return {"suspects": shown, "all": len(found), "copies": pairs, "names": names_of(self.scene, rows)}

    @functools.cached_property
    def _suspects(self) -> list[Any]:
        with self.scene.computing():
            return suspects(self.scene)

    @functools.cached_property
    def _copies(self) -> list[tuple[int, int]]:
        with self.scene.computing():
            return copies_across_labels(self.scene)

    @property
    def suspect_lines(self) -> list[list[Any]]:
        """Lines of a .csv."""
        return [
            [self.scene.ids[each.row], self._label(each.row), self._named(each.suggested), round(each.share, 4)]
            for each in self._suspects
        ]

    @property
    def copy_lines(self) -> list[list[Any]]:
        """Lines of a .csv."""
        return [[text for row in pair for text in (self.scene.ids[row], self._label(row))] for pair in self._copies]

    def lines_of(self, rows: np.ndarray) -> list[list[Any]]:
        """The id and the label of points."""
        return [[self.scene.ids[row], self._label(row)] for row in rows.tolist()]

    def _label(self, row: int) -> str:
        return "" if self.scene.labels is None else self._named(int(self.scene.labels[1][row]))

    def _named(self, code: int) -> str:
        return self.scene.labels[0][code] if self.scene.labels is not None and code >= 0 else ""

    # ---- live --------------------------------------------------------------------------------------------------------

    def queries(self, body: bytes, name: str, settings: Settings) -> dict[str, Any]:
        """What was dropped, refined and ranked."""
        dropped = read_dropped(body, name, self._encoder)
        with self.scene.computing():
            check_same_encoder(dropped.queries, self.scene.pool["before"].items)
            views = [
                query_view(self.scene, self.methods, dropped.queries.take([row]), settings)
                for row in range(len(dropped.queries))
            ]
        named = zip(dropped.names, views, strict=True)
        return {"kind": dropped.kind, "settings": settings._asdict(), "queries": [{"name": n, **v} for n, v in named]}


def _fold(text: str) -> str:
    return text.casefold()
