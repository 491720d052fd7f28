"""What stands behind a fitted policy or an audit: solutions, worlds, measured moments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import prudent
from prudent.cases.memory_rows import Ambiguity, MemoryRows
from prudent.cases.moment_sums import MomentEstimates
from prudent.slack import Slack
from prudent.solvers import Solution
from prudent.solvers.solve import best_policy


def solution_of(policy: prudent.RobustPolicy, forecasts: Any, outcomes: Any = None, weights: Any = None) -> Solution:
    """Solve again what the policy was fitted for."""
    problem, slack = policy.problem, Slack.read(policy.slack)
    rows = prudent.Cases(forecasts, outcomes if slack.needs_outcomes else None, weights=weights).on(problem.space)
    worlds = rows.worlds(problem, policy.guarantee_, slack, policy.confidence)
    return best_policy(problem, worlds, randomize=policy.randomize)


def worlds_of(problem: prudent.DecisionProblem, forecasts: Any, guarantee: Any, slack: Any = 0.0) -> Any:
    """Build the worlds that a guarantee allows on forecasts."""
    rows = prudent.Cases(forecasts).on(problem.space)
    return rows.worlds(problem, rows.resolve(guarantee), Slack.read(slack))


def build_ambiguity(problem: Any, guarantee: Any, v: Any, w: Any, slack: Any, y: Any = None) -> Ambiguity:
    """Build the worlds that a resolved guarantee allows on rows of positive weight, without their cache."""
    rows = MemoryRows(problem.space, v, y, w, None, v, slice(None))
    return replace(rows.worlds(problem, guarantee, Slack.read(slack)), cache=None, key=None)


def estimate_moments(
    guarantee: Any, space: Any, v: Any, y: Any, w: Any, *, confidence: float, clusters: Any = None
) -> MomentEstimates:
    """Measure the moments of a resolved guarantee."""
    rows = prudent.Cases(v, y, weights=w, periods=clusters).on(space)
    return rows.measure(guarantee, confidence).estimates
