"""The web application: typed questions in, typed answers out, computed in threads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Body, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Route

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
from prudent.studio.colleague import Colleague
from prudent.studio.data_sets import DataSets, UnknownDataError, UploadTooLargeError
from prudent.studio.desk import Desk
from prudent.studio.example_files import make_example
from prudent.studio.examples import EXAMPLES
from prudent.studio.front import Pages, page_paths
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


def create_application(data_sets: DataSets | None = None, colleague: Colleague | None = None) -> FastAPI:
    """Make the application; it holds no state but data and results in memory.

    Parameters
    ----------
    data_sets : DataSets, optional
        Where uploads go; by default with the usual limits.
    colleague : Colleague, optional
        Who helps with long files; by default nobody.
    """
    held = DataSets() if data_sets is None else data_sets
    workshop, desk = Workshop(held), Desk()
    application = FastAPI(title="Prudent studio", docs_url=None, redoc_url=None)
    upload = "/api/data"
    most_bytes, too_long = {upload: held.most_bytes}, {upload: str(held.too_large())}
    application.add_middleware(Doorkeeper, most_bytes=most_bytes, too_long=too_long)
    _add_page(application)
    _add_data(application, held, desk, colleague)
    _add_answers(application, workshop, desk, colleague)
    _add_failures(application, held)
    return application


def _add_page(application: FastAPI) -> None:
    pages = Pages()
    for path in page_paths():
        application.router.routes.append(Route(path, pages))


def _add_data(application: FastAPI, held: DataSets, desk: Desk, colleague: Colleague | None) -> None:
    def take(content: bytes, name: str) -> DataSummary:
        taken = held.add(content, name)
        if colleague is not None:
            colleague.hold(taken)
        return taken.summary()

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
        return await desk.run(lambda: take(content, name), light=True)

    @application.get("/api/data/{identity}", responses=_FAILURES)
    async def data(identity: Identity) -> DataSummary:
        """Say again what data hold."""
        return held.get(identity).summary()

    @application.get("/api/examples")
    async def examples() -> list[Example]:
        """List what comes with the library."""
        return [Example(name=name, title=built.title, sentence=built.sentence) for name, built in EXAMPLES.items()]

    @application.post("/api/examples/{name}", responses=_FAILURES)
    async def example(name: ExampleName) -> DataSummary:
        """Take an example as if it had been uploaded."""

        def make() -> DataSummary:
            content, start = make_example(name)
            return take(content, f"{name}.csv").model_copy(update={"guess": start})

        return await desk.run(make, light=True)


def _add_answers(application: FastAPI, workshop: Workshop, desk: Desk, colleague: Colleague | None) -> None:
    async def answer(
        kind: str, question: Question, inputs: str, make: Callable[[], BaseModel], *, light: bool = False
    ) -> Response:
        workshop.data_sets.get(question.data)  # who asks about data keeps them here
        # No other answer depends on these, nor they on others. A verdict need not stand in line with them, nor a ladder
        # that somebody else climbs; else it comes last, so that it does not delay the answer.
        aside = not light and (kind == "ladder" or (kind == "verdict" and question.guarantee != "auto"))
        helper = colleague if aside and colleague is not None and colleague.holds(question.data) else None
        line = None if light else question.data
        if helper is not None or (aside and kind == "verdict"):
            line = f"{question.data} aside"

        def made_somewhere() -> BaseModel | bytes:
            found = None if helper is None else helper.answer(kind, question, inputs)
            return make() if found is None else found

        made = await desk.answer(f"{kind} {inputs}", made_somewhere, light=light, line=line)
        return Response(made, media_type="application/json")

    @application.post("/api/policy", responses=_FAILURES, response_model=PolicyAnswer)
    async def policy(question: Question, inputs: Inputs) -> Response:
        """Fit the policy, and say what it guarantees."""
        return await answer("policy", question, inputs, lambda: answering.answer_policy(workshop, question, inputs))

    @application.post("/api/verdict", responses=_FAILURES, response_model=VerdictAnswer)
    async def verdict(question: Question, inputs: Inputs) -> Response:
        """Judge whether to believe the forecasts."""
        return await answer("verdict", question, inputs, lambda: answering.answer_verdict(workshop, question, inputs))

    @application.post("/api/stress", responses=_FAILURES, response_model=StressAnswer)
    async def stress(question: Question, inputs: Inputs) -> Response:
        """Play three policies in each other's worst worlds."""
        return await answer("stress", question, inputs, lambda: answering.answer_stress(workshop, question, inputs))

    @application.post("/api/ladder", responses=_FAILURES, response_model=LadderAnswer)
    async def ladder(question: Question, inputs: Inputs) -> Response:
        """Compare the usual guarantees."""
        known = workshop.knows_ladder(question)  # it then need not stand in line
        return await answer(
            "ladder", question, inputs, lambda: answering.answer_ladder(workshop, question, inputs), light=known
        )

    @application.post("/api/explain", responses=_FAILURES, response_model=ExplanationAnswer)
    async def explain(case: Case, inputs: Inputs) -> Response:
        """Say why this action at this forecast."""
        question = case.question
        return await answer(
            "explanation", question, inputs, lambda: answering.answer_explanation(workshop, case, inputs), light=True
        )

    @application.post(
        "/api/files/{file}",
        response_class=PlainTextResponse,
        responses={**_FAILURES, 200: {"content": {media: {} for _, media, _ in _FILES.values()}}},
    )
    async def take_away(file: FileName, wanted: Annotated[Download, Body()]) -> Response:
        """Make a file that reproduces what the page shows."""
        make, media, name = _FILES[file]
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        content = await desk.run(lambda: make(workshop, wanted))
        return Response(content, media_type=media, headers=headers)


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
