"""What a request may ask for, and who may ask.

Bodies are counted as they come, before anything of them is read. Where the service is open to a network, a token is
asked for; where it is bound to this machine and has none, requests must have been meant for it, as a web page elsewhere
can make a browser on this machine ask.
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from entourage.runtime.addresses import host_of, is_loopback

__all__ = ["TOKEN", "Application", "Guard", "Limits", "Message", "Receive", "Send"]

TOKEN = "ENTOURAGE_TOKEN"
_OPEN_TO_ALL = "/health"  # for whoever watches whether the service lives
_MOST_DIGITS = 18  # of a length; Python refuses to read thousands of them

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """The most that one request may ask for."""

    body: int = 64 * 2**20
    """Bytes of a request."""
    batch: int = 1024
    """Vectors to search, refine or re-rank."""
    items: int = 10_000
    """Items to add, or changes to read."""
    dimensions: int = 16_384
    neighbors: int = 1_000
    """k."""
    waiting: int = 256
    """Changes that wait for others to be made."""


class Guard:
    """Refuses requests before the application sees them.

    Parameters
    ----------
    app : ASGI application
    limits : Limits
    token : str or None
        What `Authorization: Bearer` must hold; None asks for none, but for a Host of this machine.
    """

    def __init__(self, app: Application, limits: Limits, token: str | None) -> None:
        self._app, self._limits, self._token = app, limits, token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        refused = self._refused(scope["path"], headers)
        if refused is None:
            await self._app(scope, self._counted(receive), send)
        else:
            status, sentence = refused
            extra = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            await JSONResponse({"detail": sentence}, status, extra)(scope, receive, send)

    def _refused(self, path: str, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Status and sentence, if the request is refused."""
        if self._token is not None and path != _OPEN_TO_ALL:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
                return 401, f"the request has no token, or another one; send Authorization: Bearer and {TOKEN}"
        if self._token is None and not is_loopback(_host(headers)):
            return 403, f"the request was sent to {_host(headers)!r}; wanted localhost, where this service is bound to"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            return 400, "the length of the body is not a number; send a right Content-Length"
        too_large = len(length) > _MOST_DIGITS or int(length) > self._limits.body
        return (413, self._too_large()) if too_large else None

    def _too_large(self) -> str:
        return f"the body is larger than {self._limits.body:,} bytes; send fewer items at a time"

    def _counted(self, receive: Receive) -> Receive:
        """The same messages, until they are too many."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limits.body:
                raise HTTPException(413, self._too_large())
            return message

        return counted


def _host(headers: dict[bytes, bytes]) -> str:
    return host_of(headers.get(b"host", b"").decode("latin-1"))
