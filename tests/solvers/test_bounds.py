"""Bounds hold whatever multipliers and worlds they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.ambiguity import build_ambiguity
from prudent.solvers import Game, local_game, solve
from prudent.solvers.bounds import certified_lower, certified_upper

RNG = np.random.default_rng(5)
LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
BOX = prudent.DecisionProblem(RNG.normal(size=(4, 2)), RNG.normal(size=4), space=prudent.Box([0.0, -5.0], [10.0, 7.0]))
CLASSES = prudent.DecisionProblem.from_payoffs(RNG.normal(size=(4, 3)))
TESTS = {
    "scalar": lambda problem: guarantees.SelfOrthogonal(intercept=True),
    "beside a vector test": lambda problem: guarantees.Unbiased() & guarantees.UtilityCalibrated(problem),
}


@pytest.mark.parametrize("slack", [0.0, prudent.Slack(0.01), "elsewhere"])
@pytest.mark.parametrize("tests", TESTS)
@pytest.mark.parametrize("problem", [LINE, BOX, CLASSES])
def test_a_world_that_is_not_allowed_proves_nothing(problem: prudent.DecisionProblem, tests: str, slack: Any) -> None:
    rng = np.random.default_rng(6)
    low, high = problem.space.bounds
    simplex = isinstance(problem.space, prudent.Simplex)
    corners = rng.dirichlet(np.ones(problem.dimension), size=200)
    forecasts = corners if simplex else low + (high - low) * rng.random((200, problem.dimension))
    guarantee, weights = TESTS[tests](problem), np.full(200, 1 / 200)
    if slack == "elsewhere":  # around the moments of another world
        exact = build_ambiguity(problem, guarantee, forecasts, weights, 0.0)
        middle = low + 0.5 * (high - low) if not simplex else np.full(problem.dimension, 1 / problem.dimension)
        shape = exact.slack.center.shape
        center = (exact.moments(0.9 * forecasts + 0.1 * middle) / exact.tests.scales).reshape(shape)
        slack = prudent.Slack(0.01, norm="linf", center=center)
    ambiguity = build_ambiguity(problem, guarantee, forecasts, weights, slack)
    game, local = Game.of_problem(problem), local_game(Game.of_problem(problem))
    solution = solve(game, ambiguity)
    assert solution.multipliers is not None
    point = local.beliefs(np.zeros((1, problem.dimension)))[0]  # where nobody earns more than playing safe does
    worlds = [np.tile(point, (200, 1)), np.where(rng.random((200, 1)) < 0.5, forecasts, point)]
    for multipliers in (np.zeros_like(solution.multipliers), solution.multipliers, -solution.multipliers):
        for world in worlds:
            assert certified_upper(game, ambiguity, world, multipliers) >= solution.lower
        assert certified_lower(game, ambiguity, multipliers, local) <= solution.upper
    # A world that is allowed up to rounding does prove its bound.
    nearly = solution.beliefs * (1 + 1e-15)
    assert certified_upper(game, ambiguity, nearly, solution.multipliers) <= solution.upper + 1e-9 * game.scale
