"""Forecasts with their outcomes, checked once; what is computed on them is cached with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, cluster_numbers, describe_rows, frozen, row_weights
from prudent.cases.ambiguity import Ambiguity, build_ambiguity, evaluate_rows
from prudent.cases.bounded_cache import BoundedCache
from prudent.cases.intervals import require_method
from prudent.cases.moment_estimates import Measurement, MomentEstimates, estimates_from_sums
from prudent.cases.moment_sums import MomentSums, join_sums, moment_sums
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, parts_of
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.policies import TiltedPolicy, require_problem
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate, Game, solve
from prudent.spaces import Box, Space, require_space

Fitted = TypeVar("Fitted", bound=TiltedPolicy)

# One decision takes about 16 times the bytes of the forecasts: the six worst worlds of a ladder, and the tests of its
# guarantees. What does not depend on the decision must outlast the next one.
_TIMES_FORECASTS, _MIN_BYTES, _MAX_BYTES = 32, 32 << 20, 512 << 20


@dataclass(frozen=True)
class Utilities:
    """Mean utilities: of a policy if forecasts are right and on the outcomes, and of best responding if right."""

    nominal: float
    realised: float
    best: float


@frozen
class AuditSample:
    """Rows of positive weight in memory.

    Attributes
    ----------
    space : Box or Simplex
    forecasts : array of shape (n, d)
    outcomes : array of shape (n, d) or None
        Where there are none, policies can be fitted and nothing can be measured.
    weights : array of shape (n,)
        Sum to one.
    clusters : array of shape (n,) or None
    n_dropped : int
        Rows left out because their outcome is missing.

    Examples
    --------
    >>> import prudent
    >>> from prudent.evidence.sample import read_rows
    >>> rows = read_rows([0.2, 0.6, 0.7], [0.0, 1.0, 1.0])
    >>> guarantee = prudent.guarantees.Unbiased()
    >>> rows.evaluate(guarantee) is rows.evaluate(guarantee)
    True
    """

    space: Space
    forecasts: FloatArray
    outcomes: FloatArray | None
    weights: FloatArray
    clusters: IntArray | None
    n_dropped: int

    @cached_property
    def cache(self) -> BoundedCache:
        """Results on these rows, by everything else that they depend on."""
        wanted = _TIMES_FORECASTS * self.forecasts.nbytes
        return BoundedCache(64, min(max(wanted, _MIN_BYTES), _MAX_BYTES))

    @property
    def known_outcomes(self) -> FloatArray:
        """The outcomes; an error where there are none."""
        if self.outcomes is None:
            raise InputError("outcomes must be given: without them nothing can be measured.")
        return self.outcomes

    def resolve(self, guarantee: Guarantee) -> Guarantee:
        """Fix everything that depends on the sample."""
        return guarantee.resolve(self.forecasts, self.weights, self.space)

    def evaluate(self, guarantee: Guarantee) -> EvaluatedTests:
        """Evaluate a resolved guarantee."""
        return self.cache.get(("tests", guarantee), lambda: evaluate_rows(guarantee, self.forecasts, self.space))

    def measure(self, guarantee: Guarantee, confidence: float, method: str = "auto") -> Measurement:
        """Measure the moments of a resolved guarantee."""
        key = "moments", guarantee, confidence, method
        estimates = self.cache.get(key, lambda: self._estimate(guarantee, confidence, method))
        return Measurement(estimates, len(self.forecasts), self.n_dropped)

    def _estimate(self, guarantee: Guarantee, confidence: float, method: str) -> MomentEstimates:
        require_method(method)
        parts = parts_of(guarantee)
        scalar = all(part.evaluate(self.forecasts[:1], self.space).scalar for part in parts)
        rows = self.space, self.forecasts, self.known_outcomes, self.weights, self.clusters

        def sums_of(part: Guarantee) -> MomentSums:
            return self.cache.get(("sums", part, scalar), lambda: moment_sums(part, *rows, written_out=not scalar))

        # Sums do not depend on the confidence, nor those of one part on the others.
        sums = join_sums([sums_of(part) for part in parts])
        return estimates_from_sums(sums, confidence, method, unit="row" if self.clusters is None else "group")

    def worlds(
        self, problem: DecisionProblem, guarantee: Guarantee, slack: Slack, confidence: float = 0.95
    ) -> Ambiguity:
        """Build the worlds that a resolved guarantee allows; slack that is measured has the given confidence."""
        built = build_ambiguity(
            problem,
            guarantee,
            self.forecasts,
            self.weights,
            slack,
            self.known_outcomes if slack.needs_outcomes else None,
            confidence,
            self.evaluate(guarantee),
            self.measure(guarantee, confidence).estimates if slack.audited else None,
        )
        return replace(built, cache=self.cache)

    def fit(self, policy: Fitted) -> Fitted:
        """Fit a policy to these rows."""
        guarantee = self.resolve(policy.guarantee)
        worlds = self.worlds(policy.problem, guarantee, Slack.read(policy.slack), policy.confidence)
        return policy.fit_worlds(guarantee, worlds, self.forecasts)

    def utilities(self, policy: TiltedPolicy) -> Utilities:
        """Compute the mean utilities of a policy, all by the same sums: the plug-in policy gives up exactly zero."""
        problem, rows = policy._problem, self.forecasts
        in_worlds = [rows, self.known_outcomes]
        played = policy.predict_proba(rows)
        nominal, realised = problem.expected_utilities([played], in_worlds, self.weights)[0].tolist()
        best = self.cache.get(
            ("best utility", problem),
            lambda: problem.expected_utility(problem.best_mixtures(rows), rows, self.weights),
        )
        return Utilities(nominal, realised, best)

    def decision(self, problem: DecisionProblem, guarantee: Guarantee) -> DecisionOnSample:
        """Look at one decision under a resolved guarantee."""
        return DecisionOnSample(problem, guarantee, self)


@frozen
class DecisionOnSample:
    """One decision in the worlds that a guarantee allows on rows in memory."""

    problem: DecisionProblem
    guarantee: Guarantee
    sample: AuditSample

    @property
    def seen(self) -> BoolArray:
        """Which scalar tests are not zero everywhere, ``(k,)``."""
        return self.sample.evaluate(self.guarantee).sizes > 0

    def best_responding(self, slack: Slack) -> Certificate:
        """Certify what best responding guarantees, with slack in numbers."""
        played = self.problem.best_mixtures(self.sample.forecasts)
        return self._solve(Game.of_mixtures(self.problem, played), slack)

    def best(self, slack: Slack) -> Certificate:
        """Certify what the best policy guarantees, with slack in numbers."""
        return self._solve(Game.of_problem(self.problem), slack)

    def _solve(self, game: Game, slack: Slack) -> Certificate:
        return solve(game, self.sample.worlds(self.problem, self.guarantee, slack)).certificate


def read_rows(
    forecasts: Any,
    outcomes: Any,
    *,
    problem: DecisionProblem | None = None,
    space: Space | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    missing: str = "refuse",
    name: str = "forecasts",
) -> AuditSample:
    """Check lengths, spaces, weights, groups and missing outcomes; errors call the forecasts by their ``name``."""
    shape: tuple[int, ...] = np.shape(forecasts)
    place = outcome_space(shape[1] if len(shape) == 2 and shape[1] else 1, problem, space)
    placed, _ = place.place(forecasts, name)
    known, kept = None, np.ones(len(placed), dtype=bool)
    if outcomes is not None:
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
        return AuditSample(place, placed, known, weights, clusters, n_dropped)
    weights = weights[rows]
    if n_dropped:
        weights = weights / weights.sum()
    if clusters is not None:
        clusters = np.unique(clusters[rows], return_inverse=True)[1]
    known = None if known is None else known[used[kept]]
    return AuditSample(place, placed[rows], known, weights, clusters, n_dropped)


def outcome_space(n_columns: int, problem: DecisionProblem | None, space: Space | None) -> Space:
    """Take the space that is given, that of the problem, or as many unit intervals as forecasts have columns."""
    if problem is not None:
        if space is not None and not require_problem(problem).space.same_as(space):
            raise InputError(f"space {space!r} is not the problem's, {problem.space!r}; give one of them.")
        return require_problem(problem).space
    return Box(0.0, 1.0).with_dimension(n_columns) if space is None else require_space(space)


def _known_outcomes(outcomes: Any, missing: str, space: Space) -> tuple[FloatArray, Any]:
    """Return the outcomes that are known, and which rows they are."""
    if missing not in ("refuse", "drop"):
        raise InputError(f"missing must be 'refuse' or 'drop'; got {missing!r}.")
    known, present = space.place_known_outcomes(outcomes)
    if not len(known):
        raise InputError("outcomes are missing in every row.")
    if missing == "refuse" and not present.all():
        raise InputError(
            f"outcomes are missing in {describe_rows(np.flatnonzero(~present))}. Wait for them, or leave these rows "
            f"out with missing='drop'; if rows with missing outcomes differ from the others, the result does not "
            f"speak of them."
        )
    return known, present
