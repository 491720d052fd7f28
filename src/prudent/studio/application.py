"""The web application: typed questions in, typed answers out, computed in threads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Annotated, Any, Literal

import anyio.to_thread
import jinja2
from fastapi import Body, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from prudent.errors import FileFormatError, InputError
from prudent.studio import answering, takeaway
from prudent.studio.answers import (
    DataSummary,
    Example,
    ExplanationAnswer,
    Failure,
    LadderAnswer,
    PolicyAnswer,
    StressAnswer,
    VerdictAnswer,
)
from prudent.studio.data_sets import DataSets, UnknownDataError, UploadTooLargeError
from prudent.studio.examples import EXAMPLES
from prudent.studio.questions import Case, Download, Question
from prudent.studio.safety import BodyTooLargeError, Doorkeeper
from prudent.studio.workshop import QuestionError, Workshop

__all__ = ["create_application"]

_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": description}
    for status, description in (
        (400, "The request is not one."),
        (404, "The server does not hold these data."),
        (413, "Too long."),
        (422, "Something is wrong with the question: what, and where."),
    )
}
_FILES: dict[str, tuple[Callable[[Workshop, Download], str], str, str]] = {
    "policy": (takeaway.policy_json, "application/json", "policy.json"),
    "thresholds": (takeaway.thresholds_csv, "text/csv", "thresholds.csv"),
    "sql": (takeaway.sql_text, "application/sql", "policy.sql"),
    "python": (takeaway.python_snippet, "text/x-python", "policy.py"),
    "report": (takeaway.html_report, "text/html", "report.html"),
}
ExampleName = Literal["patients", "staffing", "triage"]
FileName = Literal["policy", "thresholds", "sql", "python", "report"]
Identity = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


async def _inputs(request: Request) -> str:
    """Name a question by the bytes that asked it: the page can compute the same."""
    return hashlib.sha256(await request.body()).hexdigest()


Inputs = Annotated[str, Depends(_inputs)]


def create_application(data_sets: DataSets | None = None) -> FastAPI:
    """Make the application; it holds no state but data and results in memory.

    Parameters
    ----------
    data_sets : DataSets, optional
        Where uploads go; by default with the usual limits.
    """
    held = DataSets() if data_sets is None else data_sets
    workshop = Workshop(held)
    application = FastAPI(title="Prudent studio", docs_url=None, redoc_url=None, lifespan=_few_threads)
    application.add_middleware(Doorkeeper, most_bytes={"/api/data": held.most_bytes + 1})
    _add_page(application)
    _add_data(application, held)
    _add_answers(application, workshop)
    _add_failures(application, held)
    return application


@asynccontextmanager
async def _few_threads(_: FastAPI) -> AsyncIterator[None]:
    """Numbers are crunched on all cores, and not on more: each thread needs memory of its own."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = max(4, os.cpu_count() or 1)
    yield


def _add_page(application: FastAPI) -> None:
    package = resources.files("prudent.studio")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(package.joinpath("page.html.j2").read_text("utf-8"))

    @application.get("/", response_class=HTMLResponse, include_in_schema=False)
    def page() -> str:
        from prudent import __version__

        return template.render(
            examples=[example.shown(name) for name, example in EXAMPLES.items()], version=__version__
        )

    @application.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return Response(package.joinpath("assets", "icon.svg").read_bytes(), media_type="image/svg+xml")

    application.mount("/assets", StaticFiles(packages=[("prudent.studio", "assets")]), name="assets")


