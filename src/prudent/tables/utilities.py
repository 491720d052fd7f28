"""Expected utilities of what policies play on a table: if forecasts are right, and on the outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.guarantees.written import WrittenTests, coordinate
from prudent.problem import DecisionProblem
from prudent.tables.aggregates import weighted
from prudent.tables.engine import collect, numbers
from prudent.tables.partition import UNCLEAR
from prudent.tables.rows import Rows
from prudent.tables.taking_part import counted_rows, kinds_of

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["TableUtilities", "table_utilities"]


@dataclass(frozen=True, eq=False)
class TableUtilities:
    """Mean utilities over the rows of a table.

    Attributes
    ----------
    nominal : array of shape (p,)
        Of every policy if the forecasts are right.
    realised : array of shape (p,) or None
        On the outcomes, where rows have them.
    best : float
        Of best responding if the forecasts are right.
    """

    nominal: FloatArray
    realised: FloatArray | None
    best: float


def table_utilities(rows: Rows, problem: DecisionProblem, played: Sequence[Sequence[str]]) -> TableUtilities:
    """Add up utilities in one query; each policy is a list of the rows' columns of probabilities."""
    import narwhals.stable.v2 as nw

    nothing = WrittenTests(())
    forecasts = [nw.col(coordinate(j)) for j in range(problem.dimension)]
    points = {"v": forecasts}
    if rows.measured:
        points["y"] = [nw.col(f"y{j}") for j in range(problem.dimension)]
    sums: dict[str, Any] = {"w": nw.lit(1.0), "best": _highest(_utilities(problem, forecasts))}
    for which, point in points.items():
        utilities = _utilities(problem, point)
        for number, columns in enumerate(played):
            sums[f"{which}{number}"] = _mean(columns, utilities)
    frame = rows.frame.select(
        kinds_of(rows, nothing, nw.lit(0)).alias("kind"),
        *(weighted(rows, term).alias(f"t_{name}") for name, term in sums.items()),
    )
    totals = frame.group_by("kind").agg(nw.len().alias("rows"), *(nw.col(f"t_{name}").sum() for name in sums))
    found = collect(totals, "adding up utilities")
    kind = np.asarray(found["kind"], dtype=np.int64)
    if (kind == UNCLEAR).any():
        return table_utilities(rows.carefully(), problem, played)
    counted_rows(rows, nothing, kind, np.asarray(found["rows"], dtype=np.int64))
    total = {name: float(numbers(found[f"t_{name}"])[kind >= 0].sum()) for name in sums}
    return _read(total, len(played), measured=rows.measured)


def _read(total: Mapping[str, float], count: int, *, measured: bool) -> TableUtilities:
    def means(which: str) -> FloatArray:
        return np.array([total[f"{which}{number}"] / total["w"] for number in range(count)])

    return TableUtilities(means("v"), means("y") if measured else None, total["best"] / total["w"])


def _utilities(problem: DecisionProblem, point: list[nw.Expr]) -> list[nw.Expr]:
    """Write the utility of every action at a point."""
    import narwhals.stable.v2 as nw

    utilities = []
    for rewards, cost in zip(problem.rewards.tolist(), problem.costs.tolist(), strict=True):
        utility = nw.lit(-cost)
        for x, reward in zip(point, rewards, strict=True):
            utility = utility + x * reward
        utilities.append(utility)
    return utilities


def _highest(utilities: list[nw.Expr]) -> nw.Expr:
    import narwhals.stable.v2 as nw

    return nw.max_horizontal(*utilities) if len(utilities) > 1 else utilities[0]


def _mean(columns: Sequence[str], utilities: list[nw.Expr]) -> nw.Expr:
    import narwhals.stable.v2 as nw

    total = nw.col(columns[0]) * utilities[0]
    for name, utility in zip(columns[1:], utilities[1:], strict=True):
        total = total + nw.col(name) * utility
    return total
