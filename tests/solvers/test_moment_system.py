"""Moments of tests kept as columns are those of the same tests written out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.cases.memory_rows import Ambiguity
from prudent.solvers import Game, solve
from prudent.solvers.moment_system import reduce_moments
from solutions import build_ambiguity

N = 5_000
RNG = np.random.default_rng(2)
CLASSES = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
PLANE = prudent.DecisionProblem([[1.0, 0.2], [0.1, 1.1], [0.6, 0.6]], [0.0, 0.1, 0.05])
ROWS = {3: RNG.dirichlet([2, 3, 2], N), 2: RNG.beta(2, 3, (N, 2))}
WEIGHTS = RNG.random(N) + 0.1
WEIGHTS /= WEIGHTS.sum()
CLASS_TESTS = guarantees.SelfOrthogonal(intercept=True) & guarantees.UtilityCalibrated(CLASSES)
PLANE_TESTS = guarantees.Unbiased() & guarantees.UtilityCalibrated(PLANE)
CASES = [
    (CLASSES, CLASS_TESTS, prudent.Slack(0.01, "linf")),
    (CLASSES, CLASS_TESTS, 0.01),
    (CLASSES, CLASS_TESTS, [0.01] * 4 + [0.0]),
    (PLANE, PLANE_TESTS, 0.0),
    (PLANE, PLANE_TESTS, prudent.Slack([0.0, 0.0, 0.01], "linf")),
]


def both(problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee, slack: Any) -> tuple[Ambiguity, Ambiguity]:
    columns = build_ambiguity(problem, guarantee, ROWS[problem.dimension], WEIGHTS, slack)
    return columns, replace(columns, tests=columns.tests.as_vector())


@pytest.mark.parametrize(("problem", "guarantee", "slack"), CASES)
def test_the_same_solution(problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee, slack: Any) -> None:
    played = problem.best_mixtures(ROWS[problem.dimension])
    for game in (Game.of_problem(problem), Game.of_problem(problem).against(played)):
        found, expected = (solve(game, one) for one in both(problem, guarantee, slack))
        tolerance = 1e-6 * problem.utility_range
        assert found.certificate.gap <= tolerance
        assert found.lower == pytest.approx(expected.lower, abs=tolerance)
        assert found.lower <= expected.upper
        assert expected.lower <= found.upper


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("radius", [0.01, 0.1, 5.0])
@pytest.mark.parametrize("tiny", [1.17549435e-38, 1e-20, 1e-9])
def test_slack_that_nothing_can_use_up_is_left_out(norm: str, radius: float, tiny: float) -> None:
    """Slack is many orders beyond what some tests reach; what is left is solved as if they were not there."""
    problem = prudent.DecisionProblem([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [0.0, 1.0])
    forecasts = np.array([[0.0, tiny, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    slack = prudent.Slack(radius, norm=norm)
    ambiguity = build_ambiguity(problem, guarantees.Polynomial(2), forecasts, np.full(3, 1 / 3), slack)
    system = reduce_moments(ambiguity)
    d = problem.dimension
    idle = ~system.back.any(axis=1)
    reach = ambiguity.tests.sizes
    assert idle.reshape(-1, d).all(axis=1)[(reach > 0) & (reach < radius / 2)].all()
    assert not idle.reshape(-1, d).any(axis=1)[reach > radius].any()
    policy = prudent.RobustPolicy(problem, guarantees.Polynomial(2), slack=slack).fit(forecasts)
    assert policy.certificate_.gap <= 1e-9
    assert not policy.multipliers_.reshape(-1)[idle].any()


def test_columns_whose_slack_nothing_can_use_up_are_left_out() -> None:
    wide = prudent.Slack([0.01] * 9 + [1.5] * 3 + [0.01], "linf")
    columns, plain = both(CLASSES, CLASS_TESTS, wide)
    assert reduce_moments(columns).size == reduce_moments(plain).size == 10
    game = Game.of_problem(CLASSES)
    found, expected = solve(game, columns), solve(game, plain)
    assert found.certificate.gap <= 1e-6 * CLASSES.utility_range
    assert found.lower == pytest.approx(expected.lower, abs=1e-6)
