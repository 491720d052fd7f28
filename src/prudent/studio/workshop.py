"""From questions to results of the library, each computed once and remembered for what it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from time import perf_counter
from typing import Literal

import numpy as np

from prudent.adversary import Sample as WorldSample
from prudent.adversary import gather_sample, mixtures_of
from prudent.ambiguity import Slack
from prudent.arrays import FloatArray, row_weights
from prudent.auditing import Audit, FamiliarRows, GuaranteeLadder, climb, inspect, usual_guarantees
from prudent.errors import FileFormatError, InfeasibleError, InputError
from prudent.guarantees import Guarantee
from prudent.policies import PlugInPolicy, PureRobustPolicy, RobustPolicy, SafetyPolicy
from prudent.problem import DecisionProblem
from prudent.report import Report
from prudent.spaces import Box, Space
from prudent.stress import StressTest, compare
from prudent.studio.answers import Crowd
from prudent.studio.data_sets import DataSets
from prudent.studio.mapping import find_crowds, map_kind
from prudent.studio.questions import Question
from prudent.studio.remembering import Memory
from prudent.tables import (
    BrokenCell,
    Sample,
    WithoutRows,
    find_broken_rows,
    find_unusable_rows,
    read_sample,
)

__all__ = ["Fitted", "QuestionError", "Workshop"]

_LISTED = 100
_BARS = 60
_MOST_PLAYED = 4 << 20


class QuestionError(Exception):
    """A question cannot be answered: what is wrong, in which part of it, and in which rows."""

    def __init__(self, message: str, where: str, rows: list[BrokenCell] | None = None) -> None:
        super().__init__(message)
        self.where, self.rows = where, rows or []


@dataclass(frozen=True, eq=False)
class Weighed:
    """Rows with the weights that they have in means, and how forecasts are spread.

    For one coordinate that is a histogram, for two of them or three classes crowds on a map of that kind.
    """

    sample: Sample
    weights: FloatArray
    histogram: tuple[FloatArray, FloatArray] | None
    kind: Literal["plane", "triangle"] | None
    crowds: list[Crowd]
    left_out: str | None


@dataclass(frozen=True, eq=False)
class Believing:
    """Best responding, if every forecast is right: what it earns, and how often it plays each action."""

    utility: float
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Fitted:
    """A policy, the rungs that it stands on, and how long the fit took."""

    policy: RobustPolicy | PureRobustPolicy
    rungs: list[str]
    seconds: float


@dataclass(frozen=True, eq=False)
class Worlds:
    """The worlds of a stress test; and the familiar rows that they are on, if all rows have outcomes and weight."""

    sample: WorldSample
    rows: FamiliarRows | None


class Workshop:
    """Computes with the library's own functions; holds the data and the last results.

    Parameters
    ----------
    data_sets : DataSets
    """

    def __init__(self, data_sets: DataSets) -> None:
        self.data_sets = data_sets
        self._samples = Memory[Weighed](8, 128 << 20)
        self._rows = Memory[FamiliarRows](8, 64 << 20)
        self._believing = Memory[Believing](64)
        self._ladders = Memory[GuaranteeLadder](16, 64 << 20)
        self._policies = Memory[Fitted](32, 128 << 20)
        self._played = Memory[FloatArray](4, 64 << 20)
        self._audits = Memory[Audit](32, 64 << 20)
        self._stress_tests = Memory[StressTest](64)
        data_sets.when_dropped(self._forget)

    def _forget(self, identity: str) -> None:
        """Drop what is remembered about data that are gone; every key names its data."""
        for memory in (self._samples, self._rows, self._believing, self._ladders, self._policies, self._played):
            memory.forget(identity)
        self._audits.forget(identity)
        self._stress_tests.forget(identity)

    def problem(self, question: Question) -> DecisionProblem:
        """Build the decision."""
        with _about("problem"):
            return question.decision

    def weighed(self, question: Question) -> Weighed:
        """Read the columns that a question names."""
        held = self.data_sets.get(question.data)
        space = self.problem(question).space

        def read() -> Weighed:
            named = question.columns.forecast, question.columns.outcome, question.columns.weight
            try:
                table, unusable = held.table(), None
                if question.skip_broken_rows:
                    unusable = find_unusable_rows(held.table(), space, *named)
                    if unusable.rows.all():
                        raise InputError(f"no row is left: {unusable}.")
                    table = WithoutRows(table, unusable.rows)
                sample = read_sample(table, space, *named)
                weights, _ = row_weights(sample.weights, len(sample.forecasts))
            except (InputError, FileFormatError) as error:
                raise QuestionError(str(error), "columns", self._broken_rows(question, space)) from error
            histogram = None
            if isinstance(space, Box) and space.dimension == 1:
                ends = (space.lower[0], space.upper[0])
                counts, edges = np.histogram(sample.forecasts[:, 0], bins=_BARS, range=ends, weights=weights)
                histogram = counts * len(weights), edges
            kind = map_kind(space)
            crowds = [] if kind is None else find_crowds(space, sample.forecasts, weights)
            left_out = str(unusable) if unusable is not None and unusable.count else None
            return Weighed(sample, weights, histogram, kind, crowds, left_out)

        return self._samples.get(_rows_of(question, space), read)

    def sample(self, question: Question) -> Sample:
        """Return the rows of the columns that a question names."""
        return self.weighed(question).sample

    def rows(self, question: Question) -> FamiliarRows:
        """Return rows with outcomes, ready to be measured; they know what does not depend on the decision."""
        problem, sample = self.problem(question), self.sample(question)

        def read() -> FamiliarRows:
            with _about("columns"), sample.naming_rows():
                return FamiliarRows.read(sample.forecasts, sample.outcomes, problem, sample.weights)

        return self._rows.get(_rows_of(question, problem.space), read)

    def believing(self, question: Question) -> Believing:
        """Best respond to every forecast."""
        problem, weighed = self.problem(question), self.weighed(question)

        def respond() -> Believing:
            forecasts, weights, rows = weighed.sample.forecasts, weighed.weights, self._all_rows(question)
            best = problem.best_mixtures(forecasts) if rows is None else rows.best_mixtures(problem)
            return Believing(problem.expected_utility(best, forecasts, weights), weights @ best)

        return self._believing.get(_decision_of(question, problem.space), respond)

    def ladder(self, question: Question) -> GuaranteeLadder:
        """Compare the usual guarantees on these data."""
        problem = self.problem(question)
        if self.sample(question).outcomes is None:
            raise QuestionError("the ladder is measured on outcomes: choose a column of outcomes.", "columns.outcome")

        def make() -> GuaranteeLadder:
            rows = self.rows(question)
            with _about("columns"), self.sample(question).naming_rows():
                return climb(rows, problem, usual_guarantees(problem), question.confidence, center="measured")

        return self._ladders.get(_ladder_of(question, problem.space), make)

    def knows_ladder(self, question: Question) -> bool:
        """True if the ladder was made before, such as to find the best rung."""
        return self._ladders.holds(_ladder_of(question, self.problem(question).space))

    def policy(self, question: Question) -> Fitted:
        """Fit the policy that is asked for, as a report does."""
        problem, sample = self.problem(question), self.sample(question)

        def fit() -> Fitted:
            rungs, guarantee, slack = self._promise(question, problem)
            start = perf_counter()
            family = PureRobustPolicy if question.pure else RobustPolicy
            with _about("guarantee"), sample.naming_rows():
                policy = family(problem, guarantee, slack=slack, confidence=question.confidence)
                rows = self._all_rows(question)
                if rows is None:
                    policy.fit(sample.forecasts, sample.outcomes, sample_weight=sample.weights)
                else:
                    rows.fit_as_given(policy, sample.forecasts)
            return Fitted(policy, rungs, perf_counter() - start)

        return self._policies.get(question.key(), fit)

    def played(self, question: Question) -> FloatArray:
        """What the policy plays on every row, ``(n, m)``."""
        forecasts, policy = self.sample(question).forecasts, self.policy(question).policy
        if len(forecasts) * self.problem(question).n_actions > _MOST_PLAYED:
            return policy.predict_proba(forecasts)

        def play() -> FloatArray:
            rows = self._all_rows(question)
            return policy.predict_proba(forecasts) if rows is None else rows.play(policy)

        return self._played.get(question.key(), play)

    def _all_rows(self, question: Question) -> FamiliarRows | None:
        """Familiar rows, if all rows have outcomes and weight."""
        sample = self.sample(question)
        rows = None if sample.outcomes is None else self.rows(question)
        return None if rows is None or len(rows.forecasts) < len(sample.forecasts) else rows

    def audit(self, question: Question) -> Audit:
        """Measure the guarantee, and judge."""
        problem, sample = self.problem(question), self.sample(question)
        if sample.outcomes is None:
            raise QuestionError("a verdict needs outcomes: choose a column of outcomes.", "columns.outcome")

        def measure() -> Audit:
            confidence = question.confidence
            if question.guarantee == "auto":
                ladder = self.ladder(question)
                guarantee, confidence = ladder.best.guarantee, ladder.rung_confidence
            else:
                guarantee = chosen_guarantee(question, problem)
            rows = self.rows(question)
            with _about("guarantee"), sample.naming_rows():
                return inspect(rows, guarantee, problem, confidence, brief=True)

        depends_on = f"{_decision_of(question, problem.space)} {question.key('confidence', 'guarantee')}"
        return self._audits.get(depends_on, measure)

    def stress(self, question: Question) -> StressTest:
        """Play best responding, the policy and safety in each other's worst worlds."""
        problem, sample, policy = self.problem(question), self.sample(question), self.policy(question).policy

        def play() -> StressTest:
            with _about("guarantee"):
                worlds = self._worlds(question)
                safe = np.tile(SafetyPolicy(problem).predict_proba(sample.forecasts[:1]), (len(sample.forecasts), 1))
                best = PlugInPolicy(problem) if worlds.rows is None else worlds.rows.best_mixtures(problem)
                played = {"best respond": best, "robust": self.played(question), "play safe": safe}
                mixtures = [mixtures_of(one, sample.forecasts, worlds.sample) for one in played.values()]
                optimum = policy.solution_ if _solves_stress_test(policy) else None
                return compare(worlds.sample, tuple(played), mixtures, sample.outcomes, optimum)

        return self._stress_tests.get(question.key(), play)

    def _worlds(self, question: Question) -> Worlds:
        """Gather what a stress test gathers, with tests that were evaluated before where all rows were."""
        problem, sample, policy = self.problem(question), self.sample(question), self.policy(question).policy
        guarantee, slack = policy.guarantee_, policy.slack_
        rows = self._all_rows(question)
        if rows is not None:
            worlds = rows.worlds(problem, guarantee, slack)
            return Worlds(WorldSample(problem, rows.forecasts, rows.weights, slice(None), worlds), rows)
        return Worlds(gather_sample(problem, sample.forecasts, guarantee, slack, None, sample.weights), None)

    def report(self, question: Question, source: str, command: str) -> Report:
        """Make the report of the same inputs."""
        problem, weighed = self.problem(question), self.weighed(question)
        sample = weighed.sample
        if sample.outcomes is None:
            raise QuestionError("a report needs outcomes: choose a column of outcomes.", "columns.outcome")
        if weighed.left_out is not None:
            source = f"{source}, {weighed.left_out}"
        guarantee = "auto" if question.guarantee == "auto" else chosen_guarantee(question, problem)
        with _about("guarantee"), sample.naming_rows():
            return Report(
                problem,
                sample.forecasts,
                sample.outcomes,
                guarantee=guarantee,
                slack=question.slack,
                pure=question.pure,
                confidence=question.confidence,
                sample_weight=sample.weights,
                source=source,
                command=command,
            )

    def _promise(self, question: Question, problem: DecisionProblem) -> tuple[list[str], Guarantee, float | Slack]:
        """Find names, guarantee and slack of what the policy relies on."""
        if question.slack == "audit" and not question.columns.outcome:
            raise QuestionError("measured slack needs outcomes: set the slack by hand.", "slack")
        if question.guarantee == "auto":
            if question.slack != "audit":
                raise QuestionError("slack by hand needs a rung: pick one, or measure the slack.", "slack")
            best = self.ladder(question).best
            return [best.name], best.guarantee, best.policy.slack_
        measured = Slack("audit", center="measured")
        slack = measured if question.slack == "audit" else question.slack
        return list(question.guarantee), chosen_guarantee(question, problem), slack

    def _broken_rows(self, question: Question, space: Space) -> list[BrokenCell]:
        columns = question.columns
        try:
            return find_broken_rows(
                self.data_sets.get(question.data).table(),
                space,
                columns.forecast,
                columns.outcome,
                columns.weight,
                limit=_LISTED,
            )
        except (InputError, FileFormatError):
            return []  # what is wrong concerns columns or the file as a whole, and its message says so


