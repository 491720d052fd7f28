"""Cases: forecasts, with outcomes where there are any, and what else is known about every row."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from prudent.arrays import (
    AnyArray,
    IntArray,
    cluster_numbers,
    context_rows,
    describe_rows,
    listed,
    missing_rows,
    read_context,
    row_weights,
)
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.problem import DecisionProblem
from prudent.spaces import Box, Grid, Space

#: What ``every`` may be, and NumPy's names.
EVERY = {"day": "D", "week": "W", "month": "M", "quarter": "3M", "year": "Y"}
_TRUNCATED = {"day": "1d", "month": "1mo", "quarter": "1q", "year": "1y"}


class Cases:
    """Rows that decisions are about; everything that takes forecasts also takes cases.

    What is computed on cases is cached with them, so asking several questions about the same cases is quicker than
    passing the same arrays several times.

    Parameters
    ----------
    forecasts : array of shape (n,) or (n, d), or frame
    outcomes : array, optional
        Of the same shape; on the simplex also class labels.
    weights : array of shape (n,), optional
        Non-negative, not all zero.
    ids : sequence of length n, optional
        Record ids: keys of draws.
    periods : sequence of length n, optional
        Day, week, season or site: rows of one period depend on each other, periods do not.
    every : {"day", "week", "month", "quarter", "year"}, optional
        Where ``periods`` are dates: the period is the month, say, that a date lies in.
    context : frame or mapping of column names to sequences of length n, optional
        What else is known at decision time.
    missing : {"refuse", "drop"}
        What to do with rows whose outcome is missing.

    Examples
    --------
    >>> import prudent
    >>> cases = prudent.Cases([0.2, 0.6, 0.7], [0.0, 1.0, 1.0])
    >>> cases
    Cases(3 rows with outcomes)
    >>> prudent.audit(prudent.Box(0, 1), cases, guarantee="unbiased").n_rows
    3
    """

    owns_cache = True

    def __init__(
        self,
        forecasts: Any,
        outcomes: Any = None,
        *,
        weights: Any = None,
        ids: Any = None,
        periods: Any = None,
        every: str | None = None,
        context: Any = None,
        missing: str = "refuse",
    ) -> None:
        require_options(missing, every, periods)
        self.forecasts, self.outcomes, self.weights = forecasts, outcomes, weights
        if every is not None:
            periods = first_days(periods, every)
        self.ids, self.periods, self.missing = ids, periods, missing
        self.context = read_context(context)
        self._placed: MemoryRows | None = None

    def __len__(self) -> int:
        return len(self.forecasts)

    def __repr__(self) -> str:
        given = [name for name in ("outcomes", "weights", "ids", "periods") if getattr(self, name) is not None]
        given += self.context
        return f"Cases({len(self):,} rows{' with ' if given else ''}{', '.join(given)})"

    def __array__(self, *options: Any) -> AnyArray:
        return np.asarray(self.forecasts, *options)

    def on(self, space: Space) -> MemoryRows:
        """Check everything and place it on an outcome space."""
        if self._placed is None or self._placed.space != space:
            self._placed = self._place(space)
        return self._placed

    def in_memory(self, space: Space) -> "Cases":  # noqa: ARG002  # tables are read by it
        """These cases; those of a table as rows in memory."""
        return self

    @property
    def has_outcomes(self) -> bool:
        """Whether there are outcomes."""
        return self.outcomes is not None

    @property
    def width(self) -> int:
        """Number of the forecasts' columns."""
        shape: tuple[int, ...] = getattr(self.forecasts, "shape", None) or np.asarray(self.forecasts).shape
        return shape[1] if len(shape) == 2 and shape[1] else 1

    def _place(self, space: Space) -> MemoryRows:
        placed, snapped = space.place(self.forecasts, "forecasts")
        n = len(placed)
        for what, column in {"ids": self.ids, "periods": self.periods, **self.context}.items():
            if column is not None and len(column) != n:
                raise InputError(f"{what} must have one row per forecast, {n}; got {len(column)}.")
        weights, used = row_weights(self.weights, n)
        outcomes, n_dropped = None, 0
        if self.outcomes is not None:
            outcomes, present = space.place_known_outcomes(self.outcomes)
            if len(present) != n:
                raise InputError(f"outcomes must have one row per forecast, {n}; got {len(present)}.")
            if not len(outcomes):
                raise InputError("outcomes are missing in every row.")
            n_dropped = int((~present).sum())
            if self.missing == "refuse" and n_dropped:
                raise InputError(
                    f"outcomes are missing in {describe_rows(np.flatnonzero(~present))}. Wait for them, or leave these "
                    f"rows out with missing='drop'; if rows with missing outcomes differ from the others, the result "
                    f"does not speak of them."
                )
            outcomes, used = outcomes[used[present]] if not used.all() else outcomes, used & present
        periods = None if self.periods is None else cluster_numbers(self.periods, n)
        if not used.any():
            raise InputError("outcomes must be known for at least one row of positive weight.")
        kept: Any = slice(None) if used.all() else used
        weights = weights[kept]
        if n_dropped:
            weights = weights / weights.sum()
        if periods is not None and not used.all():
            periods = np.unique(periods[used], return_inverse=True)[1]
        context = context_rows(self.context, kept) or {}
        return MemoryRows(space, placed[kept], outcomes, weights, periods, placed, kept, n_dropped, snapped, context)


