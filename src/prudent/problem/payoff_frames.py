"""Payoffs in a data frame: its columns name classes, its index names actions."""

from __future__ import annotations

from typing import Any

from prudent.arrays import labels
from prudent.errors import InputError

__all__ = ["column_names", "select_rows"]


def select_rows(table: Any, actions: Any) -> tuple[Any, Any]:
    """Match action labels with the index of a pandas frame; a plain 0, 1, 2, ... index names nothing."""
    index = labels(table.index, "the index of table")
    if actions is None:
        return table, index
    wanted = labels(actions, "actions")
    if index == list(range(len(index))) or wanted == index:
        return table, wanted
    if set(wanted) != set(index):
        raise InputError(
            f"actions must name the rows of table {index}; got {wanted}: "
            f"missing {sorted(set(index) - set(wanted), key=str)}, unknown {sorted(set(wanted) - set(index), key=str)}."
        )
    return table.loc[wanted], wanted


def column_names(table: Any) -> list[Any] | None:
    """Return the column names of a pandas, polars or Arrow table; None for arrays."""
    if hasattr(table, "column_names"):
        return list(table.column_names)
    return list(table.columns) if hasattr(table, "columns") else None
