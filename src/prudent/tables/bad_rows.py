"""Why rows of a lazy table cannot be used: counted for the error message only, a good table never pays for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prudent.guarantees.written import WrittenTests
from prudent.spaces import SNAP_TOLERANCE, Space
from prudent.tables.columns import Columns
from prudent.tables.engine import collect
from prudent.tables.rows import BAD, LARGEST_WEIGHT, Rows, place_rows, within

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["diagnosis"]

_MOST_FILES = 10


def diagnosis(rows: Rows, tests: WrittenTests | None) -> str:
    """Count every row that cannot be used once, by the first rule that it breaks."""
    reasons = _reasons(rows)
    counts = _counted(rows, rows.columns)
    parts = [f"{count:,} {reasons[number][0]}" for number, count in sorted(counts.items())]
    if not parts and tests is not None:
        parts = [block.refusal for block in tests.blocks if block.demand is not None]
    advice = "Repair or filter these rows"
    if rows.columns.missing == "refuse" and rows.columns.may_drop and any(reasons[number][1] for number in counts):
        advice += ", or leave those with missing values out with missing='drop'"
    return f"the table has rows that cannot be used: {'; '.join(parts)}{_by_file(rows)}. {advice}."


def _reasons(rows: Rows) -> list[tuple[str, bool]]:
    """Name the rules in their order, and whether a row that breaks one may be a row with missing values."""
    columns, space = rows.columns, rows.space
    found = [(f"with {what} in {name!r}", True) for name in columns.forecasts for what in ("NULL", "NaN")]
    if columns.weight is not None:
        found += [(f"with NULL or NaN in {columns.weight!r}", True)]
        found += [(f"with {columns.weight!r} below 0 or above {LARGEST_WEIGHT:g}", False)]
    found += [(f"outside {space!r}", False), (f"whose outcome or group is missing or outside {space!r}", True)]
    return [*found, ("whose forecast a policy refuses, though it lies in the space", False)]


def _reason(columns: Columns, space: Space, grouped: bool, inner: list[str], results: list[str]) -> nw.Expr:
    """Number the first rule that a row breaks, as :func:`_reasons` does."""
    import narwhals.stable.v2 as nw

    broken = [rule for name in inner for rule in (nw.col(name).is_null(), nw.col(name).is_nan())]
    if columns.weight is not None:
        weight = nw.col("w")
        broken += [weight.is_null() | weight.is_nan(), (weight < 0.0) | (weight > LARGEST_WEIGHT)]
    broken.append(~within(space, inner, SNAP_TOLERANCE))
    measured = nw.lit(False)
    for name in [*results, *(["g"] if grouped else [])]:
        measured = measured | nw.col(name).is_null()
    if results:
        measured = measured | ~within(space, results, SNAP_TOLERANCE)
        for name in results:
            measured = measured | nw.col(name).is_nan()
    broken.append(measured)
    number = nw.lit(len(broken))
    for place in range(len(broken) - 1, -1, -1):
        number = nw.when(broken[place]).then(nw.lit(place)).otherwise(number)
    return number


def _counted(rows: Rows, columns: Columns) -> dict[int, int]:
    """Count the rows of a table like that of ``rows`` by the number of their reason."""
    import narwhals.stable.v2 as nw

    reason = partial(_reason, columns, rows.space, rows.grouped)
    played = rows.played if columns is rows.columns else {}
    placed = place_rows(
        columns,
        rows.space,
        outcomes=rows.measured,
        groups=rows.grouped,
        careful=True,
        played=played,
        reason=reason,
    )
    bad = placed.frame.filter(nw.col("state") == BAD).select("reason")
    found = collect(bad.group_by("reason").agg(nw.len().alias("rows")), "counting rows")
    return dict(zip(found["reason"].tolist(), found["rows"].tolist(), strict=True))


def _by_file(rows: Rows) -> str:
    """Say which files hold such rows; what policies refuse is not among them."""
    if rows.columns.reopen is None:
        return ""
    lines = []
    for file in rows.columns.files:
        count = sum(_counted(rows, rows.columns.reopen(file)).values())
        if count:
            lines.append(f"{file}: {count:,}")
    more = f" and {len(lines) - _MOST_FILES:,} more files" if len(lines) > _MOST_FILES else ""
    return f" (by file: {', '.join(lines[:_MOST_FILES])}{more})" if lines else ""
