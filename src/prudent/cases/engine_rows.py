"""Rows of a lazy table on an outcome space: checked, snapped, counted and added up as arrays in memory are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import add, and_, or_
from typing import Any

import numpy as np

from prudent.arrays import Expr, Exprs, FloatArray, Frame, IntArray, frozen, nw, where
from prudent.cases.cases import require_forecast_columns, require_outcome_columns
from prudent.cases.csv_files import MISSING_WORDS
from prudent.cases.engine import collect, numbers, speaking
from prudent.cases.file_rows import refuse_broken_row
from prudent.cases.scan import TableCases
from prudent.errors import InputError
from prudent.guarantees.engine_tests import EngineTests, context_column, coordinate
from prudent.spaces import ROUNDING, SNAP_TOLERANCE, Space

#: State of a row that takes part: on the space, or moved onto it.
PLAIN, SNAPPED = 0, 1
#: Why a row takes no part: without weight, left out since its outcome is missing, not known before the table is read
#: carefully, refused by the tests. From ``BROKEN`` down it is the number of the rule that the row breaks.
WEIGHTLESS, LEFT_OUT, UNCLEAR, REFUSED, BROKEN = -1, -2, -3, -4, -5

#: Sums of fourth powers of weights, over more rows than anybody has, are still numbers.
_LARGEST_WEIGHT = 1e60
_LEAST_TOTAL = 1e-60


@frozen
class Rows:
    """A lazy frame with the columns ``v0 ..`` (placed forecasts), ``w`` (if there are weights) and ``state``.

    With outcomes also ``y0 ..`` and ``g`` (if there are periods), with context its columns (``c_region``, say), and the
    columns ``played`` with what policies play: expressions of the placed forecast, or None for columns that the table
    has, NULL where a policy refuses the forecast. Read at first as if every row were plain; one that is not makes the
    whole table be read carefully: rows that memory would refuse are marked, by the ``rules`` that they break.
    """

    cases: TableCases
    space: Space
    played: Mapping[str, Expr | None] = field(default_factory=dict)
    measured: bool = False
    careful: bool = False

    @property
    def frame(self) -> Frame:
        """The rows, not read yet."""
        return self._read[0]

    @property
    def rules(self) -> list[str]:
        """What rows must not break, in words, where they are read carefully."""
        return self._read[1]

    @property
    def weighted(self) -> bool:
        """True if rows have weights."""
        return self.cases.weights is not None

    @property
    def grouped(self) -> bool:
        """True if rows are measured by period."""
        return self.measured and self.cases.periods is not None

    @property
    def used(self) -> Frame:
        """The rows that take part."""
        return self.frame.filter(nw.col("state") >= 0)

    @property
    def coordinates(self) -> list[str]:
        """Names of the forecast's columns."""
        return [coordinate(j) for j in range(self.space.dimension)]

    def weigh(self, expression: Expr) -> Expr:
        """Multiply by the weight, if there is one."""
        return expression * nw.col("w") if self.weighted else expression

    def carefully(self) -> Rows:
        """Read the same rows once more, with the care that some of them need."""
        return replace(self, careful=True)

    @cached_property
    def _read(self) -> tuple[Frame, list[str]]:
        """Put the forecasts of the table onto the space."""
        columns, space, outcomes, careful = self.cases, self.space, self.measured, self.careful
        require_forecast_columns(columns.forecasts, space)
        places = range(space.dimension)
        inner, results = [f"x{j}" for j in places], [f"z{j}" for j in places] if outcomes else []
        selected = {x: nw.col(name).cast(nw.Float64) for name, x in zip(columns.forecasts, inner, strict=True)}
        if outcomes:
            selected |= zip(results, outcome_columns(columns, space), strict=True)
        if columns.weights is not None:
            selected["w"] = nw.col(columns.weights).cast(nw.Float64)
        if careful:
            selected = {name: _without_nan(number) for name, number in selected.items()}
        watched = list(selected)
        if outcomes and columns.periods is not None:
            floats = columns.frame.collect_schema()[columns.periods].is_float()
            selected["g"] = _without_nan(nw.col(columns.periods)) if floats else nw.col(columns.periods)
        carried = [name for name, expression in self.played.items() if expression is None]
        beside = {name: nw.col(name) for name in carried}
        beside |= {context_column(name): nw.col(name) for name in columns.context}
        selected |= beside
        with speaking("reading the table"):
            frame = columns.frame.select(*(expression.alias(name) for name, expression in selected.items()))
        kept = [nw.col(name) for name in selected if name not in (*inner, *results)]
        points = _placed(space, inner, "v", careful=careful)
        if outcomes:
            points += _placed(space, results, "y", careful=careful)
        if careful:
            state, rules = _careful_state(columns, space, inner, results, carried)
        else:
            conditions = [_within(space, point, 0.0) for point in (inner, results) if point]
            if columns.weights is not None:
                conditions += [nw.col("w") > 0.0, nw.col("w") <= _LARGEST_WEIGHT]
            if columns.engine == "duckdb" and columns.source is None:  # see _without_nan; a sum shows any NaN
                conditions.append(_total([nw.col(name) for name in watched]).is_finite())
            conditions += [~nw.col(name).is_null() for name in (*carried, "g") if name in selected]
            state, rules = where(_all(conditions), PLAIN, UNCLEAR), []
        frame = frame.select(*points, state.alias("state"), *kept)
        written = [expression.alias(name) for name, expression in self.played.items() if expression is not None]
        frame = frame.with_columns(*written) if written else frame
        return frame, rules


