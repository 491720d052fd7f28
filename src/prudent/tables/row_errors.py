"""The error of one row as expressions: outcome minus forecast, and how large it is by chance alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prudent.guarantees.written import coordinate
from prudent.spaces import Simplex, Space

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["error_by_chance", "off_the_ends", "row_residuals", "spread_by_chance", "sum_of"]


def spread_by_chance(space: Space, sizes: list[nw.Expr], scalar: bool) -> dict[str, nw.Expr]:
    """Standard deviation and largest size of a row's error if outcomes are at the ends and forecasts right."""
    import narwhals.stable.v2 as nw

    low, high = space.bounds
    points = [nw.col(coordinate(j)) for j in range(space.dimension)]
    if isinstance(space, Simplex) and not scalar:
        deviation = sum_of([size * size * point for size, point in zip(sizes, points, strict=True)]).sqrt()
        return {"deviation": deviation, "far": nw.max_horizontal(*sizes)}
    deviations, reaches = [], []
    for j, (size, point) in enumerate(zip(sizes, points, strict=True)):
        below, above = point - float(low[j]), float(high[j]) - point
        deviations.append(size * (below * above).sqrt())
        reaches.append(size * nw.max_horizontal(below, above))
    return {"deviation": sum_of(deviations), "far": sum_of(reaches)}


def row_residuals(space: Space) -> list[nw.Expr]:
    """Write outcome minus forecast, coordinate by coordinate."""
    import narwhals.stable.v2 as nw

    return [(nw.col(f"y{j}") - nw.col(coordinate(j))).alias(f"r{j}") for j in range(space.dimension)]


def off_the_ends(space: Space, j: int) -> nw.Expr:
    """Zero for every row exactly where all outcomes are extreme points of the space."""
    import narwhals.stable.v2 as nw

    low, high = (float(bound[j]) for bound in space.bounds)
    outcome = nw.col(f"y{j}")
    return (outcome - low if low else outcome) * (high - outcome)


def error_by_chance(space: Space, j: int) -> tuple[nw.Expr, nw.Expr]:
    """Variance and fourth moment of the error of an outcome at the ends with mean ``v``."""
    import narwhals.stable.v2 as nw

    low, high = (float(bound[j]) for bound in space.bounds)
    point = nw.col(coordinate(j))
    variance = (point - low if low else point) * (high - point)
    # a^2 - a b + b^2 is (a + b)^2 - 3 a b, and never less than a quarter of the first term: few digits are lost.
    return variance, variance * ((high - low) ** 2 - 3.0 * variance)


def sum_of(expressions: list[nw.Expr]) -> nw.Expr:
    """Write the sum of expressions."""
    total = expressions[0]
    for expression in expressions[1:]:
        total = total + expression
    return total
