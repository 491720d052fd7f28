"""Periods of dates: every row belongs to the day, week, month, quarter or year that its date lies in."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np

from prudent.arrays import AnyArray, IntArray, describe_rows, listed, missing_rows
from prudent.errors import InputError

#: What ``every`` may be.
EVERY = ("day", "week", "month", "quarter", "year")
_TRUNCATED = {"day": "1d", "month": "1mo", "quarter": "1q", "year": "1y"}


def require_every(every: Any) -> str:
    """Check the length of a period."""
    if not isinstance(every, str) or every not in EVERY:
        raise InputError(f"every must be one of {', '.join(map(repr, EVERY))}; got {every!r}.")
    return every


def first_days(dates: Any, every: str) -> AnyArray:
    """Return the first day of the period that each date lies in, as dates.

    Dates are what clocks and calendars at the place showed: of times with a zone the zone is left out.
    """
    require_every(every)
    without = np.flatnonzero(missing_rows(dates, "periods"))
    if without.size:
        raise InputError(f"periods must name a date for every row; {describe_rows(without)} have none.")
    days = _days(dates)
    if every in ("day", "week"):
        shift = (days.astype(np.int64) + 3) % 7 if every == "week" else 0  # 1970 began on a Thursday
        return days - np.asarray(shift).astype("timedelta64[D]")
    months = days.astype("datetime64[M]").astype(np.int64)
    months -= months % {"month": 1, "quarter": 3, "year": 12}[every]
    return months.astype("datetime64[M]").astype("datetime64[D]")


def _days(dates: Any) -> AnyArray:
    array = np.asarray(dates)
    if array.dtype.kind == "M":
        return array.astype("datetime64[D]")
    items = listed(dates, "periods")
    read, zoned = [], set()
    for row, item in enumerate(items):
        try:
            moment = item if isinstance(item, date) else datetime.fromisoformat(item)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"periods must be dates where every= is given, such as 2012-03-31; row {row} is {item!r}."
            ) from error
        zoned.add(isinstance(moment, datetime) and moment.tzinfo is not None)
        read.append(moment.date() if isinstance(moment, datetime) else moment)
    if len(zoned) > 1:
        raise InputError("periods must all have a time zone, or none of them; some have one. Convert them first.")
    return np.array(read, dtype="datetime64[D]")


def in_time(periods: Any, used: Any = slice(None)) -> tuple[tuple[str, ...], IntArray]:
    """Names of periods in the order of their values, and the place of every row's among them; of some rows."""
    held = periods if isinstance(periods, np.ndarray) else np.array(listed(periods, "periods"), dtype=object)
    try:
        distinct, place = np.unique(held[used], return_inverse=True)
    except TypeError as error:
        raise InputError("periods must have an order: numbers, dates or strings, all of one kind.") from error
    return tuple(str(value) for value in distinct), place.reshape(-1)


def in_engine(column: Any, kind: Any, name: str, every: str) -> Any:
    """Write the first day of the period of a column of dates, or of text that an engine reads as such."""
    from prudent.arrays.lazy_narwhals import nw

    if require_every(every) not in _TRUNCATED:
        raise InputError(f"every must be one of {', '.join(map(repr, _TRUNCATED))} in a table; got {every!r}.")
    if not (kind.is_temporal() or kind == nw.String):
        raise InputError(f"periods must be a column of dates where every= is given; {name!r} has type {kind}.")
    return (column.cast(nw.Datetime()) if kind == nw.String else column).dt.truncate(_TRUNCATED[every])
