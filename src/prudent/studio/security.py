"""Local-only access: allowed hosts and origins, limits of request bodies, and security headers.

A page of another site can make a browser send requests to this machine, under its own name (cross-site posts) or
under a name that it has pointed here (DNS rebinding). Both show: in ``Origin``, ``Sec-Fetch-Site`` and ``Host``.
"""

import re
from collections.abc import Iterable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Starlette's TrustedHostMiddleware does not look at the port.
_LOCAL_NAMES = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
_LIMIT = 1 << 20, "the body has more than a megabyte, which is what is taken here."
_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


def local_only(application: ASGIApp, limits: dict[str, tuple[int, str]]) -> ASGIApp:
    """Refuse requests of other sites, stop bodies that are too long, and add security headers to every response.

    Parameters
    ----------
    application : ASGI application
    limits : mapping of path to number and text
        How many bytes a body may have, and the message if it has more; other paths take a megabyte.
    """

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no routes for websockets, so the router closes them
            await application(scope, receive, send)
            return
        limit, too_long = limits.get(scope["path"], _LIMIT)
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413, too_long)
            return message

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await (_refusal(scope) or application)(scope, receive_counted, send_with_headers)

    return handle


def failure(status: int, message: str, where: str, rows: Iterable[Any] = (), headers: Any = None) -> JSONResponse:
    """Say what is wrong with which part of a request, and in which rows."""
    return JSONResponse({"message": message, "where": where, "rows": list(rows)}, status, headers)


def _refusal(scope: Scope) -> JSONResponse | None:
    headers = Headers(scope=scope)
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _LOCAL_NAMES.fullmatch(hosts[0]):
        return failure(400, "this server answers only under the names 127.0.0.1 and localhost.", "Host")
    if scope["method"] not in ("GET", "HEAD"):
        allowed = {"Origin": [f"http://{hosts[0]}"], "Sec-Fetch-Site": ["same-origin", "none"]}
        for name, values in allowed.items():
            if any(value not in values for value in headers.getlist(name)):
                return failure(403, "requests of other sites are refused.", name)
    return None
