"""The front of the studio: the page at once, answers as soon as the library is loaded.

What computes takes longer to import than a page takes to fetch. So the page, its scripts and its styles come from
here, which needs nothing but a template, and everything else waits for the application that a thread is loading.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from importlib import resources
from typing import Any

from prudent.studio.examples import EXAMPLES
from prudent.studio.safety import Doorkeeper, Receive, Scope, Send

__all__ = ["Front", "Pages", "page_paths"]

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_MEDIA = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}


class Front:
    """An ASGI application that serves the page itself and passes the rest on.

    Parameters
    ----------
    load : callable
        Makes the application that answers; called in a thread when the server starts.
    """

    def __init__(self, load: Callable[[], Application]) -> None:
        self._load = load
        self._pages = Doorkeeper(Pages(), {})
        self._loading: asyncio.Future[Application] | None = None
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the life of the server."""
        self._loop = asyncio.get_running_loop()
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and scope["path"] in page_paths():
            await self._pages(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    def end(self) -> None:
        """Refuse what still waits for an answer; safe to call from a signal handler."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless the server ends before there is an answer."""
        begun = False

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        work = asyncio.ensure_future(self._pass_on(scope, receive, watched))
        end = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait({work, end}, return_when=asyncio.FIRST_COMPLETED)
            if work.done() or begun:
                await work
                return
        finally:
            end.cancel()
        work.add_done_callback(_look_at)
        work.cancel()
        content = b'{"message": "The studio is ending.", "where": "server", "rows": []}'
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = await asyncio.shield(self._start())
        await application(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            stage = (await receive())["type"].removeprefix("lifespan.")
            if stage == "startup":
                self._start()
            await send({"type": f"lifespan.{stage}.complete"})
            if stage == "shutdown":
                return

    def _start(self) -> asyncio.Future[Application]:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(None, self._load)
        return self._loading


def _look_at(task: asyncio.Task[None]) -> None:
    """Nobody waits for this answer any more, nor for its mistakes."""
    if not task.cancelled():
        task.exception()


class Pages:
    """The page and its assets, as an ASGI application for the paths of :func:`page_paths` and no others."""

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer GET and HEAD."""
        content, media = _content(scope["path"])
        status, headers = 200, [(b"content-type", f"{media}; charset=utf-8".encode())]
        if scope["method"] not in ("GET", "HEAD"):
            status, content, headers = 405, b"", [(b"allow", b"GET, HEAD")]
        headers.append((b"content-length", str(len(content)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})


@cache
def page_paths() -> frozenset[str]:
    """Paths that need no library: the page, its icon, its scripts and styles."""
    assets = resources.files("prudent.studio").joinpath("assets").iterdir()
    return frozenset(["/", "/favicon.ico", *(f"/assets/{asset.name}" for asset in assets)])


@cache
def _content(path: str) -> tuple[bytes, str]:
    package = resources.files("prudent.studio")
    if path == "/":
        return _page(package.joinpath("page.html.j2").read_text("utf-8")), _MEDIA[".html"]
    name = "icon.svg" if path == "/favicon.ico" else path.removeprefix("/assets/")
    return package.joinpath("assets", name).read_bytes(), _MEDIA[name[name.rindex(".") :]]


def _page(template: str) -> bytes:
    import jinja2

    from prudent import __version__

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    examples: list[dict[str, Any]] = [
        {"name": name, "title": example.title, "sentence": example.sentence} for name, example in EXAMPLES.items()
    ]
    return environment.from_string(template).render(examples=examples, version=__version__).encode("utf-8")