def _careful_state(
    columns: TableCases, space: Space, inner: list[str], results: list[str], carried: list[str]
) -> tuple[Expr, list[str]]:
    """Say of every row whether it takes part, and the rules in words; NULL, which NaN is here, meets no comparison."""
    state = where(_within(space, inner, ROUNDING), PLAIN, SNAPPED)
    weight, others = nw.col("w"), (("w", columns.weights), ("g", columns.periods if results else None))
    needed = [*zip(inner, columns.forecasts, strict=True), *(pair for pair in others if pair[1] is not None)]
    rules = {f"with NULL or NaN in {name!r}": nw.col(x).is_null() for x, name in needed}
    if columns.weights is not None:
        state = where(weight == 0.0, WEIGHTLESS, state)
        wrong = f"with {columns.weights!r} below 0 or above {_LARGEST_WEIGHT:g}"
        rules[wrong] = (weight < 0.0) | (weight > _LARGEST_WEIGHT)
    rules[f"outside {space!r}"] = ~_within(space, inner, SNAP_TOLERANCE)
    if carried:
        refused = "whose forecast a policy refuses, though it lies in the space"
        rules[refused] = _any([nw.col(name).is_null() for name in carried])
    if results:
        missing = _any([nw.col(name).is_null() for name in results])
        rules[f"whose outcome is missing or outside {space!r}"] = missing | ~_within(space, results, SNAP_TOLERANCE)
    # The first rule that a row breaks counts, so it is written last.
    for number, broken in reversed(list(enumerate(rules.values()))):
        state = where(broken, BROKEN - number, state)
        if number == len(rules) - 1 and results and columns.missing == "drop":
            state = where(missing, LEFT_OUT, state)
    return state, list(rules)


def _without_nan(number: Expr) -> Expr:
    """Write NULL for NaN, which DuckDB's own test overlooks where the statistics of a Parquet file do."""
    return nw.when(number.is_finite() | (number == float("inf")) | (number == -float("inf"))).then(number)


def _within(space: Space, names: list[str], tolerance: float) -> Expr:
    """Write that a point is at most so far outside the space, relative to its width."""
    points = [nw.col(name) for name in names]
    if space.is_simplex:
        return _all([*(x >= -tolerance for x in points), (_total(points) - 1.0).abs() <= max(tolerance, ROUNDING)])
    low, high = space.bounds
    least, most = (low - tolerance * space.widths).tolist(), (high + tolerance * space.widths).tolist()
    return _all([test for x, low, high in zip(points, least, most, strict=True) for test in (x >= low, x <= high)])


