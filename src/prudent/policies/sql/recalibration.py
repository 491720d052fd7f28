"""Recalibrated forecasts in SQL."""

from __future__ import annotations

from typing import Any

from prudent.errors import InputError
from prudent.policies.sql.formulas import Formulas, case
from prudent.recalibration.isotonic import IsotonicCalibrator
from prudent.recalibration.scaling import LEAST_SHARE, MOST_LOG_ODDS, ScalingCalibrator
from prudent.recalibration.segmented import SegmentedCalibrator
from prudent.spaces import Grid


def recalibrated(recalibrator: Any, formulas: Formulas) -> Formulas:
    """Name the recalibrated forecast, and go on with it instead of the raw one."""
    if isinstance(recalibrator, SegmentedCalibrator):
        found = recalibrated(recalibrator.base_, formulas)
        for name, value, shift in recalibrator.steps:
            here = f"{found.context[name]} = {found.names.dialect.label(value)}"
            pairs = zip(recalibrated(shift, found).v, found.v, strict=True)
            written = found.names.bind("m", [f"CASE WHEN {here} THEN {new} ELSE {old} END" for new, old in pairs])
            found = Formulas(found.names, written, found.context)
        return found
    names, space = formulas.names, recalibrator.space_
    if not isinstance(recalibrator, (IsotonicCalibrator, ScalingCalibrator)) or isinstance(space, Grid):
        raise InputError(f"a {type(recalibrator).__name__} on {space!r} cannot be written in SQL; decide in Python.")
    single = space.one_map
    raw = formulas.v[-1:] if single else formulas.v
    if isinstance(recalibrator, IsotonicCalibrator):
        moved = _steps(recalibrator, formulas, raw)
    else:
        moved = _scaled(recalibrator, formulas, raw)
    moved = names.bind("m", moved)
    if space.is_simplex:
        one = names.dialect.number(1.0)
        if single:
            moved = names.bind("m", [f"{one} - {moved[0]}", moved[0]])
        else:
            (total,) = names.bind("total", [" + ".join(moved)])
            uniform = names.dialect.number(1.0 / len(moved))
            zero = names.dialect.number(0.0)
            moved = names.bind(
                "m", [f"CASE WHEN {total} > {zero} THEN {m} / {total} ELSE {uniform} END" for m in moved]
            )
    return Formulas(names, moved, formulas.context)


def _steps(recalibrator: IsotonicCalibrator, formulas: Formulas, raw: list[str]) -> list[str]:
    number = formulas.names.dialect.number
    return [
        case([f"{v} < {number(edge)}" for edge in edges], list(map(number, levels)))
        for v, edges, levels in zip(raw, recalibrator.edges_, recalibrator.levels_, strict=True)
    ]


def _scaled(recalibrator: ScalingCalibrator, formulas: Formulas, raw: list[str]) -> list[str]:
    names, number = formulas.names, formulas.names.dialect.number
    ends = list(zip(map(number, recalibrator.low_), map(number, recalibrator.high_), strict=True))
    numbers = list(zip(map(number, recalibrator.slopes_), map(number, recalibrator.intercepts_), strict=True))
    if recalibrator.linear:
        return [
            f"LEAST(GREATEST({slope} * {v} + {intercept}, {low}), {high})"
            for v, (slope, intercept), (low, high) in zip(raw, numbers, ends, strict=True)
        ]
    least, one, most = number(LEAST_SHARE), number(1.0), number(MOST_LOG_ODDS)
    if len(raw) > 1:
        scores = [f"ln(GREATEST({v}, {least}))" for v in raw]
        scores = names.bind("z", [f"{a} * {z} + {b}" for z, (a, b) in zip(scores, numbers, strict=True)])
        (top,) = names.bind("top", [f"GREATEST({', '.join(scores)})"])
        shares = names.bind("e", [f"exp({z} - {top})" for z in scores])
        (total,) = names.bind("total", [" + ".join(shares)])
        return [f"GREATEST({share} / {total}, {least})" for share in shares]
    width = float(recalibrator.high_[0] - recalibrator.low_[0])
    ((slope, intercept),), ((low, high),) = numbers, ends
    inside = f"LEAST(GREATEST(({raw[0]} - {low}) / {number(width or 1.0)}, {least}), {one} - {least})"
    (share,) = names.bind("q", [inside])
    (score,) = names.bind("z", [f"{slope} * (ln({share}) - ln({one} - {share})) + {intercept}"])
    (bounded,) = names.bind("z", [f"LEAST(GREATEST({score}, -{most}), {most})"])
    value = f"{low} + {number(width)} / ({one} + exp(-{bounded}))"
    return [f"LEAST(GREATEST({value}, {low}), {high})"]
