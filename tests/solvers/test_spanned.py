"""Worst cases that the allowed moments say: they agree with the general solver, and their worlds are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.ambiguity import build_ambiguity
from prudent.solvers import Game, shared_saddle, solve

RNG = np.random.default_rng(4)
LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
PLANE = prudent.DecisionProblem([[1.0, 0.2], [0.1, 1.1], [0.6, 0.6]], [0.0, 0.1, 0.05])
CLASSES = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
ROWS = {1: RNG.beta(2, 3, (300, 1)), 2: RNG.beta(2, 3, (300, 2)), 3: RNG.dirichlet([2, 3, 2], 300)}
WEIGHTS = RNG.random(300) + 0.1
WEIGHTS /= WEIGHTS.sum()
UTILITY = {problem: guarantees.UtilityCalibrated(problem) for problem in (LINE, PLANE, CLASSES)}


def constant(problem: prudent.DecisionProblem) -> np.ndarray:
    return np.tile([0.25, 0.5, 0.25], (300, 1))


def best(problem: prudent.DecisionProblem) -> np.ndarray:
    return problem.best_mixtures(ROWS[problem.dimension])


CASES = [
    (LINE, best, guarantees.SelfOrthogonal(intercept=True) & UTILITY[LINE], 0.01),
    (LINE, best, guarantees.SelfOrthogonal(intercept=True) & UTILITY[LINE], 0.0),
    (LINE, best, guarantees.SelfOrthogonal(intercept=True) & UTILITY[LINE], [0.0, 0.0, 0.01]),  # others stay behind
    (LINE, constant, guarantees.SelfOrthogonal(intercept=True), 0.02),
    (LINE, constant, guarantees.SelfOrthogonal(intercept=True), prudent.Slack(0.01, "linf", [[0.004], [-0.003]])),
    (PLANE, constant, guarantees.SelfOrthogonal(intercept=True), 0.02),
    (PLANE, best, guarantees.Unbiased() & UTILITY[PLANE], 0.01),
    (PLANE, best, guarantees.DecisionCalibrated(PLANE), prudent.Slack(0.003, "linf")),
    (CLASSES, best, guarantees.Unbiased() & UTILITY[CLASSES], 0.01),
]


@pytest.mark.parametrize(("problem", "policy", "guarantee", "slack"), CASES)
def test_the_moments_say_what_the_general_solver_finds(
    problem: prudent.DecisionProblem, policy: Any, guarantee: guarantees.Guarantee, slack: Any
) -> None:
    ambiguity = build_ambiguity(problem, guarantee, ROWS[problem.dimension], WEIGHTS, slack)
    game = Game.of_mixtures(problem, policy(problem))
    found, general = solve(game, ambiguity), solve(game, ambiguity, method="interior point")
    assert found.method == "spanned rewards"
    assert found.gap <= 1e-10 * problem.utility_range
    assert found.lower <= general.upper
    assert general.lower <= found.upper
    moments = ambiguity.moments(found.beliefs)
    np.testing.assert_allclose(moments, ambiguity.slack.project(moments), atol=1e-12)
    low, high = problem.space.bounds
    assert (found.beliefs >= low).all()
    assert (found.beliefs <= high).all()


def test_rewards_that_are_no_combination_of_tests_are_left_to_others() -> None:
    ambiguity = build_ambiguity(LINE, guarantees.SelfOrthogonal(intercept=True), ROWS[1], WEIGHTS, 0.01)
    assert solve(Game.of_mixtures(LINE, best(LINE)), ambiguity).method == "interior point"


def test_an_action_that_earns_the_same_everywhere() -> None:
    problem = prudent.DecisionProblem([0.0, 1.0], [0.25, 0.5])
    ambiguity = build_ambiguity(problem, guarantees.SelfOrthogonal(intercept=True), ROWS[1], WEIGHTS, 0.01)
    solution = solve(Game.of_mixtures(problem, np.tile([1.0, 0.0], (300, 1))), ambiguity)
    assert solution.lower == pytest.approx(-0.25, abs=1e-12)
    assert solution.upper == pytest.approx(-0.25, abs=1e-12)


def test_moments_that_no_such_world_reaches_are_left_to_others() -> None:
    """With slack so wide that the space binds, the worst world lies at its corners."""
    ambiguity = build_ambiguity(LINE, guarantees.Unbiased() & UTILITY[LINE], ROWS[1], WEIGHTS, 5.0)
    solution = solve(Game.of_mixtures(LINE, best(LINE)), ambiguity)
    assert solution.method == "interior point"
    assert solution.gap <= 1e-6 * LINE.utility_range


def test_tests_beside_the_decision_may_have_slack() -> None:
    """Where the utility test is exact, best responding is optimal, however loose the others are."""
    guarantee = guarantees.SelfOrthogonal(intercept=True) & UTILITY[LINE]
    game = Game.of_problem(LINE)
    loose = build_ambiguity(LINE, guarantee, ROWS[1], WEIGHTS, [0.02, 0.02, 0.0])
    found, general = solve(game, loose), solve(game, loose, method="interior point")
    assert found.method == "plug-in regions"
    assert found.gap <= 1e-12
    assert general.lower <= found.upper
    assert found.lower <= general.upper
    for slack in ([0.0, 0.0, 0.02], prudent.Slack(0.0, center=[0.001, 0.0, 0.0])):
        other = build_ambiguity(LINE, guarantee, ROWS[1], WEIGHTS, slack)
        assert solve(game, other).method == "interior point"


@pytest.mark.parametrize("problem", [LINE, PLANE, CLASSES])
def test_an_optimal_policy_shares_the_saddle(problem: prudent.DecisionProblem) -> None:
    forecasts = ROWS[problem.dimension]
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), slack=0.01)
    policy.fit(forecasts, sample_weight=WEIGHTS)
    ambiguity = build_ambiguity(problem, guarantees.SelfOrthogonal(), forecasts, WEIGHTS, 0.01)
    optimum = solve(Game.of_problem(problem), ambiguity)
    game = Game.of_mixtures(problem, policy.predict_proba(forecasts))
    shared, alone = shared_saddle(game, ambiguity, optimum), solve(game, ambiguity)
    assert shared is not None
    assert shared.gap <= 1e-6 * problem.utility_range
    assert shared.lower <= alone.upper
    assert alone.lower <= shared.upper
    believing = Game.of_mixtures(problem, best(problem))
    assert shared_saddle(believing, ambiguity, optimum) is None
