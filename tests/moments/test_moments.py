"""Sums, radii and p-values against plain arithmetic."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

import prudent
from prudent import guarantees
from prudent.moments import METHODS, estimate_moments, join_sums, moment_sums

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
    found = estimate_moments(guarantee, SPACE, v, y, w, confidence=0.9, method="normal")
    z = np.stack([v[:, 0] ** j * (y - v)[:, 0] for j in range(4)], axis=1)
    mean = (w[:, None] * z).sum(axis=0)
    variance = n / (n - 1) * (w[:, None] ** 2 * (z - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(found.estimates, mean, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.spread.variances, variance, rtol=1e-9)


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


def test_radii_are_those_of_the_literature() -> None:
    v, y, _ = rows(300)
    w = np.full(300, 1 / 300)
    z = v[:, 0] * (y - v)[:, 0]
    sd, width = z.std(ddof=1), 2.0
    args = (guarantees.SelfOrthogonal(), SPACE, v, y, w)
    hoeffding = estimate_moments(*args, confidence=0.95, method="hoeffding")
    assert hoeffding.radii[0] == pytest.approx(width * np.sqrt(np.log(2 / 0.05) / 600))
    bernstein = estimate_moments(*args, confidence=0.95, method="bernstein")
    level = np.log(4 / 0.05)
    assert bernstein.radii[0] == pytest.approx(
        np.sqrt(2 * sd**2 * level / 300) + 7 * width * level / (3 * 299), rel=1e-9
    )
    normal = estimate_moments(*args, confidence=0.95, method="normal")
    quantile = stats.t(normal.spread.effective[0] - 1).ppf(0.975)
    assert normal.radii[0] == pytest.approx(quantile * sd / np.sqrt(300), rel=1e-9)


def test_bootstrap_draws_have_the_law_of_multipliers_on_rows() -> None:
    v, y, w = rows(400, seed=2)
    guarantee = guarantees.Polynomial(4)
    found = estimate_moments(guarantee, SPACE, v, y, w, confidence=0.95, method="bootstrap")
    z = np.stack([v[:, 0] ** j * (y - v)[:, 0] for j in range(5)], axis=1)
    deviations = w[:, None] * (z - (w[:, None] * z).sum(axis=0))
    scale = np.sqrt(400 / 399 * (deviations**2).sum(axis=0))
    rng = np.random.default_rng(3)
    largest = np.abs(rng.standard_normal((20_000, 400)) @ deviations * np.sqrt(400 / 399) / scale).max(axis=1)
    assert found.radii[0] / scale[0] == pytest.approx(np.quantile(largest, 0.95), rel=0.03)
    # Correlated moments: sharper than Bonferroni at the same variance.
    assert found.radii[0] / scale[0] < stats.norm.ppf(1 - 0.05 / 10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bias", [0.0, 0.04, 0.3])
def test_p_values_and_intervals_agree(method: str, bias: float) -> None:
    v, y, w = rows(600, seed=4)
    y = np.clip(y - bias, 0, 1)
    found = estimate_moments(
        guarantees.Binned.uniform(4).resolve(v, w, SPACE), SPACE, v, y, w, confidence=0.95, method=method
    )
    outside = np.abs(found.estimates) > found.radii
    np.testing.assert_array_equal(outside, found.p_values < 0.05)


def test_clusters_are_the_units() -> None:
    v, y, w = rows(1_000, seed=5)
    clusters = np.random.default_rng(6).integers(0, 40, 1_000)
    found = estimate_moments(guarantees.Unbiased(), SPACE, v, y, w, confidence=0.95, method="normal", clusters=clusters)
    residuals = (y - v)[:, 0]
    mean = w @ residuals
    totals = np.array([(w * (residuals - mean))[clusters == g].sum() for g in range(40)])
    assert found.spread.variances[0] == pytest.approx(40 / 39 * (totals**2).sum(), rel=1e-9)
    assert found.spread.n_units == 40
    # Every row twice, in one cluster with its copy, is as much evidence as every row once.
    once = estimate_moments(guarantees.Unbiased(), SPACE, v, y, w, confidence=0.95, method="normal")
    twice = estimate_moments(
        guarantees.Unbiased(),
        SPACE,
        np.tile(v, (2, 1)),
        np.tile(y, (2, 1)),
        np.tile(w, 2) / 2,
        confidence=0.95,
        method="normal",
        clusters=np.tile(np.arange(1_000), 2),
    )
    np.testing.assert_allclose(twice.radii, once.radii, rtol=0.02)


def test_clusters_in_several_parts() -> None:
    v, y, w = rows(50_000, seed=7)
    clusters = np.random.default_rng(8).integers(0, 9_000, 50_000)
    clusters = np.unique(clusters, return_inverse=True)[1]
    found = moment_sums(guarantees.Polynomial(1), SPACE, v, y, w, clusters, products=True)
    z = np.stack([w * (y - v)[:, 0], w * v[:, 0] * (y - v)[:, 0]])
    totals = np.stack([np.bincount(clusters, weights=column) for column in z], axis=1)
    assert found.n_units == totals.shape[0]
    np.testing.assert_allclose(found.products, totals.T @ totals, rtol=1e-10)
    np.testing.assert_allclose(found.fourth, (totals**4).sum(axis=0), rtol=1e-10)


def test_heavy_weights_are_few_rows() -> None:
    v, y, _ = rows(1_000, seed=9)
    even = estimate_moments(guarantees.Unbiased(), SPACE, v, y, np.full(1_000, 1e-3), confidence=0.95)
    heavy = np.full(1_000, 1e-6)
    heavy[:20] = 1.0
    heavy /= heavy.sum()
    skewed = estimate_moments(guarantees.Unbiased(), SPACE, v, y, heavy, confidence=0.95)
    assert skewed.spread.effective[0] < 25 < 300 < even.spread.effective[0]
    assert skewed.radii[0] > 4 * even.radii[0]


def test_a_rare_class_that_did_not_occur_is_no_proof() -> None:
    v = np.full((300, 1), 0.001)
    y = np.zeros((300, 1))
    found = estimate_moments(guarantees.Unbiased(), SPACE, v, y, np.full(300, 1 / 300), confidence=0.95)
    assert found.methods[0] == "bernstein"
    assert found.p_values[0] > 0.05
    common = estimate_moments(
        guarantees.Unbiased(), SPACE, np.full((300, 1), 0.3), y, np.full(300, 1 / 300), confidence=0.95
    )
    assert common.p_values[0] < 0.05


def test_no_interval_reaches_beyond_what_a_moment_can_be() -> None:
    v, y, w = rows(3)
    found = estimate_moments(guarantees.Unbiased(), SPACE, v, y, w, confidence=0.95)
    assert found.estimates[0] + found.radii[0] >= 1.0 - 1e-12
    assert found.detectable[0] <= 1.0


def test_tests_without_bounds_have_no_finite_sample_radius() -> None:
    v, y, w = rows(30)
    v = v * 0.9 + 0.05
    with pytest.raises(prudent.InputError, match="no declared bound"):
        estimate_moments(guarantees.LogOdds(), SPACE, v, y, w, confidence=0.95, method="bernstein")
    found = estimate_moments(guarantees.LogOdds(), SPACE, v, y, w, confidence=0.95)
    assert found.methods[1] == "normal"


def test_one_unit_says_nothing_about_spread() -> None:
    v, y, w = rows(10)
    with pytest.raises(prudent.InputError, match="two independent groups"):
        estimate_moments(guarantees.Unbiased(), SPACE, v, y, w, confidence=0.9, clusters=np.zeros(10, dtype=np.int64))
    with pytest.raises(prudent.InputError, match="two independent rows"):
        estimate_moments(guarantees.Unbiased(), SPACE, v[:1], y[:1], np.ones(1), confidence=0.9)


def test_memory_does_not_hold_the_table_of_all_rows() -> None:
    n, moments = 400_000, 30
    rng = np.random.default_rng(11)
    v = rng.random((n, 1))
    y = (rng.random((n, 1)) < v).astype(float)
    tracemalloc.start()
    weights = np.full(n, 1 / n)
    estimate_moments(guarantees.Polynomial(moments - 1), SPACE, v, y, weights, confidence=0.95, method="bootstrap")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * moments * 8 * 0.8  # less than a table of all tests


@pytest.mark.parametrize("clustered", [False, True])
def test_sums_of_parts_are_those_of_the_whole(clustered: bool) -> None:
    """Moments of several guarantees are measured part by part; only products of pairs need them together."""
    rng = np.random.default_rng(8)
    problem = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
    v = rng.dirichlet([2, 3, 2], 500)
    y, w = np.eye(3)[rng.integers(0, 3, 500)], np.full(500, 1 / 500)
    clusters = rng.integers(0, 60, 500) if clustered else None
    parts = [guarantees.SelfOrthogonal(), guarantees.UtilityCalibrated(problem), guarantees.Unbiased()]
    whole = moment_sums(parts[0] & parts[1] & parts[2], problem.space, v, y, w, clusters)
    joined = join_sums([moment_sums(part, problem.space, v, y, w, clusters, written_out=True) for part in parts])
    assert joined.tests.names == whole.tests.names
    assert (joined.n_rows, joined.n_units, joined.largest_unit) == (whole.n_rows, whole.n_units, whole.largest_unit)
    for name in ("first", "second", "fourth", "cross", "reach", "squared_reach", "chance_second", "chance_fourth"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-10, atol=1e-18)
    for name in ("chance_known", "widths"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
