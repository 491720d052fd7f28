"""Sums over rows and clusters against plain arithmetic."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.cases.moment_sums import means_of_moments
from solutions import estimate_moments

SPACE = prudent.Box(0.0, 1.0)


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    v = rng.random((n, 1))
    y = (rng.random((n, 1)) < v).astype(float)
    w = rng.random(n)
    return v, y, w / w.sum()


def test_clusters_in_several_parts() -> None:
    v, y, w = rows(50_000, seed=7)
    clusters = np.random.default_rng(8).integers(0, 9_000, 50_000)
    clusters = np.unique(clusters, return_inverse=True)[1]
    found = means_of_moments(guarantees.SelfOrthogonal(intercept=True), SPACE, v, y, w, clusters)
    z = np.stack([w * (y - v)[:, 0], w * v[:, 0] * (y - v)[:, 0]])
    totals = np.stack([np.bincount(clusters, weights=column) for column in z], axis=1)
    n = totals.shape[0]
    assert found.n_units == n
    np.testing.assert_allclose(found.means, totals.sum(axis=0), rtol=1e-10)
    centred = ((totals - np.bincount(clusters, weights=w)[:, None] * totals.sum(axis=0)) ** 2).sum(axis=0)
    shares = np.bincount(clusters, weights=w)
    spread, values = found.periods, z / w
    rows_alone = np.sqrt(spread.within * (w @ w))
    np.testing.assert_allclose(spread.row_errors, rows_alone, rtol=1e-9)
    of_periods = np.sqrt(centred / (1 - shares @ shares))
    np.testing.assert_allclose(found.deviations, np.maximum(of_periods, rows_alone), rtol=1e-10)
    within = values - (totals / shares[:, None]).T[:, clusters]
    np.testing.assert_allclose(spread.within, (w * within**2).sum(axis=1) * 50_000 / (50_000 - n), rtol=1e-9)
    between = (shares[:, None] * (totals / shares[:, None] - totals.sum(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(spread.between, between * n / (n - 1), rtol=1e-9)
    assert spread.inverse_size == pytest.approx((1 / np.bincount(clusters)).mean())
    assert spread.largest_row == w.max()
    assert found.largest_unit == pytest.approx(np.bincount(clusters, weights=w).max())
    for k in range(2):
        total, weight = found.totals(k)
        np.testing.assert_allclose(total, totals[:, k], atol=1e-16)
        np.testing.assert_allclose(weight, np.bincount(clusters, weights=w), atol=1e-16)


def test_memory_does_not_hold_the_table_of_all_rows() -> None:
    n, moments = 400_000, 30
    rng = np.random.default_rng(11)
    v = rng.random((n, 1))
    y = (rng.random((n, 1)) < v).astype(float)
    tracemalloc.start()
    weights = np.full(n, 1 / n)
    estimate_moments(guarantees.Polynomial(moments - 1), SPACE, v, y, weights, confidence=0.95)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * moments * 8 * 0.8  # less than a table of all tests


@pytest.mark.parametrize("clustered", [False, True])
def test_moments_do_not_depend_on_their_neighbours(clustered: bool) -> None:
    rng = np.random.default_rng(8)
    problem = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
    v = rng.dirichlet([2, 3, 2], 500)
    y, w = np.eye(3)[rng.integers(0, 3, 500)], np.full(500, 1 / 500)
    clusters = np.unique(rng.integers(0, 60, 500), return_inverse=True)[1] if clustered else None
    parts = [guarantees.SelfOrthogonal(), guarantees.UtilityCalibrated(problem), guarantees.Unbiased()]
    whole = means_of_moments(parts[0] & parts[1] & parts[2], problem.space, v, y, w, clusters)
    alone = [means_of_moments(part, problem.space, v, y, w, clusters) for part in parts]
    for name in ("means", "deviations", "low", "high"):
        together = np.concatenate([getattr(part, name) for part in alone])
        np.testing.assert_allclose(getattr(whole, name), together, rtol=1e-10, atol=1e-18)


def test_ranges_are_per_coordinate_and_per_cell() -> None:
    space = prudent.Box([0, 0], [1, 1_000])
    v = np.random.default_rng(0).random((150, 2)) * [1, 1_000]
    found = means_of_moments(guarantees.Classwise(5), space, v, v, np.full(150, 1 / 150))
    np.testing.assert_allclose(found.high, np.repeat([1.0, 1_000.0], 5))
    np.testing.assert_array_equal(found.low, -found.high)


def test_ranges_of_vector_tests_and_classes() -> None:
    """Two probabilities that sum to one cannot both be off by one: at most twice the largest entry of a test."""
    problem = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
    rng = np.random.default_rng(3)
    v, y = rng.dirichlet([2, 3, 2], 200), np.eye(3)[rng.integers(0, 3, 200)]
    found = means_of_moments(guarantees.UtilityCalibrated(problem), problem.space, v, y, np.full(200, 1 / 200))
    reached = (problem.rewards[problem.best_response(v)] * (y - v)).sum(axis=1)
    assert np.abs(reached).max() <= found.high[0] <= 2.0


@pytest.mark.parametrize("space", [prudent.Box(0.0, 1.0), prudent.Box(-2.0, 5.0)], ids=str)
def test_without_a_declared_bound_the_range_is_what_outcomes_could_have_made(space: prudent.Box) -> None:
    """Not what they did make: the outcome that was not seen counts."""
    rng = np.random.default_rng(4)
    low, high = space.bounds
    v = low + (high - low) * rng.random((300, 1))
    tests = guarantees.FromFunctions([lambda v: np.ones(len(v)), lambda v: v[:, 0] ** 3])
    found = means_of_moments(tests, space, v, v, np.full(300, 1 / 300))
    reach = [float((high - low)[0]), float(np.abs(v**3).max() * (high - low)[0])]
    np.testing.assert_allclose(found.high, reach)
    np.testing.assert_allclose(found.low, [-each for each in reach])
