"""The tilted local game: closed form, vertex table and interior point against an LP, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import prudent
from prudent.solvers import Game
from prudent.solvers.game import InteriorGame, local_game, upper_envelope
from prudent.solvers.vertex_enumeration import enumerate_vertices


def game_value(problem: prudent.DecisionProblem, tilt: np.ndarray) -> float:
    """``phi(s) = min over p of val(p) + s.p`` by a plain LP."""
    m, d = problem.rewards.shape
    low, high = problem.space.bounds
    cost = np.concatenate([tilt, [1.0]])
    upper = np.hstack([problem.rewards, -np.ones((m, 1))])
    equality = {}
    if isinstance(problem.space, prudent.Simplex):
        equality = {"A_eq": np.concatenate([np.ones(d), [0.0]])[None], "b_eq": [1.0]}
    bounds = [*zip(low, high, strict=True), (None, None)]
    return linprog(cost, upper, problem.costs, bounds=bounds, method="highs", **equality).fun


def secured(problem: prudent.DecisionProblem, mixtures: np.ndarray, tilts: np.ndarray) -> np.ndarray:
    """``c.pi + min over p of p.(R^T pi + s)``, by hand."""
    low, high = problem.space.bounds
    direction = mixtures @ problem.rewards + tilts
    if isinstance(problem.space, prudent.Simplex):
        least = direction.min(axis=1)
    else:
        least = np.where(direction > 0, direction * low, direction * high).sum(axis=1)
    return least - mixtures @ problem.costs


def problems(style: str, seed: int) -> prudent.DecisionProblem:
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(2, 5)), int(rng.integers(1, 9))
    rewards = rng.integers(-2, 3, size=(m, d)).astype(float) if style == "tied" else rng.normal(size=(m, d))
    costs = np.zeros(m) if style == "tied" else 0.3 * rng.normal(size=m)
    space = (
        prudent.Simplex(d) if seed % 2 else prudent.Box(rng.normal(size=d).tolist(), (rng.normal(size=d) + 6).tolist())
    )
    return prudent.DecisionProblem(rewards, costs, space=space)


@pytest.mark.parametrize("style", ["generic", "tied"])
@pytest.mark.parametrize("seed", range(25))
def test_mixtures_secure_the_value_of_the_game(style: str, seed: int) -> None:
    problem = problems(style, seed)
    rng = np.random.default_rng(seed + 1000)
    special = np.vstack([-problem.rewards, np.zeros((1, problem.dimension))])
    tilts = np.vstack([2 * rng.normal(size=(20, problem.dimension)), special])
    game = Game.of_problem(problem)
    exact = np.array([game_value(problem, tilt) for tilt in tilts])
    unit = game.scale
    forecasts = problem.space.support_minimizer(rng.normal(size=tilts.shape))
    for local, accuracy in ((local_game(game), 1e-9), (InteriorGame(game), 1e-7)):
        for known in (None, forecasts):
            mixtures = local.mixtures(tilts, known)
            assert mixtures.min() >= 0
            np.testing.assert_allclose(mixtures.sum(axis=1), 1, atol=1e-12)
            np.testing.assert_allclose(secured(problem, mixtures, tilts), exact, atol=accuracy * unit)
        beliefs = local.beliefs(tilts)
        attained = game.utilities(beliefs).max(axis=1) + (tilts * beliefs).sum(axis=1)
        np.testing.assert_allclose(attained, exact, atol=accuracy * unit)


@pytest.mark.parametrize("seed", range(30))
def test_envelope_secures_the_value_of_the_game(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 9))
    rewards = rng.integers(-3, 4, size=m).astype(float) if seed % 2 else rng.normal(size=m)
    costs = rng.integers(-2, 3, size=m).astype(float) if seed % 3 else rng.normal(size=m)
    low = float(rng.choice([-2.0, 0.0, 1000.0]))
    problem = prudent.DecisionProblem(rewards, costs + rewards * low, space=prudent.Box(low, low + 1.5))
    envelope = upper_envelope(Game.of_problem(problem))
    assert (np.diff(envelope.slopes) > 0).all()
    assert (np.diff(envelope.points) > 0).all()
    tilts = np.concatenate([3 * rng.normal(size=20), -rewards])[:, None]
    exact = np.array([game_value(problem, tilt) for tilt in tilts])
    np.testing.assert_allclose(secured(problem, envelope.mixtures(tilts), tilts), exact, atol=1e-9 * max(1.0, abs(low)))


def test_of_equal_actions_the_first_is_played() -> None:
    for space, rewards in ((None, [0.3, 1.0, 1.0, 0.3]), (prudent.Simplex(2), [[0, 1], [1, 0], [1, 0], [0, 1]])):
        problem = prudent.DecisionProblem(rewards, space=space)
        mixtures = prudent.SafetyPolicy(problem).predict_proba(np.full((3, problem.dimension), 1 / problem.dimension))
        assert (mixtures[:, 2:] == 0).all()


def test_ties_go_to_the_highest_nominal_utility() -> None:
    """Two safe actions with equal worst case: the one that the forecast favours is played."""
    problem = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    forecasts = [[0.9, 0.1], [0.1, 0.9]]
    policy = prudent.RobustPolicy(problem, prudent.guarantees.Nothing()).fit(forecasts)
    np.testing.assert_allclose(policy.predict_proba(forecasts), [[1, 0, 0], [0, 1, 0]], atol=1e-12)
    # Rows with equal tests may break ties in different ways, which the bound pays for.
    assert policy.certificate_.lower == pytest.approx(0.0, abs=1e-11)


def test_too_many_vertices_fall_back_to_interior_point() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem(rng.normal(size=(4, 16)), rng.normal(size=4))
    game = Game.of_problem(problem)
    assert enumerate_vertices(game, 20_000) is None
    assert isinstance(local_game(game), InteriorGame)
    forecasts = rng.random((30, 16))
    policy = prudent.RobustPolicy(problem, prudent.guarantees.Unbiased()).fit(forecasts)
    assert policy.certificate_.gap <= 1e-6 * problem.utility_range


def test_vertex_counts_stay_small() -> None:
    rng = np.random.default_rng(0)
    for d, m, most in ((5, 5, 200), (5, 50, 3000), (8, 10, 9000)):
        problem = prudent.DecisionProblem(rng.normal(size=(m, d)), 0.3 * rng.normal(size=m))
        assert enumerate_vertices(Game.of_problem(problem), 20_000).n_vertices <= most


@pytest.mark.parametrize("actions", [1, 2, 3, 7])
def test_many_rows_of_one_coordinate_play_what_each_plays_alone(actions: int) -> None:
    """Columns of many rows and the lookup of few agree to the last bit, also where a tilt meets a slope."""
    rng = np.random.default_rng(actions)
    slopes = np.sort(rng.normal(size=actions))
    points = np.linspace(0.1, 0.9, max(actions - 1, 0))
    costs = np.concatenate([[0.0], np.cumsum(np.diff(slopes) * points)])  # every action is best somewhere
    envelope = upper_envelope(Game.of_problem(prudent.DecisionProblem(slopes, costs)))
    assert envelope.slopes.size == actions
    tilts = np.concatenate([rng.normal(size=2_000), -slopes, -np.nextafter(slopes, 9.0), -np.nextafter(slopes, -9.0)])
    together = envelope.mixtures(tilts[:, None])
    alone = np.concatenate([envelope.mixtures(tilts[i : i + 100, None]) for i in range(0, tilts.size, 100)])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(together.sum(axis=1), 1.0, rtol=0, atol=1e-15)
