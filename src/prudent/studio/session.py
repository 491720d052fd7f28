"""The session: uploaded data, and reports on them; rows own the cache of what was computed on them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from operator import and_
from typing import Any

from prudent.cases.bounded_cache import BoundedCache
from prudent.cases.cases import Cases
from prudent.cases.file_rows import BrokenCell, find_broken_rows, read_sample
from prudent.errors import FileFormatError, InfeasibleError, InputError
from prudent.evidence.audits import usual_guarantees
from prudent.policies.capacity import capacity_from_text
from prudent.problem import DecisionProblem, problem_from_table
from prudent.report import Report
from prudent.spaces import Space
from prudent.studio.data_sets import DataSets, RequestError
from prudent.studio.schemas import Question

# The cache of a sample may hold many times the bytes of its rows, so there are few long samples.
_MAX_SAMPLES, _MAX_BYTES = 8, 32 << 20


@contextmanager
def about(where: str) -> Iterator[None]:
    """Turn errors of the library into errors about a part of the page."""
    try:
        yield
    except (InputError, InfeasibleError, FileFormatError) as error:
        raise RequestError(str(error), where) from error


@about("problem")
def _decision(question: Question) -> DecisionProblem:
    return problem_from_table(question.problem.table())


class Session:
    """Answer questions with the library's own functions.

    Parameters
    ----------
    data_sets : DataSets
    """

    def __init__(self, data_sets: DataSets) -> None:
        self.data_sets = data_sets
        self._rows = BoundedCache(_MAX_SAMPLES, _MAX_BYTES)

    def report(self, question: Question, **page: Any) -> Report:
        """Make the report of a question, in which nothing is computed yet."""
        problem = _decision(question)
        rungs, (cases, _) = usual_guarantees(problem), self.rows(question)
        if question.slack == "audit" and not cases.has_outcomes:
            raise RequestError("measured slack needs outcomes: set the slack by hand.", "slack")
        with about("capacity"):
            capacity = capacity_from_text(question.capacity, problem, len(cases))
        with about("slack"):
            return Report(
                problem,
                cases,
                guarantee=reduce(and_, [rungs[name] for name in question.rungs]) if question.rungs else "auto",
                slack=question.slack,
                capacity=capacity,
                confidence=question.confidence,
                **page,
            )

    def rows(self, question: Question) -> tuple[Cases, str | None]:
        """Read the columns that a question names; say how many rows were left out, and why."""
        self.data_sets.get(question.data)  # data that were dropped are not answered from the cache
        space = _decision(question).space  # the rows depend on its bounds, not on what actions are worth
        key = question.data, question.columns.model_dump_json(), question.skip_broken_rows, repr(space)
        return self._rows.get(key, lambda: self._read(question, space))

    def _read(self, question: Question, space: Space) -> tuple[Cases, str | None]:
        self._rows.discard(lambda key: key[0] not in self.data_sets)
        columns = question.columns
        named, broken = (columns.forecast, columns.outcome, columns.weight), list[BrokenCell]()
        with self.data_sets.get(question.data).table() as table:
            try:
                read = read_sample(table, space, *named, columns.period, **question.reading)
                read.cases.on(space)
            except (InputError, FileFormatError) as error:
                with suppress(InputError, FileFormatError):  # the message is about columns or the file as a whole
                    broken = find_broken_rows(table, space, *named)
                raise RequestError(str(error), "columns", broken) from error
        return read.cases, read.left_out
