"""Forecasts with their outcomes, read and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.ambiguity import Ambiguity, Slack, SlackSet, build_ambiguity, evaluate_rows
from prudent.arrays import FloatArray, IntArray, cluster_numbers, describe_rows, row_weights
from prudent.auditing.evidence import Measurement, Utilities
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments import MomentEstimates, estimate_moments
from prudent.policies import PureRobustPolicy, RobustPolicy
from prudent.policies.robust import fit_worlds
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, solve
from prudent.spaces import Box, Simplex, Space, place_known_outcomes

__all__ = ["Labelled", "outcome_space", "read_labelled"]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows of positive weight: forecasts, outcomes, weights that sum to one, and clusters if there are any."""

    space: Space
    forecasts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    clusters: IntArray | None
    n_dropped: int

    @property
    def some_forecasts(self) -> FloatArray:
        """All forecasts."""
        return self.forecasts

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        return guarantee.resolve(self.forecasts, self.weights, self.space)

    def measure(self, guarantee: Guarantee, confidence: float, method: str) -> Measurement:
        """Measure the moments of a resolved guarantee."""
        return Measurement(self.estimate(guarantee, confidence, method), len(self.forecasts), self.n_dropped)

    def estimate(self, guarantee: Guarantee, confidence: float, method: str) -> MomentEstimates:
        """Estimate the moments of a resolved guarantee."""
        return estimate_moments(
            guarantee,
            self.space,
            self.forecasts,
            self.outcomes,
            self.weights,
            confidence=confidence,
            method=method,
            clusters=self.clusters,
        )

    def evaluate(self, guarantee: Guarantee) -> EvaluatedTests:
        """Evaluate a resolved guarantee."""
        return evaluate_rows(guarantee, self.forecasts, self.space)

    def best_mixtures(self, problem: DecisionProblem) -> FloatArray:
        """Best respond to every forecast."""
        return problem.best_mixtures(self.forecasts)

    def worlds(self, problem: DecisionProblem, guarantee: Guarantee, slack: Slack) -> Ambiguity:
        """The worlds that a resolved guarantee allows on these rows."""
        tests = self.evaluate(guarantee)
        return build_ambiguity(problem, guarantee, self.forecasts, self.weights, slack, tests=tests)

    def fit(self, policy: RobustPolicy) -> RobustPolicy:
        """Fit a policy whose guarantee is resolved and whose slack is given in numbers."""
        problem, guarantee = policy._problem, policy.guarantee
        return fit_worlds(problem, guarantee, self.worlds(problem, guarantee, Slack.read(policy.slack)))

    def play(self, policy: RobustPolicy | PureRobustPolicy) -> FloatArray:
        """What a policy plays on these rows."""
        return policy.predict_proba(self.forecasts)

    def utilities(self, policy: RobustPolicy) -> Utilities:
        """Add up what a policy gets; all by the same sums, so that who best responds gives up exactly nothing."""
        problem, played = policy._problem, self.play(policy)
        found = problem.expected_utilities([played], [self.forecasts, self.outcomes], self.weights)[0]
        return Utilities(float(found[0]), float(found[1]), self.best_utility(problem))

    def best_utility(self, problem: DecisionProblem) -> float:
        """What best responding gets if the forecasts are right."""
        return problem.expected_utility(self.best_mixtures(problem), self.forecasts, self.weights)

    def stakes(self, problem: DecisionProblem, guarantee: Guarantee, slack: Slack) -> RowStakes:
        """Look at one decision under a resolved guarantee."""
        return RowStakes(problem, guarantee, self, slack)


@dataclass(frozen=True, eq=False)
class RowStakes:
    """One decision in the worlds that a guarantee allows on rows in memory."""

    problem: DecisionProblem
    guarantee: Guarantee
    sample: Labelled
    allowance: Slack

    @cached_property
    def _ambiguity(self) -> Ambiguity:
        return self._with(self.allowance)

    def _with(self, slack: Slack) -> Ambiguity:
        return self.sample.worlds(self.problem, self.guarantee, slack)

    @property
    def slack(self) -> SlackSet:
        """The allowed moments."""
        return self._ambiguity.slack

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which scalar tests are not zero everywhere, ``(k,)``."""
        return self._ambiguity.tests.sizes > 0

    def best_responding(self) -> Certificate:
        """What best responding guarantees."""
        played = self.sample.best_mixtures(self.problem)
        return solve(Game.of_mixtures(self.problem, played), self._ambiguity).certificate

    def best(self, slack: Slack) -> Certificate:
        """What the best policy guarantees, with other slack."""
        return solve(Game.of_problem(self.problem), self._with(slack)).certificate


def read_labelled(
    forecasts: Any,
    outcomes: Any,
    *,
    problem: DecisionProblem | None,
    space: Space | None,
    sample_weight: Any,
    groups: Any,
    missing: str,
) -> Labelled:
    """Check lengths, spaces, weights, groups and missing outcomes."""
    shape: tuple[int, ...] = np.shape(forecasts)
    place = outcome_space(shape[1] if len(shape) == 2 and shape[1] else 1, problem, space)
    placed, _ = place.place(forecasts, "forecasts")
    if outcomes is None:
        raise InputError("outcomes must be given: without them nothing can be measured.")
    known, kept = _known_outcomes(outcomes, missing, place)
    if len(kept) != len(placed):
        raise InputError(f"outcomes must have one row per forecast, {len(placed)}; got {len(kept)}.")
    weights, used = row_weights(sample_weight, len(placed))
    clusters = None if groups is None else cluster_numbers(groups, len(placed))
    rows = used & kept
    if not rows.any():
        raise InputError("outcomes must be known for at least one row of positive weight.")
    n_dropped = int((~kept).sum())
    if rows.all():
        return Labelled(place, placed, known, weights, clusters, n_dropped)
    weights = weights[rows]
    if clusters is not None:
        clusters = np.unique(clusters[rows], return_inverse=True)[1].astype(np.int64)
    return Labelled(place, placed[rows], known[used[kept]], weights / weights.sum(), clusters, n_dropped)


def outcome_space(n_columns: int, problem: DecisionProblem | None, space: Space | None) -> Space:
    """Take the space that is given, that of the problem, or as many unit intervals as forecasts have columns."""
    if problem is not None:
        if not isinstance(problem, DecisionProblem):
            raise InputError(f"problem must be a DecisionProblem; got {type(problem).__name__}.")
        if space is not None and not problem.space.same_as(space):
            raise InputError(f"space {space!r} is not the problem's, {problem.space!r}; give one of them.")
        return problem.space
    if space is None:
        return Box(0.0, 1.0).with_dimension(n_columns)
    if not isinstance(space, (Box, Simplex)):
        raise InputError(f"space must be a Box or a Simplex; got {type(space).__name__}.")
    return space


def _known_outcomes(outcomes: Any, missing: str, space: Space) -> tuple[FloatArray, Any]:
    """Return the outcomes that are known, and which rows they are."""
    if missing not in ("refuse", "drop"):
        raise InputError(f"missing must be 'refuse' or 'drop'; got {missing!r}.")
    known, present = place_known_outcomes(space, outcomes)
    if not len(known):
        raise InputError("outcomes are missing in every row.")
    if missing == "refuse" and not present.all():
        raise InputError(
            f"outcomes are missing in {describe_rows(np.flatnonzero(~present))}. Wait for them, or leave these rows "
            f"out with missing='drop'; if rows with missing outcomes differ from the others, the result does not "
            f"speak of them."
        )
    return known, present
