"""Who may ask, and what a browser may do with the answers.

The page is for whoever sits at this machine: it is bound to the loopback address, and a request has to be meant for it
(its Host), as a page elsewhere can make a browser here ask. Open to a network, it asks for a token: the address that
is printed holds it, and the browser then keeps it in a cookie.
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.responses import JSONResponse

from entourage.runtime.addresses import host_of, is_loopback

__all__ = ["COOKIE", "Guard"]

COOKIE = "entourage_token"
MOST_BYTES = 64 * 2**20

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# Everything comes from this machine: no other place is asked, no script stands in the page, nobody frames it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Guard:
    """Refuses requests before the application sees them, and adds headers to what it answers.

    Parameters
    ----------
    app : ASGI application
    token : str or None
        What a request must bring, in its address, as a cookie or as `Authorization: Bearer`; None asks for none, but
        for a Host of this machine.
    """

    def __init__(self, app: Application, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        answer = self._with_headers(send, keep_token=refused is None and self._in_address(scope))
        if refused is None:
            await self._app(scope, receive, answer)
        else:
            status, sentence = refused
            await JSONResponse({"detail": sentence}, status)(scope, receive, answer)

    def _refused(self, scope: Message, headers: dict[bytes, str]) -> tuple[int, str] | None:
        """Status and sentence, if the request is refused."""
        host = headers.get(b"host", "")
        if self._token is None and not is_loopback(host_of(host)):
            return 403, f"the request was sent to {host!r}; wanted localhost, where this page is bound to"
        if self._token is not None and not self._in_address(scope) and not self._brought(headers):
            return 401, "the request has no token, or another one; open the address that was printed at the start"
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, f"the request comes from a page of {origin}; wanted this one: open it in the browser"
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or b"transfer-encoding" in headers:
            return 411, "the request does not say how long it is; wanted a Content-Length"
        if int(length) > MOST_BYTES:
            return 413, f"the file has {int(length):,} bytes; wanted {MOST_BYTES:,} at most: take a part of it"
        return None

    def _in_address(self, scope: Message) -> bool:
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        return self._is_token(given)

    def _brought(self, headers: dict[bytes, str]) -> bool:
        try:
            cookies = SimpleCookie(headers.get(b"cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        kept = cookies[COOKIE].value if COOKIE in cookies else ""
        return self._is_token(kept) or self._is_token(headers.get(b"authorization", "").removeprefix("Bearer "))

    def _is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def _with_headers(self, send: Send, *, keep_token: bool) -> Send:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = list(message["headers"])
                message["headers"] += [(name, value) for name, value in _HEADERS.items() if name not in given]
                if keep_token:
                    cookie = f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    message["headers"].append((b"set-cookie", cookie.encode()))
            await send(message)

        return answer
