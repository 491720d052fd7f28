"""Segments: rows with the same value of a column that is known at decision time (docs/theory.md, section 12)."""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.arrays import IntArray, describe_rows, listed, missing_rows, require_context
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError

#: Segments with fewer rows, or rows of fewer than four periods, are pooled.
FEWEST_ROWS = 30


def values_and_numbers(rows: MemoryRows, name: str) -> tuple[list[Any], IntArray]:
    """Return the values of a column of context, and the number of every row's."""
    column = require_context(rows.context, (name,), len(rows.forecasts))[name]
    without = np.flatnonzero(missing_rows(column, name))
    if without.size:
        raise InputError(
            f"context must be known in every row; {name!r} is missing in {describe_rows(without)}. Give these rows a "
            f"value of their own, such as 'unknown'."
        )
    seen: dict[Any, int] = {}
    numbers = np.array([seen.setdefault(value, len(seen)) for value in listed(column, name)])
    return list(seen), numbers


def split_rows(rows: MemoryRows, name: str) -> list[tuple[Any, IntArray, int]]:
    """Return the values of a column of context with their rows, and how many periods or rows these are."""
    values, numbers = rows.cache.get(("segments", name), lambda: values_and_numbers(rows, name))
    parts = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
    units = np.arange(len(numbers)) if rows.periods is None else rows.periods
    return [(value, own, np.unique(units[own]).size) for value, own in zip(values, parts, strict=True)]


def is_large(segment: tuple[Any, IntArray, int]) -> bool:
    """Say whether a segment is looked at alone."""
    return len(segment[1]) >= FEWEST_ROWS and segment[2] >= FEWEST_PERIODS


def find_segments(rows: MemoryRows, by: Any) -> list[tuple[str, IntArray]]:
    """Name the segments of each of some columns, with their rows; small ones are one segment."""
    found = []
    for name in [by] if isinstance(by, str) else listed(by, "by"):
        parts = split_rows(rows, name)
        if len(parts) == 1:
            raise InputError(f"context must tell rows apart; all have the same {name}. Leave the column out.")
        if rows.periods is not None and all(count == 1 for *_, count in parts):
            raise InputError(f"every {name} occurs in one period only, so it is no context. Leave the column out.")
        found += [(f"{name}={part[0]}", part[1]) for part in parts if is_large(part)]
        small = [part[1] for part in parts if not is_large(part)]
        if small:
            found.append((f"other {name}", np.sort(np.concatenate(small))))
    return found
