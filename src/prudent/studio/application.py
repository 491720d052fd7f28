"""The web application: the page, routes, errors, and the queue of computations; local access only.

A page of another site can make a browser send requests to this machine, under its own name (cross-site posts) or
under a name that it has pointed here (DNS rebinding). Both show: in ``Origin``, ``Sec-Fetch-Site`` and ``Host``.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from importlib import resources
from typing import Annotated, Any, Literal, TypeVar
from weakref import WeakValueDictionary

import anyio.to_thread
import jinja2
from fastapi import Body, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prudent import __version__
from prudent.errors import FileFormatError, InputError, MissingExtraError
from prudent.studio import exports, responses
from prudent.studio.examples import EXAMPLES, ExampleName
from prudent.studio.schemas import Case, Download, Question
from prudent.studio.session import DataSet, DataSets, RequestError, Session, about

Result = TypeVar("Result")

_ANSWERS = {
    "policy": responses.answer_policy,
    "verdict": responses.answer_verdict,
    "stress": responses.answer_stress,
    "ladder": responses.answer_ladder,
}
_FILES: dict[str, tuple[Callable[[Session, Download], str], str]] = {
    "policy": (exports.policy_json, "application/json"),
    "sql": (exports.sql_text, "application/sql"),
    "python": (exports.python_snippet, "text/x-python"),
    "report": (exports.html_report, "text/html"),
}
FileName = Literal["policy", "sql", "python", "report"]
_MEDIA = {"/": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_UPLOAD = "/api/data"


class RequestQueue:
    """Runs computations in threads, so that the event loop stays free.

    Requests about the same data run one after another: they share results, and two threads that compute under one
    interpreter lock would both be late. There are as many threads as cores.
    """

    def __init__(self) -> None:
        self._computing = anyio.CapacityLimiter(max(2, os.cpu_count() or 1))
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def compute(self, function: Callable[[], Result], data: str) -> Result:
        """Call a function about some data."""
        async with self._locks.setdefault(data, asyncio.Lock()):
            return await anyio.to_thread.run_sync(function, limiter=self._computing)


def create_application(data_sets: DataSets | None = None) -> FastAPI:
    """Make the application; it holds no state but data and results in memory.

    Parameters
    ----------
    data_sets : DataSets, optional
        Where uploads go; by default with the usual limits.
    """
    held = DataSets() if data_sets is None else data_sets
    application = FastAPI(title="Prudent studio", docs_url=None, redoc_url=None)
    application.add_middleware(local_only, limits={_UPLOAD: (held.most_bytes, held.limit)})
    _add_page(application)
    _add_data(application, held)
    _add_answers(application, Session(held), RequestQueue())
    _add_failures(application)
    return application


def _add_page(application: FastAPI) -> None:
    files = resources.files("prudent.studio")
    page = jinja2.Template(files.joinpath("page.html.j2").read_text("utf-8"), autoescape=True, trim_blocks=True)
    contents = {"/": page.render(examples=EXAMPLES, version=__version__)}
    contents |= {f"/assets/{asset.name}": asset.read_text("utf-8") for asset in files.joinpath("assets").iterdir()}

    async def send(request: Request) -> Response:
        path = request.url.path
        return Response(contents[path], media_type=_MEDIA[path.rpartition(".")[2]])

    for path in contents:
        application.add_route(path, send, include_in_schema=False)


def _add_data(application: FastAPI, held: DataSets) -> None:
    content_type = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}

    @application.post(_UPLOAD, openapi_extra={"requestBody": {"required": True, "content": content_type}})
    async def upload(
        request: Request, name: Annotated[str, Query(min_length=1, max_length=200)] = "data.csv"
    ) -> DataSet:
        """Take a CSV or Parquet file; it stays in memory."""
        content = await request.body()
        return await anyio.to_thread.run_sync(held.add, content, name)

    @application.get("/api/data/{identity}")
    async def data(identity: Annotated[str, Path(pattern="^[0-9a-f]{32}$")]) -> DataSet:
        """Summarise data that were uploaded before."""
        return held.get(identity)

    @application.post("/api/examples/{name}")
    def example(name: ExampleName) -> DataSet:
        """Take an example as if it had been uploaded."""
        content, start = EXAMPLES[name].make()
        return held.add(content, f"{name}.csv").model_copy(update={"guess": start})


def _add_answers(application: FastAPI, session: Session, queue: RequestQueue) -> None:
    async def answer(request: Request, question: Question, make: Callable[[], responses.Answer]) -> Response:
        # The page can compute the same hash, and shows no other question's answer.
        inputs = hashlib.sha256(await request.body()).hexdigest()

        @about("guarantee")
        def made() -> bytes:
            answered = {**make(), "inputs": inputs}
            return to_json(answered, inf_nan_mode="null", fallback=lambda array: array.tolist())

        return Response(await queue.compute(made, question.data), media_type="application/json")

    def add(part: str, make: Callable[[Session, Question], responses.Answer]) -> None:
        @application.post(f"/api/{part}", description=make.__doc__)
        async def answer_question(request: Request, question: Question) -> Response:
            return await answer(request, question, lambda: make(session, question))

    for part, make in _ANSWERS.items():
        add(part, make)

    @application.post("/api/explain")
    async def explain(request: Request, case: Case) -> Response:
        """Explain the action at one forecast."""
        return await answer(request, case.question, lambda: responses.answer_explanation(session, case))

    @application.post("/api/files/{file}")
    async def download(file: FileName, wanted: Annotated[Download, Body()]) -> Response:
        """Make a file that reproduces what the page shows."""
        make, media = _FILES[file]
        made = about("guarantee")(partial(make, session, wanted))
        return Response(await queue.compute(made, wanted.question.data), media_type=media)


def _add_failures(application: FastAPI) -> None:
    async def failed(request: Request, error: Exception) -> Response:
        match error:
            case RequestError():
                return failure(error.status, str(error), error.where, map(asdict, error.rows))
            case RequestValidationError():
                first = error.errors()[0]
                parts = [str(part) for part in first["loc"] if part != "body"]
                return failure(422, f"{first['msg']}.", ".".join(parts) or "body")
            case HTTPException():
                where = "body" if error.status_code == 413 else request.url.path
                return failure(error.status_code, error.detail, where, headers=error.headers)
            case ClientDisconnect():
                return Response(status_code=400)  # is not sent: without a response the server would log a traceback
        return failure(422, str(error), "data")

    own = InputError, FileFormatError, MissingExtraError, RequestError
    for kind in (*own, RequestValidationError, HTTPException, ClientDisconnect):
        application.add_exception_handler(kind, failed)


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
