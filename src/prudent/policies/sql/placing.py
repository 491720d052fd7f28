"""Forecasts in SQL as :mod:`prudent.spaces` takes them: onto the space within 1e-6, refused beyond."""

from __future__ import annotations

from prudent.policies.sql.pipeline import Pipeline
from prudent.spaces import SNAP_TOLERANCE, Box, Space

__all__ = ["accepted", "placed"]

_ROUNDING = 1e-12


def accepted(space: Space, names: Pipeline, raw: list[str]) -> str:
    """Write the condition under which Python takes the forecast; NULL and NaN never meet it."""
    number = names.dialect.number
    if isinstance(space, Box):
        return " AND ".join(
            f"GREATEST({number(low)} - {column}, {column} - {number(high)}) / {number(high - low)}"
            f" <= {number(SNAP_TOLERANCE)}"
            for column, low, high in zip(raw, space.lower, space.upper, strict=True)
        )
    return f"-{_least(raw)} <= {number(SNAP_TOLERANCE)} AND {_off(raw, names)} <= {number(SNAP_TOLERANCE)}"


def placed(space: Space, names: Pipeline, raw: list[str]) -> list[str]:
    """Name the coordinates of the forecast on the space."""
    number = names.dialect.number
    if isinstance(space, Box):
        return names.bind(
            "v",
            [
                f"LEAST(GREATEST({column}, {number(low)}), {number(high)})"
                for column, low, high in zip(raw, space.lower, space.upper, strict=True)
            ],
        )
    zero, one, rounding = number(0.0), number(1.0), number(_ROUNDING)
    positive = names.bind("w", [f"GREATEST({column}, {zero})" for column in raw])
    off = f"-{_least(raw)} > {rounding} OR {_off(raw, names)} > {rounding}"
    (total,) = names.bind("total", [f"CASE WHEN {off} THEN {' + '.join(positive)} ELSE {one} END"])
    return names.bind("v", [f"{column} / {total}" for column in positive])


def _least(raw: list[str]) -> str:
    return f"LEAST({', '.join(raw)})"


def _off(raw: list[str], names: Pipeline) -> str:
    return f"ABS({' + '.join(raw)} - {names.dialect.number(1.0)})"
