"""The best of all optimal policies in a world, against a program that shares no code with it."""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from reproduction.optimal_policies import TOLERANCE, most_of_optimal_policies

import prudent
from prudent import guarantees
from prudent.solvers import Game, solve
from solutions import worlds_of

RNG = np.random.default_rng(5)
LINE = prudent.DecisionProblem([2.0, 5.0, 5.0], [0.0, 14.0, 20.0], space=prudent.Box(2.0, 8.0))
CUBE = prudent.DecisionProblem(
    [[1.0, 0.1, 0.1], [0.1, 1.0, 0.1], [0.4, 0.4, 0.4]], [0.1, 0.2, 0.18], space=prudent.Box([0] * 3, [1] * 3)
)
CLASSES = prudent.DecisionProblem.from_payoffs([[1, -2, -2], [-2, 1, -2], [-2, -2, 1], [0.4, 0.4, 0.4]])
CASES = [
    pytest.param(LINE, RNG.uniform(2, 8, (30, 1)), guarantees.SelfOrthogonal(), id="interval"),
    pytest.param(CUBE, RNG.beta(2, 3, (20, 3)), guarantees.SelfOrthogonal(intercept=True), id="cube"),
    pytest.param(CLASSES, RNG.dirichlet([1, 1, 1], 20), guarantees.TopLabel(2), id="classes"),
]


def reference(problem, forecasts, tests, optimum, world) -> float:
    """Dualise the adversary by hand: a policy guarantees the optimum if some multipliers show it."""
    n, d = forecasts.shape
    mixtures, multipliers = cp.Variable((n, problem.n_actions), nonneg=True), cp.Variable(tests.shape[1])
    if isinstance(problem.space, prudent.Simplex):
        corners = np.eye(d)
    else:
        corners = np.array(list(product(*zip(*problem.space.bounds, strict=True))))
    least = cp.Variable(n)
    constraints = [cp.sum(mixtures, axis=1) == 1, cp.sum(least) / n >= optimum - TOLERANCE * problem.utility_range]
    for corner in corners:
        moved = np.einsum("nkd,nd->nk", tests, corner - forecasts)
        constraints.append(least <= mixtures @ (problem.rewards @ corner - problem.costs) + moved @ multipliers)
    utility = cp.sum(cp.multiply(mixtures, problem.linear_utility(world))) / n
    program = cp.Problem(cp.Maximize(utility), constraints)
    program.solve(solver=cp.HIGHS)
    assert program.status == cp.OPTIMAL
    return float(program.value)


@pytest.mark.parametrize(("problem", "forecasts", "guarantee"), CASES)
def test_it_agrees_with_the_reference(problem, forecasts, guarantee) -> None:
    ambiguity = worlds_of(problem, forecasts, guarantee)
    optimum = solve(Game.of_problem(problem), ambiguity).lower
    policy = prudent.RobustPolicy(problem, guarantee).fit(forecasts)
    played = policy.predict_proba(forecasts)
    plug_in = prudent.worst_case(prudent.PlugInPolicy(problem), forecasts, guarantee=guarantee)
    for world in (forecasts, plug_in.beliefs):
        most = most_of_optimal_policies(problem, ambiguity, optimum, world)
        tests = ambiguity.tests.as_vector().values
        expected = reference(problem, forecasts, tests, optimum, world)
        assert most == pytest.approx(expected, abs=1e-6 * problem.utility_range)
        assert most >= (played * problem.linear_utility(world)).sum(axis=1).mean() - 1e-6 * problem.utility_range
        assert most <= problem.linear_utility(world).max(axis=1).mean() + 1e-9


def test_without_a_binding_guarantee_it_is_the_best_response() -> None:
    """One action only: every policy is optimal, and there is nothing to choose."""
    problem = prudent.DecisionProblem([1.0], [0.2])
    forecasts = RNG.random((10, 1))
    ambiguity = worlds_of(problem, forecasts, guarantees.SelfOrthogonal())
    optimum = solve(Game.of_problem(problem), ambiguity).lower
    assert most_of_optimal_policies(problem, ambiguity, optimum, forecasts) == pytest.approx(forecasts.mean() - 0.2)
