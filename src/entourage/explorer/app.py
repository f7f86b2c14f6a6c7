"""What the page asks for over HTTP: the page itself, arrays as raw bytes, everything else as JSON.

Nothing of a request becomes a path: files of the page are known by name, points by number, columns by name.
"""

import csv
import io
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from entourage.errors import EntourageError
from entourage.explorer.access import Guard
from entourage.explorer.desk import Desk
from entourage.explorer.methods import Settings
from entourage.explorer.pages import FILES
from entourage.runtime.display import Stage, duration

__all__ = ["Preparing", "make_app"]

Answer = TypeVar("Answer")

_MOST_FOUND = 30
_LISTED = 400  # points that are asked for at once

_FORMULA = re.compile(r"[=+@\t\r\n]|-(?![\d.]+$)")  # a negative number is none

Row = Annotated[int, Query(ge=0)]


@dataclass
class Preparing:
    """What is being prepared for the page, and how far that is; then the desk that answers."""

    desk: Desk | None = None
    stage: str = "opening the run"
    done: int = 0
    total: int = 1
    error: str | None = None
    _clock: Stage | None = field(default=None, repr=False)

    def __call__(self, title: str, done: int, total: int, /) -> None:
        """Note progress."""
        now = time.monotonic()
        if self._clock is None or title != self.stage or not self._clock.goes_on_with(done, total):
            self._clock = Stage(title, done, total, now)
        self._clock.update(title, done, total, now)
        self.stage, self.done, self.total = title, done, total

    def start(self, make: Callable[[], Desk]) -> threading.Thread:
        """Prepare in a thread; an error is kept as a sentence for the page."""

        def prepare() -> None:
            try:
                self.desk = make()
            except (EntourageError, OSError) as error:
                self.error = str(error)
            except Exception as error:  # the page must not wait for ever
                self.error = f"something went wrong ({type(error).__name__}: {error}); see the terminal"
                raise

        thread = threading.Thread(target=prepare, daemon=True)
        thread.start()
        return thread

    def document(self) -> dict[str, Any]:
        """How far it is, as the page is told."""
        left = None if self._clock is None else self._clock.left(time.monotonic())
        told = {"stage": self.stage, "done": self.done, "total": self.total, "error": self.error}
        return told | {"left": None if left is None else duration(left), "ready": self.desk is not None}

    def ready(self) -> Desk:
        """What answers; a 503 until it is there."""
        if self.desk is None:
            raise HTTPException(503, self.error or f"the page is not ready: {self.stage}; ask again in a moment")
        return self.desk


