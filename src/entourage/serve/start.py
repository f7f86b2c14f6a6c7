"""The service as a process: a gallery opened, an address bound, and requests answered until it is stopped."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from entourage.errors import InputError
from entourage.refiner import ContextRefiner, load_refiner
from entourage.refiner.gallery import Gallery
from entourage.runtime.addresses import bound_socket, is_loopback
from entourage.serve.limits import TOKEN

if TYPE_CHECKING:
    import uvicorn

__all__ = ["ServeRequest", "serve", "server_of"]

_HEADERS = 2**20  # bytes; the ids of 10,000 items stand in one of them, where h11 by itself takes 16 KiB


class ServeRequest(NamedTuple):
    """What is served, and where."""

    gallery: Path
    """The folder of the gallery; it is made if it is not there."""
    model: Path | None = None
    """A folder written by `entourage fit`; that of the gallery, or the universal scorer for a new one, if None."""
    host: str = "127.0.0.1"
    port: int = 8317
    encoder: str | None = None
    """What the encoder of the vectors is called."""


def serve(request: ServeRequest, announce: Callable[[str], None]) -> None:
    """Serve a gallery until the process is told to end.

    Parameters
    ----------
    request : ServeRequest
    announce : callable
        Called with a sentence when requests are answered from now on.
    """
    token = _token(request.host)
    bound = bound_socket(request.host, request.port)
    try:
        with Gallery(request.gallery, _refiner(request.model), encoder=request.encoder) as gallery:
            port = bound.getsockname()[1]
            host = f"[{request.host}]" if ":" in request.host else request.host
            announce(f"Serving {len(gallery):,} items of {request.gallery} at http://{host}:{port} (see /openapi.json)")
            _run(gallery, token, bound)
    finally:
        bound.close()


def _token(host: str) -> str | None:
    """The token that is asked for; None for a service that only this machine reaches."""
    token = os.environ.get(TOKEN, "").strip()
    if not token and not is_loopback(host):
        raise InputError(
            f"--host {host} is open to others, and {TOKEN} is not set; set it to a secret that requests have to send, "
            "or leave out --host"
        )
    if token and not token.isascii():
        raise InputError(f"{TOKEN} holds letters that a header cannot hold; wanted ASCII")
    return token or None


def _refiner(model: Path | None) -> ContextRefiner | None:
    if model is None:
        return None
    refiner = load_refiner(model)
    if not isinstance(refiner, ContextRefiner):
        raise InputError(f"the model in {model} is a {type(refiner).__name__}; wanted a ContextRefiner: fit one")
    return refiner


def server_of(app: Any) -> "uvicorn.Server":
    """What answers the requests to an application, as `serve` has it."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        h11_max_incomplete_event_size=_HEADERS,
    )
    return uvicorn.Server(config)


def _run(gallery: Gallery, token: str | None, bound: socket.socket) -> None:
    from entourage.serve.app import make_app

    server_of(make_app(gallery, token=token)).run(sockets=[bound])
