"""Cases: checked once, taken by everything that takes forecasts, with the cache of what was computed on them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import prudent
from prudent.cases.cases import EVERY, first_days, in_time
from prudent.errors import InputError

PROBLEM = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
RNG = np.random.default_rng(0)
FORECASTS = RNG.random(400)
OUTCOMES = (RNG.random(400) < FORECASTS).astype(float)
DAYS = [date(2011, 1, 1) + timedelta(days=k) for k in range(0, 800, 3)]


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


def expected(day: date, every: str) -> date:
    if every == "week":
        return day - timedelta(days=day.weekday())
    month = {"day": day.month, "month": day.month, "quarter": day.month - (day.month - 1) % 3, "year": 1}[every]
    return date(day.year, month, day.day if every == "day" else 1)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("form", ["dates", "text", "numpy", "pandas", "times", "zoned", "zoned pandas"])
def test_the_first_day_of_a_period(every: str, form: str) -> None:
    zone = timezone(timedelta(hours=9))
    given: Any = {
        "dates": DAYS,
        "text": [day.isoformat() for day in DAYS],
        "numpy": np.array(DAYS, dtype="datetime64[s]"),
        "pandas": pd.Series(pd.to_datetime(DAYS)),
        "times": [datetime(day.year, day.month, day.day, 23, 59) for day in DAYS],  # noqa: DTZ001
        "zoned": [datetime(day.year, day.month, day.day, 1, tzinfo=zone) for day in DAYS],
        "zoned pandas": pd.Series(pd.to_datetime(DAYS)).dt.tz_localize("America/New_York"),
    }[form]
    # The calendar is that of the place: an hour past midnight in Tokyo is the new day, not that of Greenwich.
    assert first_days(given, every).tolist() == [expected(day, every) for day in DAYS]


def test_what_is_no_date_is_refused() -> None:
    with pytest.raises(InputError, match="row 1 is 'soon'"):
        first_days(["2011-01-01", "soon"], "month")
    with pytest.raises(InputError, match=r"must name a date for every row; row 1 have none|row 1"):
        first_days(np.array(["2011-01-01", "NaT"], dtype="datetime64[D]"), "month")
    with pytest.raises(InputError, match="all have a time zone, or none"):
        first_days([datetime(2011, 1, 1), datetime(2011, 1, 1, tzinfo=UTC)], "day")  # noqa: DTZ001  # on purpose
    with pytest.raises(InputError, match="every must be one of 'day'"):
        first_days(DAYS, "decade")
    with pytest.raises(InputError, match="every says how long periods are"):
        prudent.Cases([0.1, 0.2], every="month")
    with pytest.raises(InputError, match="none"):
        prudent.Cases([0.1, 0.2], [0, 1], periods=np.array(["2011", "NaT"], dtype="datetime64[D]")).on(
            prudent.Box(0, 1).with_dimension(1)
        )


def test_periods_come_in_the_order_of_their_values() -> None:
    names, place = in_time(["b", "a", "c", "a"])
    assert names == ("a", "b", "c")
    assert place.tolist() == [1, 0, 2, 0]
    with pytest.raises(InputError, match="must have an order"):
        in_time(["a", 1])


def rows(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    v = rng.random(n)
    days = [date(2011, 1, 1) + timedelta(days=int(k)) for k in rng.integers(0, 300, n)]
    return pd.DataFrame({"v": v, "y": (rng.random(n) < v).astype(float), "day": days})


@pytest.mark.parametrize("every", ["month", "quarter"])
@pytest.mark.parametrize("engine", ["duckdb", "polars", "csv"])
def test_tables_have_the_periods_of_memory(every: str, engine: str, tmp_path: Any) -> None:
    frame = rows()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    dated = frame.assign(day=pd.to_datetime(frame["day"]))
    table: Any = {
        "duckdb": lambda: duckdb.from_df(dated),
        "polars": lambda: pl.from_pandas(dated).lazy(),
        "csv": lambda: str(tmp_path / "rows.csv"),
    }[engine]()
    cases = prudent.scan(table, "v", "y", periods="day", every=every)
    found = prudent.audit(None, cases, guarantee="self-orthogonal").measured
    memory = prudent.Cases(frame["v"], frame["y"], periods=frame["day"].tolist(), every=every)
    wanted = prudent.audit(None, memory, guarantee="self-orthogonal").measured
    assert found.means.n_units == wanted.means.n_units > 3
    np.testing.assert_allclose(found.below, wanted.below, rtol=1e-9)
    assert found.means.periods is not None
    assert wanted.means.periods is not None
    np.testing.assert_allclose(found.means.periods.between, wanted.means.periods.between, rtol=1e-6)
    np.testing.assert_allclose(found.means.periods.within, wanted.means.periods.within, rtol=1e-9)


def test_tables_refuse_what_they_cannot_do() -> None:
    table = duckdb.sql("SELECT 0.2 AS v, 1.0 AS y, 7 AS day, DATE '2011-01-01' AS d")
    with pytest.raises(InputError, match="must be a column of dates"):
        prudent.scan(table, "v", "y", periods="day", every="month")
    with pytest.raises(InputError, match="in a table; got 'week'"):
        prudent.scan(table, "v", "y", periods="d", every="week")
    with pytest.raises(InputError, match="every says how long periods are"):
        prudent.scan(table, "v", "y", every="month")
