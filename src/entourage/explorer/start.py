"""The page as a process: a run opened, an address bound, and requests answered until it is stopped."""

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from entourage.explorer.app import Preparing, make_app
from entourage.explorer.desk import Desk
from entourage.explorer.export import export_page
from entourage.explorer.opening import ExploreRequest, encoder_of, open_scene
from entourage.runtime.addresses import bound_socket, is_loopback
from entourage.runtime.progress import Progress

__all__ = ["explore"]


def explore(request: ExploreRequest, announce: Callable[[str], None], *, progress: Progress | None = None) -> None:
    """Serve the page until the process is told to end, or write it to a file.

    Parameters
    ----------
    request : ExploreRequest
    announce : callable
        Called with a sentence when the page can be opened, or has been written.
    progress : callable, optional
        Called as progress(title, done, total) while the run is prepared.
    """
    request.check()
    with TemporaryDirectory(prefix="entourage-") as scratch:
        preparing = Preparing()

        def note(title: str, done: int, total: int) -> None:
            preparing(title, done, total)
            if progress:
                progress(title, done, total)

        desk = Desk(
            open_scene(request, Path(scratch), note), encoder_of(request)
        )  # bad input is refused before serving
        if request.export is not None:
            announce(f"Written to {export_page(desk, request.export, overwrite=request.overwrite)}")
        else:
            _serve(request, desk, preparing, announce)


def _serve(request: ExploreRequest, desk: Desk, preparing: Preparing, announce: Callable[[str], None]) -> None:
    token = None if is_loopback(request.host) else secrets.token_urlsafe(24)
    bound = bound_socket(request.host, request.port)
    try:
        host = f"[{request.host}]" if ":" in request.host else request.host
        address = f"http://{host}:{bound.getsockname()[1]}/" + ("" if token is None else f"?token={token}")
        preparing.start(desk.prepare)
        announce(f"Open {address} in a browser; stop with Ctrl-C")
        if request.browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        _run(preparing, token, bound)
    finally:
        bound.close()


def _run(preparing: Preparing, token: str | None, bound: socket.socket) -> None:
    import uvicorn

    app = make_app(preparing, token=token)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[bound])
