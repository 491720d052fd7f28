"""Expected utilities of what policies play on a table: if forecasts are right, and on the outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.arrays.lazy_narwhals import Expr, nw
from prudent.cases.engine import collect, numbers
from prudent.cases.engine_rows import UNCLEAR, Rows, counted_rows, kinds_of
from prudent.guarantees import Nothing
from prudent.guarantees.engine_tests import engine_tests
from prudent.problem import DecisionProblem


def table_utilities(
    rows: Rows, problem: DecisionProblem, played: Sequence[Sequence[str]]
) -> tuple[FloatArray, FloatArray | None, float]:
    """Add up utilities in one query; each policy is a list of the rows' columns of probabilities.

    Returns mean utilities of every policy if the forecasts are right, on the outcomes where rows have them, and of best
    responding if the forecasts are right.
    """
    nothing = engine_tests(Nothing(), rows.space)
    nominal = _utilities(problem, "v")
    sums = {"w": nw.lit(1.0), "best": nw.max_horizontal(*nominal) if len(nominal) > 1 else nominal[0]}
    for which in ("v", "y") if rows.measured else ("v",):
        utilities = _utilities(problem, which)
        sums |= {f"{which}{k}": linear(utilities, [nw.col(name) for name in names]) for k, names in enumerate(played)}
    frame = rows.frame.select(
        kinds_of(rows, nothing, nw.lit(0)).alias("kind"),
        *(rows.weigh(term).alias(f"t_{name}") for name, term in sums.items()),
    )
    totals = frame.group_by("kind").agg(nw.len().alias("rows"), *(nw.col(f"t_{name}").sum() for name in sums))
    found = collect(totals, "adding up utilities")
    kind = np.asarray(found["kind"], dtype=np.int64)
    if (kind == UNCLEAR).any():
        return table_utilities(rows.carefully(), problem, played)
    counted_rows(rows, nothing, kind, np.asarray(found["rows"], dtype=np.int64))
    total = {name: float(numbers(found[f"t_{name}"])[kind >= 0].sum()) for name in sums}

    def means(which: str) -> FloatArray:
        return np.array([total[f"{which}{number}"] / total["w"] for number in range(len(played))])

    return means("v"), means("y") if rows.measured else None, total["best"] / total["w"]


def _utilities(problem: DecisionProblem, which: str) -> list[Expr]:
    """Write the utility of every action at the forecast ``v`` or the outcome ``y``."""
    point = [nw.col(f"{which}{j}") for j in range(problem.dimension)]
    pairs = zip(problem.rewards.tolist(), problem.costs.tolist(), strict=True)
    return [linear(point, rewards, -cost) for rewards, cost in pairs]


def linear(numbers: Sequence[Expr], factors: Sequence[Any], start: float | None = None) -> Expr:
    """Write the sum of numbers times factors, those that are zero left out; ``start`` is added to it."""
    terms = [] if start is None else [nw.lit(start)]
    terms += [x * factor for x, factor in zip(numbers, factors, strict=True) if not _is_zero(factor)]
    return reduce(add, terms) if terms else nw.lit(0.0)


def _is_zero(factor: Any) -> bool:
    return isinstance(factor, float) and factor == 0.0