def _add_data(application: FastAPI, held: DataSets) -> None:
    @application.post(
        "/api/data",
        responses=_FAILURES,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            }
        },
    )
    async def upload(
        request: Request, name: Annotated[str, Query(min_length=1, max_length=200)] = "data.csv"
    ) -> DataSummary:
        """Take a CSV or Parquet file; it stays in memory."""
        content = await request.body()
        return await anyio.to_thread.run_sync(lambda: held.add(content, name).summary())

    @application.get("/api/data/{identity}", responses=_FAILURES)
    def data(identity: Identity) -> DataSummary:
        """Say again what data hold."""
        return held.get(identity).summary()

    @application.get("/api/examples")
    def examples() -> list[Example]:
        """List what comes with the library."""
        return [example.shown(name) for name, example in EXAMPLES.items()]

    @application.post("/api/examples/{name}", responses=_FAILURES)
    def example(name: ExampleName) -> DataSummary:
        """Take an example as if it had been uploaded."""
        content, start = EXAMPLES[name].make()
        return held.add(content, f"{name}.csv").summary().model_copy(update={"guess": start})


def _add_answers(application: FastAPI, workshop: Workshop) -> None:
    @application.post("/api/policy", responses=_FAILURES)
    def policy(question: Question, inputs: Inputs) -> PolicyAnswer:
        """Fit the policy, and say what it guarantees."""
        return answering.answer_policy(workshop, question, inputs)

    @application.post("/api/verdict", responses=_FAILURES)
    def verdict(question: Question, inputs: Inputs) -> VerdictAnswer:
        """Judge whether to believe the forecasts."""
        return answering.answer_verdict(workshop, question, inputs)

    @application.post("/api/stress", responses=_FAILURES)
    def stress(question: Question, inputs: Inputs) -> StressAnswer:
        """Play three policies in each other's worst worlds."""
        return answering.answer_stress(workshop, question, inputs)

    @application.post("/api/ladder", responses=_FAILURES)
    def ladder(question: Question, inputs: Inputs) -> LadderAnswer:
        """Compare the usual guarantees."""
        return answering.answer_ladder(workshop, question, inputs)

    @application.post("/api/explain", responses=_FAILURES)
    def explain(case: Case, inputs: Inputs) -> ExplanationAnswer:
        """Say why this action at this forecast."""
        return answering.answer_explanation(workshop, case, inputs)

    @application.post(
        "/api/files/{file}",
        response_class=PlainTextResponse,
        responses={**_FAILURES, 200: {"content": {media: {} for _, media, _ in _FILES.values()}}},
    )
    def take_away(file: FileName, wanted: Annotated[Download, Body()]) -> Response:
        """Make a file that reproduces what the page shows."""
        make, media, name = _FILES[file]
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(make(workshop, wanted), media_type=media, headers=headers)


def _add_failures(application: FastAPI, held: DataSets) -> None:
    def failing(status: int, error: Exception | str, where: str, rows: list[Any] | None = None) -> JSONResponse:
        content = {"message": str(error), "where": where, "rows": rows or []}
        return JSONResponse(content, status)

    @application.exception_handler(QuestionError)
    async def unanswerable(_: Request, error: QuestionError) -> JSONResponse:
        rows = [{"row": cell.row, "columns": list(cell.columns), "message": cell.message} for cell in error.rows]
        return failing(422, error, error.where, rows)

    @application.exception_handler(UnknownDataError)
    async def unknown(_: Request, error: UnknownDataError) -> JSONResponse:
        return failing(404, error, "data")

    @application.exception_handler(UploadTooLargeError)
    async def large(_: Request, error: UploadTooLargeError) -> JSONResponse:
        return failing(413, error, "data")

    @application.exception_handler(BodyTooLargeError)
    async def long(request: Request, _: BodyTooLargeError) -> JSONResponse:
        upload = request.url.path == "/api/data"
        return failing(413, held.too_large() if upload else "the request is too long.", "data" if upload else "body")

    @application.exception_handler(InputError)
    @application.exception_handler(FileFormatError)
    async def unreadable(_: Request, error: Exception) -> JSONResponse:
        return failing(422, error, "data")

    @application.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        parts = [str(part) for part in first["loc"] if part != "body"]
        return failing(422, f"{first['msg']}.", ".".join(parts) or "body")

    @application.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        response = failing(error.status_code, str(error.detail), request.url.path)
        response.headers.update(error.headers or {})
        return response
