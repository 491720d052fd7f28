"""The web application: the page, routes, errors, and the queue of computations."""

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict
from importlib import resources
from time import perf_counter
from typing import Annotated, Any, Literal, TypeVar
from weakref import WeakValueDictionary

import anyio.to_thread
import jinja2
from fastapi import Body, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from prudent import __version__
from prudent.errors import FileFormatError, InputError
from prudent.studio import exports, responses
from prudent.studio.data_sets import DataSets, UnknownDataError, UploadTooLargeError
from prudent.studio.examples import EXAMPLES, make_example
from prudent.studio.schemas import (
    Answer,
    Case,
    DataSummary,
    Download,
    Example,
    ExplanationAnswer,
    Failure,
    LadderAnswer,
    PolicyAnswer,
    Question,
    StressAnswer,
    VerdictAnswer,
)
from prudent.studio.security import LocalOnlyMiddleware
from prudent.studio.session import QuestionError, Session

Result = TypeVar("Result")

_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": description}
    for status, description in (
        (400, "The request is malformed."),
        (404, "The server does not hold these data."),
        (413, "Too long."),
        (422, "Something is wrong with the question: what, and where."),
    )
}
_FILES: dict[str, tuple[Callable[[Session, Download], str], str, str]] = {
    "policy": (exports.policy_json, "application/json", "policy.json"),
    "thresholds": (exports.thresholds_csv, "text/csv", "thresholds.csv"),
    "sql": (exports.sql_text, "application/sql", "policy.sql"),
    "python": (exports.python_snippet, "text/x-python", "policy.py"),
    "report": (exports.html_report, "text/html", "report.html"),
}
_MEDIA = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_UPLOAD = "/api/data"
ExampleName = Literal["patients", "staffing", "triage"]
FileName = Literal["policy", "thresholds", "sql", "python", "report"]
Identity = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


async def _inputs(request: Request) -> str:
    """Identify a question by the bytes of the request: the page can compute the same."""
    return hashlib.sha256(await request.body()).hexdigest()


Inputs = Annotated[str, Depends(_inputs)]


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
    session, queue = Session(held), RequestQueue()
    application = FastAPI(title="Prudent studio", docs_url=None, redoc_url=None)
    application.add_middleware(LocalOnlyMiddleware, limits={_UPLOAD: (held.most_bytes, str(held.too_large()))})
    _add_page(application)
    _add_data(application, held)
    _add_answers(application, session, queue)
    _add_failures(application)
    return application


def _add_page(application: FastAPI) -> None:
    def add(path: str, content: str, media: str) -> None:
        async def send(_: Request) -> Response:
            return Response(content, media_type=media)

        application.add_route(path, send, include_in_schema=False)

    files = resources.files("prudent.studio")
    page = jinja2.Template(files.joinpath("page.html.j2").read_text("utf-8"), autoescape=True, trim_blocks=True)
    add("/", page.render(examples=EXAMPLES, version=__version__), "text/html")
    for asset in files.joinpath("assets").iterdir():
        add(f"/assets/{asset.name}", asset.read_text("utf-8"), _MEDIA[asset.name.rpartition(".")[2]])


def _add_data(application: FastAPI, held: DataSets) -> None:
    content_type = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    body = {"required": True, "content": content_type}

    @application.post(_UPLOAD, responses=_FAILURES, openapi_extra={"requestBody": body})
    async def upload(
        request: Request, name: Annotated[str, Query(min_length=1, max_length=200)] = "data.csv"
    ) -> DataSummary:
        """Take a CSV or Parquet file; it stays in memory."""
        content = await request.body()
        return await anyio.to_thread.run_sync(lambda: held.add(content, name).summary())

    @application.get("/api/data/{identity}", responses=_FAILURES)
    async def data(identity: Identity) -> DataSummary:
        """Summarise data that were uploaded before."""
        return held.get(identity).summary()

    @application.get("/api/examples")
    async def examples() -> list[Example]:
        """List the built-in examples."""
        return list(EXAMPLES)

    @application.post("/api/examples/{name}", responses=_FAILURES)
    def example(name: ExampleName) -> DataSummary:
        """Take an example as if it had been uploaded."""
        content, start = make_example(name)
        return held.add(content, f"{name}.csv").summary().model_copy(update={"guess": start})


def _add_answers(application: FastAPI, session: Session, queue: RequestQueue) -> None:
    async def answer(data: str, inputs: str, make: Callable[[], Answer]) -> Response:
        session.data_sets.get(data)  # also marks the data as used last

        def made() -> str:
            start = perf_counter()
            found = make()
            found.inputs, found.seconds = inputs, perf_counter() - start
            return found.model_dump_json()

        return Response(await queue.compute(made, data), media_type="application/json")

    def add(path: str, make: Callable[[Session, Question], Answer], schema: type[Answer], description: str) -> None:
        @application.post(path, responses=_FAILURES, response_model=schema, description=description)
        async def answer_question(question: Question, inputs: Inputs) -> Response:
            return await answer(question.data, inputs, lambda: make(session, question))

    add("/api/policy", responses.answer_policy, PolicyAnswer, "Fit the policy, and say what it guarantees.")
    add("/api/verdict", responses.answer_verdict, VerdictAnswer, "Judge whether to believe the forecasts.")
    add("/api/stress", responses.answer_stress, StressAnswer, "Play three policies in each other's worst worlds.")
    add("/api/ladder", responses.answer_ladder, LadderAnswer, "Compare the usual guarantees.")

    @application.post("/api/explain", responses=_FAILURES, response_model=ExplanationAnswer)
    async def explain(case: Case, inputs: Inputs) -> Response:
        """Explain the action at one forecast."""
        return await answer(case.question.data, inputs, lambda: responses.answer_explanation(session, case))

    @application.post(
        "/api/files/{file}",
        response_class=PlainTextResponse,
        responses={**_FAILURES, 200: {"content": {media: {} for _, media, _ in _FILES.values()}}},
    )
    async def download(file: FileName, wanted: Annotated[Download, Body()]) -> Response:
        """Make a file that reproduces what the page shows."""
        make, media, name = _FILES[file]
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        content = await queue.compute(lambda: make(session, wanted), wanted.question.data)
        return Response(content, media_type=media, headers=headers)


def _add_failures(application: FastAPI) -> None:
    def failing(status: int, error: Exception | str, where: str, rows: list[Any] | None = None) -> JSONResponse:
        return JSONResponse({"message": str(error), "where": where, "rows": rows or []}, status)

    async def about_data(_: Request, error: Exception) -> JSONResponse:
        status = 404 if isinstance(error, UnknownDataError) else 413 if isinstance(error, UploadTooLargeError) else 422
        return failing(status, error, "data")

    for kind in (UnknownDataError, InputError, FileFormatError):
        application.add_exception_handler(kind, about_data)

    @application.exception_handler(QuestionError)
    async def unanswerable(_: Request, error: QuestionError) -> JSONResponse:
        return failing(422, error, error.where, [asdict(cell) for cell in error.rows])

    @application.exception_handler(ClientDisconnect)
    async def disconnected(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=400)  # is not sent: without a response the server would log a traceback

    @application.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        parts = [str(part) for part in first["loc"] if part != "body"]
        return failing(422, f"{first['msg']}.", ".".join(parts) or "body")

    @application.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        where = "body" if error.status_code == 413 else request.url.path
        response = failing(error.status_code, error.detail, where)
        response.headers.update(error.headers or {})
        return response
