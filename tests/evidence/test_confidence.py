"""Confidence certificates against plain arithmetic, and the rows they refuse."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import prudent
from prudent import guarantees
from prudent.cases.mean_bounds import Means
from prudent.errors import InputError
from prudent.evidence.confidence import certified_range, certified_utilities, slack_cost, tilt_range

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
SELF = guarantees.SelfOrthogonal()


def fitted(problem: prudent.DecisionProblem = COIN, **options: object) -> prudent.RobustPolicy:
    rng = np.random.default_rng(0)
    return prudent.RobustPolicy(problem, SELF, **options).fit(_forecasts(rng, problem, 400))


def _forecasts(rng: np.random.Generator, problem: prudent.DecisionProblem, n: int) -> np.ndarray:
    if isinstance(problem.space, prudent.Simplex):
        return rng.dirichlet(np.ones(problem.dimension), n)
    low, high = problem.space.bounds
    return low + (high - low) * rng.random((n, problem.dimension))


PROBLEMS = {
    "coin": COIN,
    "box": prudent.DecisionProblem(
        [[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]], [0.0, 0.1, 0.0], space=prudent.Box([5, 0], [7, 4])
    ),
    "classes": prudent.DecisionProblem.from_payoffs(np.random.default_rng(5).normal(size=(4, 3))),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("kind", [prudent.RobustPolicy, partial(prudent.RobustPolicy, randomize=False)])
def test_certified_utilities_and_ranges(name: str, kind: type[prudent.RobustPolicy]) -> None:
    problem = PROBLEMS[name]
    rng = np.random.default_rng(1)
    forecasts = _forecasts(rng, problem, 300)
    policy = kind(problem, SELF).fit(forecasts)
    found = certified_utilities(policy, forecasts)
    tilts, mixtures = policy.fitted_.tilts(forecasts), policy.predict_proba(forecasts)
    direction = mixtures @ problem.rewards + tilts
    expected = problem.space.support_minimum(direction) - mixtures @ problem.costs - (tilts * forecasts).sum(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    assert found.mean() - slack_cost(policy) == pytest.approx(policy.certificate_.lower, abs=1e-6)
    low, high = certified_range(policy)
    assert low <= found.min() <= found.max() <= high
    beliefs = _forecasts(rng, problem, 300)
    assert np.abs((tilts * (beliefs - forecasts)).sum(axis=1)).max() <= tilt_range(policy)


def test_bounds_are_the_formulas() -> None:
    policy = fitted()
    fresh = np.random.default_rng(2).random(5_000)
    g = certified_utilities(policy, fresh[:, None])
    low, high = certified_range(policy)
    found = prudent.confidence_certificate(policy, fresh)
    unseen = (high - low) * np.log(1 / 0.05) / 5_000
    radius = stats.t(4_999).ppf(0.95) * g.std(ddof=1) / np.sqrt(5_000) + unseen
    assert found.lower == pytest.approx(g.mean() - radius)
    assert found.estimate == pytest.approx(g.mean())
    assert "optimistic" in str(found)
    few = prudent.confidence_certificate(policy, fresh[:40])
    known = Means.of_rows(g[:40], np.full(40, 1 / 40), low, high)
    assert few.lower == pytest.approx(g[:40].mean() - known.radii(0.05)[0])
    assert few.lower < found.lower


def test_slack_is_paid_for() -> None:
    exact, loose = fitted(), fitted(slack=0.05)
    assert slack_cost(exact) == 0.0
    assert slack_cost(loose) == pytest.approx(0.05 * abs(float(loose.multipliers_[0, 0])))
    fresh = np.random.default_rng(3).random(500)
    assert prudent.confidence_certificate(loose, fresh).lower < prudent.confidence_certificate(exact, fresh).lower


def test_fitted_rows_are_refused() -> None:
    rng = np.random.default_rng(4)
    rows = rng.random(3_000)
    policy = prudent.RobustPolicy(COIN, SELF).fit(rows)
    for same in (rows, rows[::-1], rows[:1_500], np.concatenate([rows, rng.random(3_000)])):
        with pytest.raises(InputError, match="not fitted on"):
            prudent.confidence_certificate(policy, same)
    prudent.confidence_certificate(policy, rows, assume_fresh=True)
    prudent.confidence_certificate(policy, rng.random(3_000))


def test_forecasts_that_repeat_are_not_taken_for_the_same_rows() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 10, 1_000) / 10
    policy = prudent.RobustPolicy(COIN, SELF).fit(rows)
    prudent.confidence_certificate(policy, rng.integers(0, 10, 1_000) / 10)
    with pytest.raises(InputError, match="not fitted on"):
        prudent.confidence_certificate(policy, rows)


def test_measured_slack_costs_confidence() -> None:
    rng = np.random.default_rng(7)
    rows = rng.random(900)
    outcomes = (rng.random(900) < rows).astype(float)
    policy = prudent.RobustPolicy(COIN, SELF, slack="audit", confidence=0.99)
    certificate = prudent.confidence_certificate(policy.fit(rows, outcomes), rng.random(500), confidence=0.95)
    assert certificate.confidence == pytest.approx(0.94)
    with pytest.raises(InputError, match="leave nothing together"):
        prudent.confidence_certificate(policy, rng.random(500), confidence=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 0.0}, "confidence must lie strictly"),
        ({"weights": [1.0]}, "weights must have shape"),
    ],
)
def test_bad_input_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prudent.confidence_certificate(fitted(), np.random.default_rng(8).random(100), **options)


def test_other_policies_are_refused() -> None:
    with pytest.raises(InputError, match="policy must be a RobustPolicy"):
        prudent.confidence_certificate(prudent.PlugInPolicy(COIN), [0.1, 0.2])
    full = prudent.RobustPolicy(COIN, guarantees.FullyCalibrated()).fit([0.1, 0.9])
    with pytest.raises(InputError, match="FullyCalibrated"):
        prudent.confidence_certificate(full, [0.2, 0.3])
    with pytest.raises(InputError, match="two independent rows"):
        prudent.confidence_certificate(fitted(), [0.2])


def test_rows_without_weight_are_no_units() -> None:
    rng = np.random.default_rng(0)
    policy = prudent.RobustPolicy(COIN, SELF).fit(rng.random(2_000))
    fresh, weights = rng.random(50), np.zeros(50)
    weights[0] = 1
    with pytest.raises(InputError, match="at least two independent rows"):
        prudent.confidence_certificate(policy, fresh, weights=weights)
    weights[1] = 1
    padded = prudent.confidence_certificate(policy, fresh, weights=weights)
    assert padded.lower == prudent.confidence_certificate(policy, fresh[:2]).lower


@pytest.mark.parametrize("n", [7, 8, 30, 100])
def test_equal_utilities_are_not_judged_by_rounding(n: int) -> None:
    policy = prudent.RobustPolicy(COIN, SELF).fit(np.random.default_rng(0).random(2_000))
    certificate = prudent.confidence_certificate(policy, np.full(n, 0.37))
    assert certified_range(policy)[0] <= certificate.lower < certificate.estimate - 1 / n  # what was not seen


def test_swapped_columns_are_refused() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0]])
    frame = pd.DataFrame(rng.random((200, 2)), columns=["a", "b"])
    policy = prudent.RobustPolicy(problem, SELF).fit(frame)
    fresh = pd.DataFrame(rng.random((200, 2)), columns=["a", "b"])
    prudent.confidence_certificate(policy, fresh)
    prudent.PolicyMonitor(policy).update(fresh)
    with pytest.raises(ValueError, match="feature names"):
        prudent.PolicyMonitor(policy).update(fresh[["b", "a"]])
    with pytest.raises(ValueError, match="feature names"):
        prudent.confidence_certificate(policy, fresh[["b", "a"]])


def test_the_range_of_tilts_is_that_of_one_cell() -> None:
    rng = np.random.default_rng(0)
    policy = prudent.RobustPolicy(COIN, guarantees.Bins(50)).fit(rng.random(3_000))
    assert tilt_range(policy) <= np.abs(policy.multipliers_).max() + 1e-12


def test_few_forecasts_may_repeat() -> None:
    rng = np.random.default_rng(0)
    v = rng.random(100)
    policy = prudent.RobustPolicy(COIN, SELF).fit(np.round(v, 3))
    prudent.confidence_certificate(policy, np.round(rng.random(5_000), 3))
