"""Sums over rows and clusters against plain arithmetic."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import prudent
from prudent import guarantees
from prudent.cases.mean_bounds import Means
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


def mean_of(x: np.ndarray, low: float = 0.0, high: float = 1.0) -> Means:
    return Means.of_rows(x, np.full(len(x), 1 / len(x)), low, high)


def test_many_rows_have_students_radius_and_what_was_not_seen() -> None:
    v, y, _ = rows(3_000)
    w = np.full(3_000, 1 / 3_000)
    z = v[:, 0] * (y - v)[:, 0]
    found = estimate_moments(guarantees.SelfOrthogonal(), SPACE, v, y, w, confidence=0.95)
    assert found.methods.tolist() == ["t"]
    unseen = 2.0 * np.log(1 / 0.025) / 3_000  # z lies between -1 and 1
    expected = stats.t(2_999).ppf(0.975) * z.std(ddof=1) / np.sqrt(3_000) + unseen
    np.testing.assert_allclose([found.below[0], found.above[0]], expected, rtol=1e-9)


def wealth(x: np.ndarray, m: float) -> float:
    """Mean of products over stakes a factor of three apart, from ten over the root of n to n, but not to lose all."""
    stakes = [10 / np.sqrt(len(x))]
    while stakes[-1] < len(x):
        stakes.append(3 * stakes[-1])
    return float(np.mean([np.prod(1 + min(stake, 0.99 / m) * (x - m)) for stake in stakes]))


@pytest.mark.parametrize(("n", "chance"), [(40, 0.05), (300, 0.01), (60, 0.9)])
@pytest.mark.parametrize("below", [True, False])
def test_few_rows_have_the_bound_that_bets_do_not_refute(n: int, chance: float, below: bool) -> None:
    rng = np.random.default_rng(n)
    x = np.where(rng.random(n) < chance, rng.random(n), 0.01 * rng.random(n))
    mean, error = mean_of(x), 0.01
    assert not mean.carried[0]
    heights = x if below else 1 - x
    bound = heights.mean() - mean.radii(error, below=below)[0]
    assert 0 < bound < heights.mean()
    assert wealth(heights, bound) == pytest.approx(1 / error, rel=1e-3)


def test_bets_are_fair() -> None:
    """Their mean is one if the mean is right, whatever the distribution: all samples of five rows, weighed."""
    values, chances, n = np.array([0.0, 0.3, 1.0]), np.array([0.7, 0.2, 0.1]), 5
    samples = np.stack(np.meshgrid(*[np.arange(3)] * n), axis=-1).reshape(-1, n)
    weights = chances[samples].prod(axis=1)
    grown = [np.exp(mean_of(values[sample])._log_wealth(0, True)(float(values @ chances))) for sample in samples]
    assert weights @ grown == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("n", [60, 200, 1_000])
@pytest.mark.parametrize("sums_only", [False, True])
def test_what_never_happened_may_happen(n: int, sums_only: bool) -> None:
    """No bound that holds is below that of a coin that showed one side only; this one is not far from it."""
    mean = mean_of(np.zeros(n))
    mean = replace(mean, totals=None) if sums_only else mean
    for error in (0.025, 0.001):
        least = 1 - error ** (1 / n)
        found = mean.radii(error, below=False)[0]
        assert least <= found <= (6 if sums_only else 3) * least
        assert mean.radii(error)[0] == 0.0  # the mean cannot be below the range


@pytest.mark.parametrize("bias", [0.0, 0.04, 0.3])
@pytest.mark.parametrize("n", [60, 600, 6_000])
def test_p_values_and_intervals_agree(n: int, bias: float) -> None:
    v, y, w = rows(n, seed=4)
    y = np.clip(y - bias, 0, 1)
    found = estimate_moments(guarantees.Bins(4).resolve(v, w, SPACE), SPACE, v, y, w, confidence=0.95)
    outside = (found.estimates > found.below) | (-found.estimates > found.above)
    np.testing.assert_array_equal(outside, found.p_values < 0.05)


def covered(draw: object, truth: float, n: int, samples: int, seed: int = 0, **moments: object) -> float:
    """Share of samples in which the interval holds the true moment."""
    rng, hits = np.random.default_rng([n, seed]), 0
    for _ in range(samples):
        v, y = draw(rng, n)
        found = estimate_moments(
            moments.get("guarantee", guarantees.Unbiased()), SPACE, v, y, np.full(n, 1 / n), confidence=0.95
        )
        assert (found.radii > 0).all()
        hits += bool(((-found.above <= found.estimates - truth) & (found.estimates - truth <= found.below)).all())
    return hits / samples


@pytest.mark.parametrize("claims", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [200, 1_000])
def test_rare_claims_beside_small_costs(n: int, claims: float) -> None:
    """A right forecaster, and a claim of which the sample holds two, or none: Student's t holds 18% to 85% here."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        claim = rng.random((n, 1)) < claims / n
        y = np.where(claim, rng.uniform(0.5, 0.99, (n, 1)), rng.uniform(0.0, 0.02, (n, 1)))
        return np.full((n, 1), claims / n * 0.745 + (1 - claims / n) * 0.01), y

    assert covered(draw, 0.0, n, 150) >= 0.95


@pytest.mark.parametrize("n", [60, 200, 1_000])
@pytest.mark.parametrize(
    "guarantee",
    [
        guarantees.LogOdds(),
        guarantees.Temperature(),
        guarantees.FromFunctions([lambda v: np.ones(len(v))]),
        guarantees.Unbiased(),
    ],
    ids=lambda guarantee: type(guarantee).__name__,
)
def test_rare_events_and_tests_without_a_bound(n: int, guarantee: guarantees.Guarantee) -> None:
    """Most samples have no event at all; radii are never zero, and hold."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        return np.full((n, 1), 0.002), (rng.random((n, 1)) < 0.002).astype(float)

    assert covered(draw, 0.0, n, 100, guarantee=guarantee) >= 0.95


def test_the_declared_bound_changes_little() -> None:
    """The same test with and without a bound: radii are the same where its values are constant."""
    v, y = np.full((200, 1), 0.002), np.zeros((200, 1))
    radii = [
        estimate_moments(guarantee, SPACE, v, y, np.full(200, 1 / 200), confidence=0.95).radii
        for guarantee in (guarantees.Unbiased(), guarantees.FromFunctions([lambda v: np.ones(len(v))]))
    ]
    np.testing.assert_allclose(*radii)
