"""Estimates with simultaneous intervals against plain arithmetic."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import prudent
from prudent import guarantees
from solutions import estimate_moments

SPACE = prudent.Box(0.0, 1.0)


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    v = rng.random((n, 1))
    y = (rng.random((n, 1)) < v).astype(float)
    w = rng.random(n)
    return v, y, w / w.sum()


@pytest.mark.parametrize("n", [7, 500, 40_000])  # the last one in several parts
def test_estimates_and_variances_are_the_formulas(n: int) -> None:
    v, y, w = rows(n)
    guarantee = guarantees.Polynomial(3)
    found = estimate_moments(guarantee, SPACE, v, y, w, confidence=0.9)
    z = np.cos(np.arange(4) * np.arccos(2 * v - 1)) * (y - v)
    mean = (w[:, None] * z).sum(axis=0)
    variance = n / (n - 1) * (w[:, None] ** 2 * (z - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(found.estimates, mean, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.means.deviations, np.sqrt(variance), rtol=1e-9)


def test_several_coordinates_and_vector_tests() -> None:
    rng = np.random.default_rng(1)
    v = rng.dirichlet(np.ones(3), 400)
    y = np.eye(3)[rng.integers(0, 3, 400)]
    w = np.full(400, 1 / 400)
    problem = prudent.DecisionProblem.from_payoffs(rng.normal(size=(4, 3)))
    guarantee = guarantees.SelfOrthogonal() & guarantees.UtilityCalibrated([problem])
    found = estimate_moments(guarantee, problem.space, v, y, w, confidence=0.95)
    best = problem.best_response(v)
    expected = [*(v.T @ (y - v) / 400).reshape(-1), (problem.rewards[best] * (y - v)).sum(axis=1).mean()]
    np.testing.assert_allclose(found.estimates, expected, atol=1e-15)
    assert found.tests.names[-1] == "utility"


def test_clusters_are_the_units() -> None:
    v, y, w = rows(1_000, seed=5)
    clusters = np.random.default_rng(6).integers(0, 40, 1_000)
    found = estimate_moments(guarantees.Unbiased(), SPACE, v, y, w, confidence=0.95, clusters=clusters)
    residuals = (y - v)[:, 0]
    mean = w @ residuals
    totals = np.array([(w * (residuals - mean))[clusters == g].sum() for g in range(40)])
    shares = np.bincount(clusters, weights=w)
    means = np.bincount(clusters, weights=w * residuals) / shares
    rows_alone = (w @ (residuals - means[clusters]) ** 2) * 1_000 / 960 * (w @ w)
    of_periods = (totals**2).sum() / (1 - shares @ shares)
    assert found.means.deviations[0] ** 2 == pytest.approx(max(of_periods, rows_alone), rel=1e-9)
    assert found.means.n_units == 40
    # Every row twice, in one cluster with its copy, is as much evidence as every row once.
    once = estimate_moments(guarantees.Unbiased(), SPACE, v, y, w, confidence=0.95)
    twice = estimate_moments(
        guarantees.Unbiased(),
        SPACE,
        np.tile(v, (2, 1)),
        np.tile(y, (2, 1)),
        np.tile(w, 2) / 2,
        confidence=0.95,
        clusters=np.tile(np.arange(1_000), 2),
    )
    np.testing.assert_allclose(twice.radii, once.radii, rtol=0.02)


def test_heavy_weights_are_few_rows() -> None:
    v, y, _ = rows(1_000, seed=9)
    even = estimate_moments(guarantees.Unbiased(), SPACE, v, y, np.full(1_000, 1e-3), confidence=0.95)
    heavy = np.full(1_000, 1e-6)
    heavy[:20] = 1.0
    heavy /= heavy.sum()
    skewed = estimate_moments(guarantees.Unbiased(), SPACE, v, y, heavy, confidence=0.95)
    assert (even.methods[0], skewed.methods[0]) == ("t", "betting")
    assert skewed.radii[0] > 4 * even.radii[0]


def test_a_rare_class_that_did_not_occur_is_no_proof() -> None:
    v = np.full((300, 1), 0.001)
    y = np.zeros((300, 1))
    found = estimate_moments(guarantees.Unbiased(), SPACE, v, y, np.full(300, 1 / 300), confidence=0.95)
    assert found.methods[0] == "betting"
    assert found.p_values[0] > 0.05
    common = estimate_moments(
        guarantees.Unbiased(), SPACE, np.full((300, 1), 0.3), y, np.full(300, 1 / 300), confidence=0.95
    )
    assert common.p_values[0] < 0.05


def test_no_interval_reaches_beyond_what_a_moment_can_be() -> None:
    v, y, w = rows(3)
    found = estimate_moments(guarantees.Unbiased(), SPACE, v, y, w, confidence=0.95)
    upper, lower = found.estimates + found.above, found.estimates - found.below
    assert -1.0 - 1e-12 <= lower[0] < upper[0] <= 1.0 + 1e-12
    assert found.radii[0] > 0.5  # three rows say next to nothing


def test_one_unit_says_nothing_about_spread() -> None:
    v, y, w = rows(10)
    with pytest.raises(prudent.errors.InputError, match="two independent periods"):
        estimate_moments(guarantees.Unbiased(), SPACE, v, y, w, confidence=0.9, clusters=np.zeros(10, dtype=np.int64))
    with pytest.raises(prudent.errors.InputError, match="two independent rows"):
        estimate_moments(guarantees.Unbiased(), SPACE, v[:1], y[:1], np.ones(1), confidence=0.9)


def test_errors_name_the_callers_rows() -> None:
    v = np.full((40_000, 1), 0.5)
    v[30_000] = 0.0
    with pytest.raises(prudent.errors.InputError, match="row 30000"):
        estimate_moments(guarantees.LogOdds(), SPACE, v, v, np.full(40_000, 1 / 40_000), confidence=0.95)


def test_measured_moments_go_into_files_without_their_rows() -> None:
    v, y, w = rows(5_000, seed=2)
    found = estimate_moments(guarantees.Bins(10).resolve(v, w, SPACE), SPACE, v, y, w, confidence=0.95)
    written = pickle.dumps(found)
    assert len(written) < v.nbytes
    np.testing.assert_array_equal(pickle.loads(written).radii, found.radii)