def read_cases(forecasts: Any, outcomes: Any = None, **columns: Any) -> Cases:
    """Take cases as they are, or make them of arrays; ``columns`` are those of :class:`Cases`."""
    if not isinstance(forecasts, Cases):
        return Cases(forecasts, outcomes, **columns)
    given = {"outcomes": outcomes, **columns}
    twice = [name for name, value in given.items() if value is not None and (name, value) != ("missing", "refuse")]
    if twice:
        raise InputError(f"{', '.join(twice)} of cases: say it in prudent.Cases() or prudent.scan(), and not here.")
    return forecasts


def outcome_space(problem_or_space: Any, width: int) -> Space:
    """Return the space of a problem or a space; without either as many unit intervals as forecasts have columns."""
    if problem_or_space is None:
        return Box(0.0, 1.0).with_dimension(width)
    space = problem_or_space.space if isinstance(problem_or_space, DecisionProblem) else problem_or_space
    if isinstance(space, Space):
        return space
    raise InputError(f"problem_or_space must be a DecisionProblem, a Box or a Simplex; got {problem_or_space!r}.")


def require_forecast_columns(columns: Sequence[str], space: Space) -> None:
    """Check that there is one column per coordinate, and that columns named like classes are in their order."""
    if len(columns) != space.dimension:
        raise InputError(f"forecasts must name {space.columns_needed}; got {list(columns)}.")
    space.require_order(columns, "forecasts")


def require_outcome_columns(columns: Sequence[str], space: Space) -> bool:
    """Check that there is one column per coordinate, or one of class labels; say whether it is one of labels."""
    labelled = space.reads_labels(len(columns))
    if columns and not labelled and len(columns) not in (space.dimension, 1 if isinstance(space, Grid) else 0):
        raise InputError(f"outcomes must name {space.columns_needed}; got {list(columns)}.")
    return labelled


def require_options(missing: str, every: Any, periods: Any) -> None:
    """Check what to do with rows without outcome, and that there are periods if they have a length."""
    if missing not in ("refuse", "drop"):
        raise InputError(f"missing must be 'refuse' or 'drop'; got {missing!r}.")
    if every is not None and periods is None:
        raise InputError(f"every says how long periods are, and periods are not given; got every={every!r}.")


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
    shift = np.timedelta64(3 if every == "week" else 0, "D")  # 1970 began on a Thursday
    return (_days(dates) + shift).astype(f"datetime64[{EVERY[every]}]").astype("datetime64[D]") - shift


def _days(dates: Any) -> AnyArray:
    array = np.asarray(dates)
    if array.dtype.kind == "M":
        return array.astype("datetime64[D]")
    read, zoned = [], set()
    for row, item in enumerate(listed(dates, "periods")):
        try:
            moment = datetime.fromisoformat(str(item))
        except ValueError as error:
            raise InputError(
                f"periods must be dates where every= is given, such as 2012-03-31; row {row} is {item!r}."
            ) from error
        zoned.add(moment.tzinfo is not None)
        read.append(moment.date())
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
    from prudent.arrays import nw

    if require_every(every) not in _TRUNCATED:
        raise InputError(f"every must be one of {', '.join(map(repr, _TRUNCATED))} in a table; got {every!r}.")
    if not (kind.is_temporal() or kind == nw.String):
        raise InputError(f"periods must be a column of dates where every= is given; {name!r} has type {kind}.")
    return (column.cast(nw.Datetime()) if kind == nw.String else column).dt.truncate(_TRUNCATED[every])
