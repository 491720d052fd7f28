"""Dates become periods; periods come in the order of time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import prudent
from prudent.cases.periods import EVERY, first_days, in_time
from prudent.errors import InputError

DAYS = [date(2011, 1, 1) + timedelta(days=k) for k in range(0, 800, 3)]


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
