"""`entourage serve`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["serve"]


def serve(
    gallery: Annotated[Path, typer.Option(help="Folder of the gallery; it is made if it is not there.")],
    model: Annotated[
        Path | None,
        typer.Option(
            help="A folder written by `entourage fit`. Default: what the gallery was made with; for a new one the "
            "universal scorer, which needs no labels."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to bind to. Others than this machine's own need ENTOURAGE_TOKEN to be set.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="<int>", help="Port; 0 for any free one.")] = 8317,
    encoder: Annotated[
        str | None, typer.Option(help="What the encoder of the vectors is called; another one is refused later.")
    ] = None,
) -> None:
    """Serve a gallery whose items come and go: search, refine, re-rank, add and remove by HTTP.

    Changes are on the disk when they are answered, and searches never wait for them. Stop it with Ctrl-C.
    """
    from entourage.runtime.extras import require

    for library in ("fastapi", "uvicorn"):
        require(library, "`entourage serve`")
    from entourage.serve.start import ServeRequest
    from entourage.serve.start import serve as serve_gallery

    serve_gallery(ServeRequest(gallery, model, host, port, encoder), typer.echo)