def _rows_of(question: Question, space: Space) -> str:
    """Say what rows depend on: the outcome's bounds, but not what actions are worth."""
    return f"{question.key('data', 'columns', 'skip_broken_rows')} {space!r}"


def _decision_of(question: Question, space: Space) -> str:
    return f"{_rows_of(question, space)} {question.key('problem')}"


def _ladder_of(question: Question, space: Space) -> str:
    return f"{_decision_of(question, space)} {question.confidence!r}"


def _solves_stress_test(policy: RobustPolicy | PureRobustPolicy) -> bool:
    """True if the fit has solved what a stress test solves for the best policy, to the last bit.

    A fit that measures slack knows one world more, the outcomes, which only the interior point looks at; and its centre
    comes in the tests' units, where the stress test's has been written down in those of slack.
    """
    same = not Slack.read(policy.slack).needs_outcomes or bool((policy.tests_.scales == 1).all())
    return same and isinstance(policy, RobustPolicy) and policy.solution_.method != "interior point"


def chosen_guarantee(question: Question, problem: DecisionProblem) -> Guarantee:
    """Join the rungs that were picked."""
    rungs = usual_guarantees(problem)
    return reduce(lambda left, right: left & right, [rungs[name] for name in dict.fromkeys(question.guarantee)])


@contextmanager
def _about(where: str) -> Iterator[None]:
    """Let errors of the library say which part of the page they are about."""
    try:
        yield
    except (InputError, InfeasibleError, FileFormatError) as error:
        raise QuestionError(str(error), where) from error
