"""Newton's method on a smoothed dual: derivatives, the answers of the general solver, and knowing when to leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.cases.memory_rows import Ambiguity
from prudent.solvers import Game, SolverOptions, local_game, solve
from prudent.solvers.game import normalize
from prudent.solvers.moment_system import reduce_moments
from prudent.solvers.smoothed_dual import NearVertices, SmoothedDual, sample_sizes, smoothed, smoothed_penalty
from prudent.solvers.vertices import vertex_table
from solutions import build_ambiguity

RNG = np.random.default_rng(0)
BOX = prudent.DecisionProblem(RNG.normal(size=(8, 5)), 0.3 * RNG.normal(size=8))
CLASSES = prudent.DecisionProblem.from_payoffs(np.random.default_rng(2).normal(size=(14, 7)))
LINEAR = guarantees.SelfOrthogonal(intercept=True)
SMOOTHED = SolverOptions("smoothed dual", many_rows=10, smooth_rows_per_moment=1, many_vertices=10)


def sample(problem: prudent.DecisionProblem, n: int, guarantee: Any = LINEAR, slack: Any = 0.0) -> Ambiguity:
    rng = np.random.default_rng(n)
    d = problem.dimension
    simplex = isinstance(problem.space, prudent.Simplex)
    forecasts = rng.dirichlet(np.ones(d), size=n) if simplex else rng.random((n, d))
    weights = rng.random(n) + 0.5
    return build_ambiguity(problem, guarantee, forecasts, weights / weights.sum(), slack)


@pytest.mark.parametrize("problem", [BOX, CLASSES])
def test_the_soft_minimum_and_its_derivatives(problem: prudent.DecisionProblem) -> None:
    """Against the formula over all vertices."""
    normal, _, _ = normalize(Game.of_problem(problem), sample(problem, 30))
    table = vertex_table(normal, local_game(normal))
    assert table is not None
    d = problem.dimension
    tilts, mu = 0.1 * np.random.default_rng(2).normal(size=(d, 30)), 3e-3
    value, excess, beliefs, covariance = NearVertices(table, tilts, mu).smooth(tilts, mu)
    scores = table.scores(tilts)
    shares = np.exp(-(scores - scores.min(axis=1, keepdims=True)) / mu)
    total = shares.sum(axis=1)
    shares /= total[:, None]
    np.testing.assert_allclose(value, scores.min(axis=1) - mu * np.log(total), atol=1e-11)
    assert (value <= scores.min(axis=1)).all()
    assert (value >= scores.min(axis=1) - mu * np.log(table.heights.size)).all()
    np.testing.assert_allclose(excess, (shares * scores).sum(axis=1) - scores.min(axis=1), atol=1e-9)
    np.testing.assert_allclose(beliefs, shares @ table.corners, atol=1e-7)
    centered = table.corners[None] - beliefs[:, None]
    spread = np.einsum("nv,nva,nvb->nab", shares, centered, centered)
    np.testing.assert_allclose(covariance, spread[:, *np.triu_indices(d)], atol=1e-7)
    assert excess.min() >= 0


@pytest.mark.parametrize("slack", [0.0, prudent.Slack(0.01, norm="l2"), prudent.Slack(0.01, norm="linf")])
def test_gradient_and_curvature_are_derivatives(slack: Any) -> None:
    normal, rows, _ = normalize(Game.of_problem(CLASSES), sample(CLASSES, 200, slack=slack))
    table, system = vertex_table(normal, local_game(normal)), reduce_moments(rows)
    assert table is not None
    dual = SmoothedDual(system, rows.forecasts, table)
    rng = np.random.default_rng(3)
    multipliers, mu, step = 0.1 * rng.normal(size=system.size), 1e-2, 1e-5
    point = dual.at(multipliers, mu)
    direction = rng.normal(size=system.size)
    if system.gauge and system.exact.all():
        # Exact tests on the simplex: constants change nothing, and the curvature is filled there.
        direction = (direction.reshape(-1, 7) - direction.reshape(-1, 7).mean(axis=1, keepdims=True)).reshape(-1)
    ahead, behind = dual.at(multipliers + step * direction, mu), dual.at(multipliers - step * direction, mu)
    assert point.gradient @ direction == pytest.approx((ahead.value - behind.value) / (2 * step), rel=1e-6)
    turned = (behind.gradient - ahead.gradient) / (2 * step)
    np.testing.assert_allclose(point.curvature @ direction, turned, rtol=1e-4, atol=1e-4 * np.abs(turned).max())


def test_smoothed_slack_stays_inside_and_loses_little() -> None:
    for slack in (prudent.Slack(0.01, norm="l2"), prudent.Slack(0.01, norm="linf", center=0.001 * np.ones((6, 5)))):
        _, rows, _ = normalize(Game.of_problem(BOX), sample(BOX, 50, slack=slack))
        system = reduce_moments(rows)
        multipliers = np.random.default_rng(4).normal(size=system.size) * (np.arange(system.size) % 3 > 0)
        penalty, exact = smoothed_penalty(system, multipliers, 1e-4), float(system.center @ multipliers)
        exact += float(system.radius @ system.lengths(multipliers))
        assert 0 <= penalty.value - exact <= 1e-4
        assert 0 <= penalty.loss <= 1e-4
        inside = penalty.gradient - system.center
        assert (system.lengths(inside) < system.radius).all()


@pytest.mark.parametrize(
    ("problem", "guarantee", "slack"),
    [
        (BOX, LINEAR, 0.0),
        pytest.param(BOX, LINEAR, prudent.Slack(0.002, norm="l2"), marks=pytest.mark.slow),
        pytest.param(BOX, LINEAR, prudent.Slack(0.002, norm="linf"), marks=pytest.mark.slow),
        pytest.param(CLASSES, LINEAR, 0.0, marks=pytest.mark.slow),
        (CLASSES, LINEAR, prudent.Slack(0.002, norm="l2")),
    ],
)
def test_it_agrees_with_the_general_solver(problem: prudent.DecisionProblem, guarantee: Any, slack: Any) -> None:
    ambiguity = sample(problem, 12_000, guarantee, slack)
    game = Game.of_problem(problem)
    soft = solve(game, ambiguity, options=SMOOTHED)
    rows = solve(game, ambiguity, options=SolverOptions("interior point"))
    assert soft.method == "smoothed dual"
    assert "nearly smooth" in soft.certificate.message
    assert soft.certificate.gap <= 1e-6 * problem.utility_range
    assert soft.lower <= rows.upper
    assert rows.lower <= soft.upper
    low, high = problem.space.bounds
    assert (soft.beliefs >= low).all()
    assert (soft.beliefs <= high).all()
    moments = ambiguity.tests.moments(soft.beliefs - ambiguity.forecasts, ambiguity.weights)
    np.testing.assert_allclose(moments, ambiguity.slack.project(moments), atol=1e-11)


def test_an_edge_is_left_to_other_solvers() -> None:
    """One action is always best, so at the optimum every row ties: no smoothing helps there."""
    problem = prudent.DecisionProblem([[1.0, 2.0, 1.5], [0.5, 1.0, 0.0]], [0.0, 0.6])
    ambiguity = sample(problem, 6_000)
    normal, rows, _ = normalize(Game.of_problem(problem), ambiguity)
    table = vertex_table(normal, local_game(normal))
    assert table is not None
    assert smoothed(normal, reduce_moments(rows), rows.forecasts, table) is None
    assert solve(Game.of_problem(problem), ambiguity).certificate.gap <= 1e-6 * problem.utility_range


def test_rows_that_outweigh_the_others_are_no_smooth_dual() -> None:
    rng = np.random.default_rng(5)
    forecasts, weights = rng.random((6_000, 5)), np.ones(6_000)
    weights[:20] = 1_000.0
    ambiguity = build_ambiguity(BOX, LINEAR, forecasts, weights / weights.sum(), 0.0)
    with pytest.raises(ValueError, match="does not apply here"):
        solve(Game.of_problem(BOX), ambiguity, options=replace(SMOOTHED, smooth_rows_per_moment=5))


def test_samples_lead_to_all_rows() -> None:
    for n, moments in ((1_000, 50), (36_000, 120), (1_000_000, 110)):
        sizes = sample_sizes(n, moments)
        assert sizes[-1] == n
        assert sizes[0] <= n // 2  # as many rows again say what the first ones missed
        assert sizes == sorted(sizes)


@pytest.mark.slow
def test_thousands_of_vertices_are_taken_by_it() -> None:
    problem = prudent.DecisionProblem.from_payoffs(np.random.default_rng(1).normal(size=(16, 8)))
    ambiguity, game = sample(problem, 30_000), Game.of_problem(problem)
    assert local_game(game).heights.size > 1_000
    soft = solve(game, ambiguity)
    assert soft.method == "smoothed dual"
    rows = solve(game, ambiguity, options=SolverOptions("interior point"))
    assert soft.certificate.gap <= 1e-6 * problem.utility_range
    assert soft.lower <= rows.upper
    assert rows.lower <= soft.upper