def make_app(preparing: Preparing, *, token: str | None = None) -> FastAPI:
    """Make the application behind the page.

    Parameters
    ----------
    preparing : Preparing
    token : str, optional
        What requests have to bring; without one, only those that are sent to this machine by its own name are answered.

    Returns
    -------
    FastAPI
    """
    app = FastAPI(title="Entourage explorer", docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(EntourageError)
    async def refused(request: Request, error: EntourageError) -> Response:
        return JSONResponse({"detail": str(error)}, 422)

    _add_files(app)
    _add_scene(app, preparing)
    _add_items(app, preparing)
    _add_lists(app, preparing)
    _add_live(app, preparing)
    app.add_middleware(Guard, token=token)
    return app


def _add_files(app: FastAPI) -> None:
    @app.get("/")
    async def index() -> Response:
        return _file("index.html")

    @app.get("/page/{name}")
    async def file(name: str) -> Response:
        return _file(name)


def _file(name: str) -> Response:
    if name not in FILES:
        raise HTTPException(404, "there is no such file")
    content, kind = FILES[name]
    return Response(content, media_type=kind)


def _add_scene(app: FastAPI, preparing: Preparing) -> None:
    @app.get("/api/progress")
    async def progress() -> Response:
        return JSONResponse(preparing.document())

    @app.get("/api/scene")
    async def scene() -> Response:
        return JSONResponse(preparing.ready().summary)

    @app.get("/api/places")
    async def places() -> Response:
        return _bytes(preparing.ready().scene.places)

    @app.get("/api/labels")
    async def labels() -> Response:
        known = preparing.ready().scene.labels
        if known is None:
            raise HTTPException(404, "the items have no labels")
        return _bytes(known[1].astype(np.int32))

    @app.get("/api/columns/{name}")
    async def column(name: str) -> Response:
        columns = preparing.ready().columns
        if name not in columns:
            raise HTTPException(404, "there is no such column")
        return _bytes(columns[name].values)


def _add_items(app: FastAPI, preparing: Preparing) -> None:
    @app.get("/api/items/{row}")
    async def item(row: int, method: str | None = None, k: int = 12, steps: int = 5, blend: float = 0.5) -> Response:
        desk = preparing.ready()
        desk.check_row(row)
        settings = None if method in (None, "kept") else desk.methods.check(Settings(str(method), k, steps, blend))
        return JSONResponse(await run_in_threadpool(desk.item, row, settings))

    @app.get("/api/names")
    async def names(rows: Annotated[str, Query(max_length=8000)]) -> Response:
        desk = preparing.ready()
        return JSONResponse(desk.names(_rows(rows, desk)))

    @app.get("/api/pictures/{row}")
    async def picture(row: int) -> Response:
        desk = preparing.ready()
        desk.check_row(row)
        found = await run_in_threadpool(desk.thumbnail, row)
        if found is None:
            raise HTTPException(404, "there is no picture of this item")
        return Response(found[0], media_type=found[1], headers={"cache-control": "private, max-age=3600"})

    @app.get("/api/search")
    async def search(q: Annotated[str, Query(max_length=500)]) -> Response:
        return JSONResponse(await run_in_threadpool(preparing.ready().find, q, _MOST_FOUND))


def _add_lists(app: FastAPI, preparing: Preparing) -> None:
    @app.get("/api/overview")
    async def overview() -> Response:
        return JSONResponse(await run_in_threadpool(lambda: preparing.ready().overview))

    @app.get("/api/doctor")
    async def doctor() -> Response:
        return JSONResponse(await run_in_threadpool(lambda: preparing.ready().doctor))

    @app.get("/api/suspects")
    async def suspects() -> Response:
        return JSONResponse(await run_in_threadpool(lambda: preparing.ready().suspects))

    @app.get("/api/suspects.csv")
    async def suspects_csv() -> Response:
        desk = preparing.ready()
        lines = await run_in_threadpool(lambda: desk.suspect_lines)
        return _table(["id", "label", "suggested_label", "share_of_trust"], lines, "suspected-label-errors.csv")

    @app.get("/api/copies.csv")
    async def copies_csv() -> Response:
        desk = preparing.ready()
        lines = await run_in_threadpool(lambda: desk.copy_lines)
        return _table(["id", "label", "other_id", "other_label"], lines, "copies-across-labels.csv")

    @app.post("/api/ids.csv")
    async def ids_csv(request: Request) -> Response:
        """The ids of points; their rows come as raw int32."""
        desk = preparing.ready()
        body = await request.body()
        if len(body) % 4:
            raise HTTPException(400, "the rows are cut off; wanted numbers of four bytes each")
        rows = np.frombuffer(body, "<i4")
        if rows.size and not 0 <= rows.min() <= rows.max() < len(desk.scene):
            raise HTTPException(422, f"rows go from {rows.min()} to {rows.max()}; wanted 0 to {len(desk.scene) - 1}")
        return _table(["id", "label"], desk.lines_of(rows), "selection.csv")


def _add_live(app: FastAPI, preparing: Preparing) -> None:
    @app.post("/api/queries")
    async def queries(
        request: Request,
        name: Annotated[str, Query(max_length=300)] = "",
        method: str = "",
        k: int = 12,
        steps: int = 5,
        blend: float = 0.5,
    ) -> Response:
        """Refine what was dropped against the pool, and rank it."""
        desk = preparing.ready()
        body = await request.body()
        asked = desk.methods.check(Settings(method or desk.usual_method, k, steps, blend))
        settings = asked if method else desk.usual
        return JSONResponse(await run_in_threadpool(desk.queries, body, name, settings))


def _rows(given: str, desk: Desk) -> list[int]:
    parts = given.split(",")[:_LISTED]
    if not all(part.isascii() and part.isdecimal() and len(part) < 12 for part in parts):
        raise HTTPException(422, "rows are not numbers; wanted such as 3,8,14")
    rows = [int(part) for part in parts]
    for row in rows:
        desk.check_row(row)
    return rows


def _bytes(array: np.ndarray) -> Response:
    shape = ",".join(map(str, array.shape))
    return Response(array.tobytes(), media_type="application/octet-stream", headers={"x-shape": shape})


def _table(head: list[str], lines: list[list[Any]], name: str) -> Response:
    """A .csv; what a spreadsheet would take for a formula is made a text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([[_harmless(each) for each in line] for line in lines])
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _harmless(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    value = value.replace("\r", " ")  # which csv does not quote, and some take for the end of a line
    return f"'{value}" if _FORMULA.match(value) else value
