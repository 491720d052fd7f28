"""Passes over many rows give the same with compiled loops as with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import prudent
from prudent import compiled, guarantees
from prudent.ambiguity import Ambiguity, build_ambiguity
from prudent.solvers import Game, bound_loops, cell_loops, local_game, vertex_loops
from prudent.solvers.bounds import best_utilities, certified_lower, certified_upper
from prudent.solvers.cells import Cells
from prudent.solvers.first_cells import bisected
from prudent.solvers.moment_reduction import reduce_moments
from prudent.solvers.refinement import _sums_in_cells, _tilts_of
from prudent.solvers.units import normalize
from prudent.solvers.vertex_table import vertex_table

RNG = np.random.default_rng(11)
BOX = prudent.DecisionProblem(RNG.normal(size=(4, 2)), RNG.normal(size=4), space=prudent.Box([0.0, -5.0], [10.0, 7.0]))
CLASSES = prudent.DecisionProblem.from_payoffs(RNG.normal(size=(4, 3)))
SCALAR = guarantees.SelfOrthogonal(intercept=True)
N = 3_000


def sample(problem: prudent.DecisionProblem, guarantee: Any, own: bool) -> tuple[Game, Ambiguity]:
    rng = np.random.default_rng(3)
    low, high = problem.space.bounds
    unit = rng.dirichlet(np.ones(3), size=N) if problem is CLASSES else rng.random((N, problem.dimension))
    forecasts = unit if problem is CLASSES else low + (high - low) * unit
    weights = rng.random(N) + 0.1
    ambiguity = build_ambiguity(problem, guarantee, forecasts, weights / weights.sum(), prudent.Slack(0.02, "linf"))
    return (
        Game.of_mixtures(problem, rng.dirichlet(np.ones(4), size=N)) if own else Game.of_problem(problem)
    ), ambiguity


def both_ways(monkeypatch: pytest.MonkeyPatch, function: Any) -> tuple[Any, Any]:
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "switch", "1")
    looped = function()
    monkeypatch.setattr(compiled, "switch", "0")
    return looped, function()


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("guarantee", [SCALAR, "columns"])
@pytest.mark.parametrize("problem", [BOX, CLASSES])
def test_bounds(monkeypatch: pytest.MonkeyPatch, problem: prudent.DecisionProblem, guarantee: Any, own: bool) -> None:
    tests = SCALAR & guarantees.UtilityCalibrated(problem) if guarantee == "columns" else guarantee
    game, ambiguity = sample(problem, tests, own)
    local = local_game(game)
    rng = np.random.default_rng(4)
    world = ambiguity.forecasts[::-1]
    value = both_ways(monkeypatch, lambda: best_utilities(game, world))
    np.testing.assert_allclose(*value, rtol=1e-12, atol=1e-12)
    for multipliers in rng.normal(size=(3, ambiguity.tests.n_moments)):
        tilts = both_ways(monkeypatch, lambda L=multipliers: ambiguity.tests.tilts(L))
        np.testing.assert_array_equal(*tilts)  # what is played must not depend on who computes it
        lower = both_ways(monkeypatch, lambda L=multipliers: certified_lower(game, ambiguity, L, local))
        assert lower[0] == pytest.approx(lower[1], abs=1e-11 * (1 + abs(lower[1])))
        upper = both_ways(monkeypatch, lambda L=multipliers: certified_upper(game, ambiguity, ambiguity.forecasts, L))
        assert upper[0] == pytest.approx(upper[1], abs=1e-11 * (1 + abs(upper[1])))


def test_what_is_no_number_is_seen_in_bounds() -> None:
    values, rewards = np.empty(3), np.array([[[1.0, 2.0], [3.0, 0.0]]])
    points = np.array([[0.0, 0.0], [np.nan, 0.0], [0.0, np.nan]])
    bound_loops.best_of_rows(points, rewards, np.zeros((1, 2)), values)
    assert np.isnan(values).tolist() == [False, True, True]
    mixtures, width = np.array([[1.0, 0.0], [np.nan, 0.0], [0.0, 1.0]]), np.ones(2)
    tilts = np.array([[0.0, 0.0], [0.0, 0.0], [np.nan, 0.0]])
    for simplex in (False, True):
        bound_loops.worst_of_mixtures(
            tilts, np.zeros((3, 2)), mixtures, rewards, np.zeros((1, 2)), width, simplex, values
        )
        assert np.isnan(values).tolist() == [False, True, True]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("problem", [BOX, CLASSES])
def test_cells(monkeypatch: pytest.MonkeyPatch, problem: prudent.DecisionProblem, own: bool) -> None:
    game, ambiguity = sample(problem, SCALAR, own)
    normal, rows, _ = normalize(game, ambiguity)
    system, table = reduce_moments(rows), vertex_table(normal, local_game(game))
    assert table is not None
    index, count = bisected(rows.forecasts.T, 64)
    multipliers = np.random.default_rng(5).normal(size=system.size)

    def split() -> tuple[Any, ...]:
        cells = Cells(normal, system, rows.forecasts, index, count)
        chosen = np.flatnonzero(index < 40)
        cells.split(chosen[np.argsort(index[chosen], kind="stable")], np.arange(chosen.size) % 3)
        rewards = np.ascontiguousarray(normal.rewards[:, 0]) if own else np.zeros((0, problem.dimension))
        sums = _sums_in_cells(system, rewards, table, multipliers, cells)
        tilts = _tilts_of(chosen, cells, system, rewards, multipliers)
        np.testing.assert_allclose(
            tilts,
            (system.tilts(multipliers) + rewards.T if own else system.tilts(multipliers))[:, chosen],
            rtol=1e-10,
            atol=1e-13,
        )
        return cells.index, cells.weights, cells.forecasts, cells.system.values, cells.game.rewards, sums

    looped, plain = both_ways(monkeypatch, split)
    np.testing.assert_array_equal(looped[0], plain[0])
    for one, other in zip(looped[1:], plain[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


def test_loops_as_they_are_written() -> None:
    rng = np.random.default_rng(6)
    scaled, corners, heights = rng.normal(size=(20, 2)), rng.random((5, 2)), rng.random(5)
    nearest = np.empty(20, dtype=np.int64)
    vertex_loops.first_of_least(scaled, corners, heights, nearest)
    np.testing.assert_array_equal(nearest, (heights + scaled @ corners.T).argmin(axis=1))
    values, table, own, weights = (
        rng.normal(size=(3, 20)),
        rng.normal(size=(3, 2)),
        rng.normal(size=(1, 2)),
        rng.random(20),
    )
    index, sums = rng.integers(0, 4, size=20), np.zeros(4)
    cell_loops.lose_in_cells(values, table, own, corners, heights, weights, index, sums)
    least = (heights + (table.T @ values + own.T).T @ corners.T).min(axis=1)
    np.testing.assert_allclose(sums, np.bincount(index, weights=weights * least, minlength=4), rtol=1e-12)


@pytest.mark.parametrize("equal", [False, True])
def test_expected_utility(equal: bool) -> None:
    rng = np.random.default_rng(7)
    n = 40_000  # more than fit into one part
    mixtures, points = rng.dirichlet(np.ones(BOX.n_actions), size=n), rng.random((n, 2))
    weights = np.broadcast_to(1 / n, (n,)) if equal else rng.dirichlet(np.ones(n))
    exact = float((weights[:, None] * mixtures * (points @ BOX.rewards.T - BOX.costs)).sum())
    assert BOX.expected_utility(mixtures, points, weights) == pytest.approx(exact, rel=1e-12)
