"""The HTTP interface of a gallery: its endpoints, as /openapi.json documents them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from starlette.responses import Response

from entourage import __version__
from entourage.refiner.gallery import Gallery
from entourage.serve import bodies
from entourage.serve.bodies import BYTES, JSON, NPY
from entourage.serve.limits import Guard, Limits
from entourage.serve.metrics import Timed
from entourage.serve.service import Service

__all__ = ["make_app"]

_REFUSALS = {
    400: "The request cannot be read.",
    401: "The token is missing or another one.",
    403: "The request was meant for another host.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "The request cannot be carried out, and why.",
    429: "Too many changes wait already.",
    507: "The disk does not take the change, and why.",
}


def make_app(gallery: Gallery, *, token: str | None = None, limits: Limits | None = None) -> FastAPI:
    """Make the application that serves a gallery.

    Parameters
    ----------
    gallery : Gallery
        It is closed when the application ends.
    token : str, optional
        What requests have to send as `Authorization: Bearer`. Without one, only those that are sent to this machine by
        its own name are answered.
    limits : Limits, optional

    Returns
    -------
    FastAPI
    """
    limits = limits or Limits()
    service = Service(gallery, limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="Entourage",
        description="Search in a gallery whose items come and go, by refined vectors.",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # those pages load scripts from elsewhere
        redoc_url=None,
    )
    _add_reading(app, service)
    _add_changing(app, service)
    _add_watching(app, service)
    app.add_middleware(Guard, limits=limits, token=token)
    app.add_middleware(Timed, metrics=service.metrics)
    return app


def _add_reading(app: FastAPI, service: Service) -> None:
    @app.post("/search", **_documented(bodies.Search, bodies.FoundAnswer))
    async def search(request: Request) -> Response:
        """Find the nearest items of a vector, or of each of several."""
        read = await _reader(bodies.Search, request, service)
        return JSONResponse(await service.read(lambda: service.search(read())))

    @app.post("/refine", **_documented(bodies.Queries, bodies.RefinedAnswer))
    async def refine(request: Request) -> Response:
        """Refine vectors among the items, to search an index of refined vectors with."""
        read = await _reader(bodies.Queries, request, service)
        version, vectors = await service.read(lambda: service.refine(read()))
        wanted = request.headers.get("accept", "")
        for kind in (BYTES, NPY):
            if kind in wanted:
                return bodies.as_bytes(vectors, version, kind)
        return JSONResponse({"version": version, "vectors": vectors.tolist()})

    @app.post("/rerank", **_documented(bodies.Rerank, bodies.RerankedAnswer, binary=False))
    async def rerank(request: Request) -> Response:
        """Order what any index returned for a query anew."""
        read = await _reader(bodies.Rerank, request, service)
        return JSONResponse(await service.read(lambda: service.rerank(read())))

    @app.get("/changes", response_model=bodies.ChangesAnswer, responses=_responses(401, 403, 422))
    async def changes(
        since: Annotated[int, Query(ge=0, lt=2**63, description="The version that an index has followed so far.")] = 0,
        after: Annotated[
            str | None, Query(max_length=512, description="`after` of the page before, if there was more.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=10_000, description="How many to tell of at once.")] = 1000,
    ) -> Response:
        """What an index of refined vectors has to replace and remove."""
        page = await service.read(lambda: service.changes(since, after, limit))
        listed = {"ids": page.ids.tolist(), "vectors": page.vectors.tolist(), "removed": page.removed.tolist()}
        return JSONResponse({"version": page.version, "after": page.after, "more": page.more} | listed)


def _add_changing(app: FastAPI, service: Service) -> None:
    @app.post("/items", **_documented(bodies.Items, bodies.ReportAnswer, 429, 507))
    async def add(request: Request) -> Response:
        """Add items; those that are there already get the new vectors. The change is on the disk when this answers."""
        read = await _reader(bodies.Items, request, service)
        return JSONResponse(await service.write(await service.read(lambda: service.adding(read()))))

    @app.delete("/items/{id:path}", response_model=bodies.ReportAnswer, responses=_responses(401, 403, 404, 429, 507))
    async def remove(id: Annotated[str, Path(max_length=512)]) -> Response:
        """Remove an item. The change is on the disk when this answers."""
        return JSONResponse(await service.write(service.removing(id)))


def _add_watching(app: FastAPI, service: Service) -> None:
    @app.get("/health", response_model=bodies.HealthAnswer, responses=_responses(403))
    async def health() -> Response:
        """Whether the service lives, and what it serves."""
        gallery = service.gallery
        known = {"version": gallery.version, "items": len(gallery), "dim": gallery.dim}
        encoder = {"encoder": gallery.encoder.name, "fingerprint": gallery.encoder.fingerprint}
        return JSONResponse({"status": "ok"} | known | encoder)

    @app.get("/metrics", response_class=PlainTextResponse, responses=_responses(401, 403))
    async def metrics() -> Response:
        """Counters in the text format of Prometheus."""
        return PlainTextResponse(service.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _reader(model: Any, request: Request, service: Service) -> Callable[[], Any]:
    """What makes sense of the body of a request; to be called in a thread, as a large one takes its time."""
    body = await request.body()
    return lambda: bodies.read(model, body, request.headers, request.query_params)


# ---- documentation -----------------------------------------------------------------------------------------------


def _responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    said = _REFUSALS | {404: "There is no such item."}
    return {status: {"model": bodies.Problem, "description": said[status]} for status in statuses}


def _documented(
    request: type[BaseModel], answer: type[BaseModel], *statuses: int, binary: bool = True
) -> dict[str, Any]:
    """What OpenAPI says of an endpoint that reads its body itself."""
    content: dict[str, Any] = {JSON: {"schema": request.model_json_schema()}}
    if binary:
        content |= {kind: {"schema": {"type": "string", "format": "binary"}} for kind in (BYTES, NPY)}
    headers = [
        _header("X-Shape", f"With {BYTES}: how many vectors and dimensions, such as 16,384."),
        _header("X-Encoder", "With bytes: what made the vectors."),
    ]
    if "ids" in request.model_fields and binary:
        headers.append(_header("X-Ids", "With bytes: the ids, as a list in JSON."))
    extra = {"requestBody": {"required": True, "content": content}, "parameters": headers if binary else []}
    responses = _responses(400, 401, 403, 413, 415, 422, *statuses)
    return {"response_model": answer, "responses": responses, "openapi_extra": extra}


def _header(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": description}
