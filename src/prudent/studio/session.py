"""The session: uploaded data, and the library's results on them; rows own the cache of what was computed on them."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from functools import reduce
from time import perf_counter
from typing import Any

from prudent.adversary.stress_test import StressTest, compare
from prudent.arrays import FloatArray, frozen, row_weights
from prudent.cases.bounded_cache import BoundedCache
from prudent.cases.cases import Cases
from prudent.cases.file_rows import Sample, read_sample
from prudent.cases.memory_rows import MemoryRows
from prudent.cases.row_diagnostics import BrokenCell, find_broken_rows, find_unusable_rows
from prudent.errors import FileFormatError, InfeasibleError, InputError
from prudent.evidence.audits import Audit, audit_rows
from prudent.evidence.ladder import GuaranteeLadder, ladder_of_rows, usual_guarantees
from prudent.guarantees import Guarantee
from prudent.policies import PlugInPolicy, RobustPolicy, SafetyPolicy
from prudent.policies.play import play
from prudent.problem import DecisionProblem
from prudent.report import Report
from prudent.spaces import Space
from prudent.studio.data_sets import DataSets
from prudent.studio.schemas import Question

# The cache of a sample may hold many times the bytes of its rows, so there are few long samples.
_MAX_SAMPLES, _MAX_BYTES = 8, 32 << 20


class QuestionError(Exception):
    """A question cannot be answered: what is wrong, in which part of it, and in which rows."""

    def __init__(self, message: str, where: str, rows: list[BrokenCell] | None = None) -> None:
        super().__init__(message)
        self.where, self.rows = where, rows or []


@frozen
class Rows:
    """The columns that a question names.

    Attributes
    ----------
    table : Sample
        As read from the file.
    sample : MemoryRows
        Those of positive weight, with the cache of results on them.
    weights : array of shape (n,)
        Of all rows, sum one.
    left_out : str or None
        How many rows were skipped, and why.
    """

    table: Sample
    sample: MemoryRows
    weights: FloatArray
    left_out: str | None

    @property
    def forecasts(self) -> FloatArray:
        """Of all rows, ``(n, d)``."""
        return self.table.forecasts


@frozen
class Fitted:
    """A policy, the rungs that it relies on, what it gets and plays if forecasts are right, and how long it took."""

    policy: RobustPolicy
    rungs: list[str]
    nominal: float
    shares: FloatArray
    seconds: float


class Session:
    """Answer questions with the library's own functions.

    Parameters
    ----------
    data_sets : DataSets
    """

    def __init__(self, data_sets: DataSets) -> None:
        self.data_sets = data_sets
        self._rows = BoundedCache(_MAX_SAMPLES, _MAX_BYTES)

    def problem(self, question: Question) -> DecisionProblem:
        """Build the decision."""
        with about("problem"):
            return question.decision

    def rows(self, question: Question) -> Rows:
        """Read the columns that a question names."""
        self.data_sets.get(question.data)  # data that were dropped are not answered from the cache
        space = self.problem(question).space  # the rows depend on its bounds, not on what actions are worth
        key = question.data, question.columns.model_dump_json(), question.skip_broken_rows, repr(space)
        return self._rows.get(key, lambda: self._read(question, space))

    def ladder(self, question: Question) -> GuaranteeLadder:
        """Compare the usual guarantees on these data."""
        problem, sample = self.problem(question), self._with_outcomes(question, "the ladder is measured on").sample

        def compute() -> GuaranteeLadder:
            with about("columns"):
                rungs = usual_guarantees(problem)
                return ladder_of_rows(sample, problem, rungs, question.confidence)

        return sample.cache.get(("ladder", problem, question.confidence), compute)

    def policy(self, question: Question) -> Fitted:
        """Fit the policy that is asked for, as a report does."""
        problem, rows = self.problem(question), self.rows(question)

        def compute() -> Fitted:
            start = perf_counter()
            with about("guarantee"):
                policy, rungs = self._fit(question, problem, rows.sample)
                played = policy.predict_proba(rows.forecasts)
            nominal = problem.expected_utility(played, rows.forecasts, rows.weights)
            return Fitted(policy, rungs, nominal, rows.weights @ played, perf_counter() - start)

        return rows.sample.cache.get(("policy", *_policy_key(question, problem)), compute)

    def audit(self, question: Question) -> Audit:
        """Measure the guarantee, and judge."""
        problem, sample = self.problem(question), self._with_outcomes(question, "a verdict needs").sample

        def compute() -> Audit:
            guarantee, confidence = _chosen_guarantee(question, problem), question.confidence
            if guarantee is None:
                ladder = self.ladder(question)
                guarantee, confidence = ladder.best.guarantee, ladder.rung_confidence
            with about("guarantee"):
                return audit_rows(sample, guarantee, problem, confidence)

        return sample.cache.get(("audit", problem, question.rungs, question.confidence), compute)

    def stress(self, question: Question) -> StressTest:
        """Play best responding, the policy and safety in each other's worst worlds."""
        problem, rows, policy = self.problem(question), self.rows(question), self.policy(question).policy

        def compute() -> StressTest:
            with about("guarantee"):
                worlds = rows.sample.worlds(problem, policy.guarantee_, policy.slack_, policy.confidence)
                policies = {"plug-in": PlugInPolicy(problem), "robust": policy, "safety": SafetyPolicy(problem)}
                return compare(tuple(policies), play(list(policies.values()), rows.sample, problem), worlds)

        return rows.sample.cache.get(("stress", *_policy_key(question, problem)), compute)

    def report(self, question: Question, source: str, command: str) -> Report:
        """Make the report of the same inputs."""
        problem, rows = self.problem(question), self._with_outcomes(question, "a report needs")
        if rows.left_out is not None:
            source = f"{source}, {rows.left_out}"
        with about("guarantee"):
            return Report(
                problem,
                rows.forecasts,
                rows.table.outcomes,
                guarantee=_chosen_guarantee(question, problem) or "auto",
                slack=question.slack,
                randomize=not question.pure,
                confidence=question.confidence,
                weights=rows.table.weights,
                source=source,
                command=command,
            )

    def _with_outcomes(self, question: Question, needs: str) -> Rows:
        rows = self.rows(question)
        if rows.table.outcomes is None:
            raise QuestionError(f"{needs} outcomes: choose a column of outcomes.", "columns.outcome")
        return rows

    def _read(self, question: Question, space: Space) -> Rows:
        self._rows.discard(lambda key: key[0] not in self.data_sets)
        columns, leave_out, left_out = question.columns, None, None
        named = columns.forecast, columns.outcome, columns.weight
        try:
            with self.data_sets.get(question.data).table() as table:
                if question.skip_broken_rows:
                    unusable = find_unusable_rows(table, space, *named)
                    if unusable.rows.all():
                        raise InputError(f"no row is left: {unusable}.")
                    leave_out, left_out = unusable.rows, str(unusable) if unusable.count else None
                read = read_sample(table, space, *named, leave_out=leave_out)
            weights, _ = row_weights(read.weights, len(read.forecasts))
            sample = Cases(read.forecasts, read.outcomes, weights=read.weights).on(space)
        except (InputError, FileFormatError) as error:
            raise QuestionError(str(error), "columns", self._broken_rows(question.data, space, *named)) from error
        return Rows(read, sample, weights, left_out)

    def _broken_rows(self, data: str, space: Space, *named: Any) -> list[BrokenCell]:
        try:
            with self.data_sets.get(data).table() as table:
                return find_broken_rows(table, space, *named, limit=100)
        except (InputError, FileFormatError):
            return []  # the message is about columns or the file as a whole

    def _fit(self, question: Question, problem: DecisionProblem, sample: MemoryRows) -> tuple[RobustPolicy, list[str]]:
        """Fit the policy; also name the rungs that it relies on."""
        if question.slack == "audit" and sample.outcomes is None:
            raise QuestionError("measured slack needs outcomes: set the slack by hand.", "slack")
        names, guarantee = list(question.rungs), _chosen_guarantee(question, problem)
        slack: Any = question.slack
        if guarantee is None:
            if question.slack != "audit":
                raise QuestionError("slack by hand needs a rung: pick one, or measure the slack.", "slack")
            best = self.ladder(question).best
            if not question.pure:
                return best.policy, [best.name]
            names, guarantee, slack = [best.name], best.guarantee, best.policy.slack_
        options: dict[str, Any] = {"randomize": not question.pure, "slack": slack, "confidence": question.confidence}
        return RobustPolicy(problem, guarantee, **options).fit_rows(sample), names


def _policy_key(question: Question, problem: DecisionProblem) -> tuple[Hashable, ...]:
    """Everything beside the rows that a policy depends on."""
    return problem, question.rungs, question.slack, question.confidence, question.pure


def _chosen_guarantee(question: Question, problem: DecisionProblem) -> Guarantee | None:
    """Join the rungs that were picked; None under "auto"."""
    rungs = usual_guarantees(problem)
    picked = [rungs[name] for name in question.rungs]
    return reduce(lambda left, right: left & right, picked) if picked else None


@contextmanager
def about(where: str) -> Iterator[None]:
    """Turn errors of the library into errors about a part of the page."""
    try:
        yield
    except (InputError, InfeasibleError, FileFormatError) as error:
        raise QuestionError(str(error), where) from error
