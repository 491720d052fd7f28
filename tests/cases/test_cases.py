"""Cases: checked once, taken by everything that takes forecasts, with the cache of what was computed on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import prudent
from prudent.errors import InputError

PROBLEM = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
RNG = np.random.default_rng(0)
FORECASTS = RNG.random(400)
OUTCOMES = (RNG.random(400) < FORECASTS).astype(float)


def test_everything_that_takes_forecasts_takes_cases() -> None:
    cases = prudent.Cases(FORECASTS, OUTCOMES)
    policy = prudent.RobustPolicy(PROBLEM, "self-orthogonal", slack="audit").fit(cases)
    other = prudent.RobustPolicy(PROBLEM, "self-orthogonal", slack="audit").fit(FORECASTS, OUTCOMES)
    assert policy.certificate_ == other.certificate_
    np.testing.assert_array_equal(policy.predict_proba(cases), policy.predict_proba(FORECASTS))
    found = prudent.audit(PROBLEM, cases, guarantee="unbiased")
    assert str(found) == str(prudent.audit(PROBLEM, FORECASTS, OUTCOMES, guarantee="unbiased"))
    assert str(prudent.guarantee_ladder(PROBLEM, cases)) == str(prudent.guarantee_ladder(PROBLEM, FORECASTS, OUTCOMES))
    worst = prudent.worst_case(policy, cases, guarantee="unbiased", slack="audit")
    assert worst.value == prudent.worst_case(policy, FORECASTS, OUTCOMES, guarantee="unbiased", slack="audit").value
    np.testing.assert_array_equal(
        prudent.recalibration.GuaranteeCalibrator("unbiased").fit(cases).transform(cases),
        prudent.recalibration.GuaranteeCalibrator("unbiased").fit(FORECASTS, OUTCOMES).transform(FORECASTS),
    )


def test_ids_are_keys_of_draws() -> None:
    policy = prudent.SafetyPolicy(prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0]))
    cases = prudent.Cases(FORECASTS, ids=range(400))
    np.testing.assert_array_equal(policy.predict(cases), policy.predict(FORECASTS, keys=range(400)))


def test_rows_are_placed_once_for_a_space() -> None:
    cases = prudent.Cases(FORECASTS)
    assert cases.on(PROBLEM.space) is cases.on(prudent.Box(0.0, 1.0))
    assert cases.on(prudent.Box(0.0, 2.0)) is not cases.on(PROBLEM.space)


def test_periods_widen_intervals_where_rows_of_a_day_agree() -> None:
    days = np.repeat(np.arange(40), 10)
    same = np.repeat(OUTCOMES[::10], 10)
    forecasts = np.repeat(FORECASTS[::10], 10)
    alone = prudent.audit(None, prudent.Cases(forecasts, same), guarantee="unbiased").measured.radii
    together = prudent.audit(None, prudent.Cases(forecasts, same, periods=days), guarantee="unbiased").measured.radii
    assert together[0] > 2 * alone[0]


def test_context_comes_from_frames_and_mappings() -> None:
    frame = pd.DataFrame({"region": ["a", "b"], "age": [3, 4]})
    for context in (frame, {"region": ["a", "b"], "age": [3, 4]}):
        cases = prudent.Cases([0.1, 0.2], context=context)
        assert list(cases.context) == ["region", "age"]
        assert repr(cases) == "Cases(2 rows with region, age)"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"periods": [1]}, "periods must have one row per forecast, 2; got 1"),
        ({"ids": [1, 2, 3]}, "ids must have one row per forecast, 2; got 3"),
        ({"context": {"region": ["a"]}}, "region must have one row per forecast, 2; got 1"),
        ({"outcomes": [1.0]}, "outcomes must have one row per forecast, 2; got 1"),
        ({"outcomes": [1.0, np.nan]}, "outcomes are missing in row 1"),
        ({"weights": [0.0, 0.0]}, "must not be zero for all rows"),
    ],
)
def test_columns_of_other_lengths_are_refused(columns: dict[str, object], message: str) -> None:
    cases = prudent.Cases([0.1, 0.2], **columns)
    with pytest.raises(InputError, match=message):
        cases.on(PROBLEM.space)


def test_what_is_said_twice_or_is_no_context_is_refused() -> None:
    cases = prudent.Cases([0.1, 0.2], [0.0, 1.0])
    with pytest.raises(InputError, match="outcomes of cases: say it in prudent"):
        prudent.audit(None, cases, [0.0, 1.0], guarantee="unbiased")
    with pytest.raises(InputError, match="context must be a frame or a mapping"):
        prudent.Cases([0.1, 0.2], context=["a", "b"])
    with pytest.raises(InputError, match="missing must be"):
        prudent.Cases([0.1, 0.2], missing="ignore")


def test_monitors_and_recalibrators_take_what_cases_hold() -> None:
    policy = prudent.RobustPolicy(PROBLEM, "self-orthogonal").fit(FORECASTS)
    cases = prudent.Cases(FORECASTS, OUTCOMES, ids=range(400))
    monitor = prudent.PolicyMonitor(policy, tolerance=0.1).update(cases)
    assert (monitor.n_outcomes, monitor.n_pending) == (400, 0)
    fitted = prudent.recalibration.GuaranteeCalibrator("unbiased").fit(
        prudent.Cases(FORECASTS, OUTCOMES, weights=np.arange(400))
    )
    other = prudent.recalibration.GuaranteeCalibrator("unbiased").fit(FORECASTS, OUTCOMES, sample_weight=np.arange(400))
    np.testing.assert_array_equal(fitted.transform(FORECASTS), other.transform(FORECASTS))


def test_a_certificate_for_cases_with_other_moments_is_never_more_than_the_largest_utility() -> None:
    policy = prudent.RobustPolicy(PROBLEM, "unbiased", slack="audit").fit(FORECASTS, np.minimum(OUTCOMES, 0.4))
    found = policy.certify([0.0, 0.0])
    assert found.lower <= found.upper <= 1.0
