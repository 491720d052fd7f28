"""What stands between the page and other pages: who may ask, how much, and what an answer may do.

A page of another site can make a browser send requests to this machine, under its own name (cross-site posts) or
under a name that it has pointed here (DNS rebinding). Both show: in ``Origin``, ``Sec-Fetch-Site`` and ``Host``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["Doorkeeper"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_OUR_NAMES = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
_HEADERS = {
    b"content-security-policy": b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"object-src 'none'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Doorkeeper:
    """Refuses strangers and adds headers to every answer.

    Parameters
    ----------
    application : ASGI application
    most_bytes : mapping of path to int
        How long a body may be; other paths take a megabyte.
    too_long : mapping of path to str, optional
        What to say where a body is longer and somebody can do something about it.
    """

    def __init__(self, application: Any, most_bytes: dict[str, int], too_long: dict[str, str] | None = None) -> None:
        self._application, self._most_bytes, self._too_long = application, most_bytes, too_long or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS.items()]
            await send(message)

        refusal = _refusal(scope, self._limit(scope), self._too_long.get(scope["path"]))
        if refusal is not None:
            await _refuse(send_with_headers, *refusal)
            return
        await self._application(scope, _counted(receive, self._limit(scope)), send_with_headers)

    def _limit(self, scope: Scope) -> int:
        return self._most_bytes.get(scope["path"], 1 << 20)


class BodyTooLargeError(Exception):
    """A body is longer than its path takes."""


def _refusal(scope: Scope, limit: int, too_long: str | None) -> tuple[int, str, str] | None:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    hosts = headers.get("host", [])
    if len(hosts) != 1 or not _OUR_NAMES.fullmatch(hosts[0]):
        return 400, "this server answers only under the names 127.0.0.1 and localhost.", "Host"
    if scope["method"] not in ("GET", "HEAD"):
        for origin in headers.get("origin", []):
            if origin != f"http://{hosts[0]}":
                return 403, "requests of other sites are refused.", "Origin"
        for site in headers.get("sec-fetch-site", []):
            if site not in ("same-origin", "none"):
                return 403, "requests of other sites are refused.", "Sec-Fetch-Site"
    for length in headers.get("content-length", []):
        if not (length.isascii() and length.isdigit()):
            return 400, "the length of the body is not a number.", "Content-Length"
        if int(length) > limit and too_long is not None:
            return 413, too_long, "data"
        if int(length) > limit:
            return 413, f"the body has more than {limit:,} bytes, which is what is taken here.", "Content-Length"
    return None


def _counted(receive: Receive, limit: int) -> Receive:
    """Stop a body that grows past its limit without having said so."""
    seen = 0

    async def counted() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise BodyTooLargeError
        return message

    return counted


async def _refuse(send: Send, status: int, message: str, where: str) -> None:
    body = json.dumps({"message": message, "where": where, "rows": []}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