def _placed(space: Space, names: list[str], prefix: str, *, careful: bool) -> Exprs:
    """Move points onto the space; where no care is needed they are there already."""
    points = [nw.col(name) for name in names]
    if not careful:
        moved = points
    elif not space.is_simplex:
        bounds = zip(points, *(bound.tolist() for bound in space.bounds), strict=True)
        moved = [x.clip(low, high) for x, low, high in bounds]
    else:
        positive = [x.clip(0.0, None) for x in points]
        off = _any([*(x < -ROUNDING for x in points), (_total(points) - 1.0).abs() > ROUNDING])
        total = where(off, _total(positive), 1.0)
        moved = [x / total for x in positive]
    return [x.alias(f"{prefix}{j}") for j, x in enumerate(moved)]


def _total(expressions: Exprs) -> Expr:
    return reduce(add, expressions)


def _all(conditions: Exprs) -> Expr:
    return reduce(and_, conditions)


def _any(conditions: Exprs) -> Expr:
    return reduce(or_, conditions)


@frozen
class Sums:
    """Sums over rows that take part, by key.

    Attributes
    ----------
    rows : Rows
        As they had to be read.
    keys, counts : arrays of shape (keys,)
        In increasing order, and how many rows have each.
    sums : dict of str to array of shape (keys,)
        With ``w``, ``squared_w`` and ``max_w`` of weights; without weights rows have weight one.
    n_left_out : int
        Rows that are left out because their outcome is missing.
    """

    rows: Rows
    keys: IntArray
    counts: IntArray
    sums: dict[str, FloatArray]
    n_left_out: int


def sums_by_key(
    rows: Rows,
    tests: EngineTests,
    query: Callable[[Rows], tuple[Frame, Mapping[str, Expr]]],
    doing: str,
    by: Sequence[str] = ("key",),
) -> Sums:
    """Aggregate columns in one query, or in two where rows need care; refuse rows that cannot be used.

    ``query`` makes of rows a frame with the column ``key``, of :func:`kinds_of`, and what is aggregated. ``by`` may
    name a further column: a key then stands there once for each of its values.
    """
    frame, columns = query(rows)
    if rows.weighted:
        w = nw.col("w")
        columns = {**columns, "w": w.sum(), "squared_w": (w * w).sum(), "max_w": w.max()}
    totals = [nw.len().alias("rows"), *(number.alias(f"t_{name}") for name, number in columns.items())]
    found = collect(frame.group_by(*by).agg(*totals), doing)
    keys, counts = (np.asarray(found.pop(name), dtype=np.int64) for name in ("key", "rows"))
    if (keys == UNCLEAR).any():
        return sums_by_key(rows.carefully(), tests, query, doing, by)
    if (keys <= REFUSED).any():
        raise InputError(_diagnosis(rows, tests, {key: int(counts[keys == key].sum()) for key in set(keys.tolist())}))
    inside = np.argsort(keys)[(keys < 0).sum() :]
    if not inside.size:
        raise InputError("the table has no row that takes part: it is empty, or all weights are zero.")
    ones = np.ones(len(inside))
    sums = {"w": counts[inside] * ones, "squared_w": counts[inside] * ones, "max_w": ones}
    sums |= {name: numbers(found[f"t_{name}"])[inside] for name in columns}
    return Sums(rows, keys[inside], counts[inside], sums, int(counts[keys == LEFT_OUT].sum()))


def kinds_of(tests: EngineTests, inside: Expr) -> Expr:
    """Number rows that take part by an expression, and the others by why they do not."""
    for condition, _ in tests.conditions:
        inside = where(condition, inside, REFUSED)
    return where(nw.col("state") >= 0, inside, nw.col("state"))


def sums_of_all(rows: Rows, tests: EngineTests, columns: Mapping[str, Expr], doing: str) -> Sums:
    """Aggregate columns over all rows that take part."""

    def query(rows: Rows) -> tuple[Frame, Mapping[str, Expr]]:
        return rows.frame.with_columns(kinds_of(tests, nw.lit(0)).alias("key")), columns

    return sums_by_key(rows, tests, query, doing)


