"""Sums over rows and clusters against plain arithmetic; errors by chance against an enumeration of the outcomes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.cases.moment_sums import ARRAYS, row_terms, scalar_terms, spread_of_moments, unit_terms
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
    found = spread_of_moments(guarantees.SelfOrthogonal(intercept=True), SPACE, v, y, w, clusters)
    z = np.stack([w * (y - v)[:, 0], w * v[:, 0] * (y - v)[:, 0]])
    totals = np.stack([np.bincount(clusters, weights=column) for column in z], axis=1)
    n = totals.shape[0]
    assert found.n_units == n
    np.testing.assert_allclose(found.means, totals.sum(axis=0), rtol=1e-10)
    centred = ((totals - np.bincount(clusters, weights=w)[:, None] * totals.sum(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(found.variances, centred * n / (n - 1), rtol=1e-10)
    by_errors = (totals**2).sum(axis=0) * centred / (totals**4).sum(axis=0)
    assert (found.effective <= by_errors * (1 + 1e-10)).all()


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
    whole = spread_of_moments(parts[0] & parts[1] & parts[2], problem.space, v, y, w, clusters)
    alone = [spread_of_moments(part, problem.space, v, y, w, clusters) for part in parts]
    for name in ("means", "variances", "widths"):
        together = np.concatenate([getattr(part, name) for part in alone])
        np.testing.assert_allclose(getattr(whole, name), together, rtol=1e-10, atol=1e-18)


def test_ranges_are_per_coordinate_and_per_cell() -> None:
    space = prudent.Box([0, 0], [1, 1_000])
    v = np.random.default_rng(0).random((150, 2)) * [1, 1_000]
    found = spread_of_moments(guarantees.Classwise(5), space, v, v, np.full(150, 1 / 150))
    np.testing.assert_allclose(found.widths, np.repeat([2.0, 2_000.0], 5))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 3.0)])
def test_outcomes_at_the_ends_have_these_moments(low: float, high: float) -> None:
    forecast = np.linspace(low, high, 11)
    share = (forecast - low) / (high - low)
    moments = [share * (high - forecast) ** k + (1 - share) * (low - forecast) ** k for k in (2, 4)]
    terms = scalar_terms(None, forecast, forecast, low, high)
    np.testing.assert_allclose(terms["chance_second"], moments[0], atol=1e-14)
    np.testing.assert_allclose(terms["chance_fourth"], moments[1], atol=1e-13)


def test_classes_have_the_moments_of_draws_from_the_forecast() -> None:
    rng = np.random.default_rng(0)
    forecasts, tests = rng.dirichlet(np.ones(3), 20), rng.normal(size=(20, 3))
    draws = tests - (tests * forecasts).sum(axis=1, keepdims=True)  # the error if each class happens
    found = row_terms(1.0, tests.T, tests.T, forecasts.T, [(0.0, 1.0)] * 3, classes=True, alone=True, arithmetic=ARRAYS)
    np.testing.assert_allclose(found["deviation"] ** 2, (forecasts * draws**2).sum(axis=1))
    np.testing.assert_allclose(found["fourth"], (forecasts * draws**4).sum(axis=1))
    np.testing.assert_allclose(found["far"], np.abs(draws).max(axis=1))


def test_without_a_fourth_moment_there_is_a_bound() -> None:
    rng = np.random.default_rng(1)
    forecasts, tests = rng.random((2, 30)), rng.normal(size=(2, 30))
    terms = row_terms(1.0, tests, forecasts, forecasts, [(0.0, 1.0)] * 2, classes=False, alone=False, arithmetic=ARRAYS)
    bound = unit_terms(1.0, **terms)["chance_fourth"]
    ends = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    for i in range(30):
        v, b = forecasts[:, i], tests[:, i]
        shares = np.prod(np.where(ends == 1.0, v, 1 - v), axis=1)
        assert shares @ ((ends - v) @ b) ** 4 <= bound[i] * (1 + 1e-12)


def test_probabilities_that_exceed_one_by_rounding_have_a_deviation() -> None:
    forecast = np.array([1.0 + 1e-13])
    terms = row_terms(
        1.0, [np.ones(1)], [forecast], [forecast], [(0.0, 1.0)], classes=False, alone=True, arithmetic=ARRAYS
    )
    assert np.isfinite(terms["deviation"]).all()