def _diagnosis(rows: Rows, tests: EngineTests, counts: Mapping[int, int]) -> str:
    """Say what is wrong with rows; each counts once, by the first rule that it breaks. Of files, name the first."""
    cases = rows.cases
    if cases.source is not None:
        refuse_broken_row(cases.source, cases, rows.space, cases.outcomes if rows.measured else ())
    broken = sorted((BROKEN - key, count) for key, count in counts.items() if key <= BROKEN)
    parts = [f"{count:,} {rows.rules[number]}" for number, count in broken] or [rule for _, rule in tests.conditions]
    advice = "Repair or filter these rows"
    if rows.measured and cases.missing == "refuse":
        advice += ", or leave those whose outcome is missing out with missing='drop'"
    return f"the table has rows that cannot be used: {'; '.join(parts)}. {advice}."


def require_total(total: float) -> None:
    """Refuse weights whose powers would vanish."""
    if total < _LEAST_TOTAL:
        raise InputError(
            f"weights must add up to at least {_LEAST_TOTAL:g}; got {total:g}. Multiply them all by the same number, "
            f"which changes nothing else."
        )


def stacked(found: Mapping[str, Any], names: Sequence[str]) -> FloatArray:
    """Return columns that were collected as an array ``(n, names)``."""
    return np.stack([np.asarray(found[name], dtype=np.float64) for name in names], axis=1)


def outcome_columns(columns: TableCases, space: Any) -> Exprs:
    """Write the outcome as one expression per coordinate; NULL where it is missing, negative where it is no class."""
    names = columns.outcomes
    if not names:
        raise InputError("outcomes must be named: without them nothing can be measured. Say scan(outcomes=...).")
    if not require_outcome_columns(names, space):
        plain = [nw.col(name).cast(nw.Float64) for name in names]
        return plain if len(names) == space.dimension else _on_grid(_without_nan(plain[0]), space.points)
    label, places = _labels(columns, space)
    other = where(label.is_in(list(places)), 0.0, -1.0)  # outside the space: it is refused
    written: Exprs = []
    for place in range(space.dimension):
        own = [name for name, position in places.items() if position == place]
        here = where(label.is_in(own), 1.0, other) if own else other
        written.append(nw.when(~label.is_null()).then(here))
    return written


def _on_grid(number: Expr, points: FloatArray) -> Exprs:
    """Write the shares of points next to a number; one of them is negative where it lies outside the grid."""
    first, last = points[[0, -1]]
    reached: Exprs = [
        ((upper - number) / (upper - lower)).clip(None if upper == last else 0.0, None if lower == first else 1.0)
        for lower, upper in pairwise(points.tolist())
    ]
    return [reached[0], *(after - before for before, after in pairwise(reached)), 1.0 - reached[-1]]


def _labels(columns: TableCases, space: Any) -> tuple[Expr, Mapping[Any, int]]:
    """Write the label as a value that engines compare with those that classes may have, as memory does."""
    name = columns.outcomes[0]
    label, kind = nw.col(name), columns.frame.collect_schema()[name]
    numeric, text = kind.is_numeric() or kind == nw.Boolean, kind in (nw.String, nw.Categorical, nw.Enum)
    if not numeric and not text:
        raise InputError(f"outcomes must be class labels, as text or numbers; {name!r} has type {kind}. Cast it first.")
    if text and columns.source is not None:
        known = space.text_positions()
        unknown = label.str.to_lowercase().is_in(MISSING_WORDS) & ~label.is_in(list(known))
        return nw.when(~unknown).then(label), known
    every: Mapping[Any, int] = space.label_positions()
    places = {value: j for value, j in every.items() if isinstance(value, str) == text}
    if not places:
        held = "text" if text else "numbers"
        raise InputError(f"outcomes must be among the classes {list(every)}; {name!r} holds {held}.")
    if text:
        return label.cast(nw.String), places
    if kind.is_integer():  # floats do not tell long ones apart
        return label.cast(nw.Int64), {int(value): j for value, j in places.items() if float(value).is_integer()}
    return _without_nan(label.cast(nw.Float64)), {float(value): j for value, j in places.items()}
