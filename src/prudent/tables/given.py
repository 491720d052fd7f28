"""Rows of files by name: in memory, or in DuckDB where they are large or many; the same words for both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from numpy.typing import NDArray

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.spaces import Simplex, Space
from prudent.tables.columns import Columns, columns
from prudent.tables.csv_files import open_csv
from prudent.tables.file_sets import (
    as_doubles,
    belongs_in_engine,
    find_files,
    kind_of_files,
    own_connection,
    quoted_name,
    quoted_text,
)
from prudent.tables.opening import open_table
from prudent.tables.parquet_files import Role, open_parquet
from prudent.tables.sample import class_index, read_sample, require_forecast_columns, require_outcome_columns

__all__ = ["GivenRows", "lazy_columns", "read_rows"]


@dataclass(frozen=True, eq=False)
class GivenRows:
    """What ``fit`` and ``audit`` take, whatever holds the rows.

    Attributes
    ----------
    forecasts : array of shape (n, d), or Columns
        Columns know outcomes, weights and groups themselves; the others are then None.
    outcomes : array of shape (n, d) or None
    weights, groups : array of shape (n,) or None
    missing : {"refuse", "drop"}
        What is still to be done with rows whose outcome is missing.
    """

    forecasts: FloatArray | Columns
    outcomes: FloatArray | None = None
    weights: FloatArray | None = None
    groups: NDArray[Any] | None = None
    missing: str = "refuse"

    @property
    def connection(self) -> Any:
        """DuckDB's connection, or None."""
        return self.forecasts.connection if isinstance(self.forecasts, Columns) else None

    @property
    def n_rows(self) -> int:
        """Number of rows, those without weight included."""
        if isinstance(self.forecasts, Columns):
            return int(self.forecasts.table.aggregate("count(*)").fetchall()[0][0])
        return len(self.forecasts)


@contextmanager
def read_rows(
    paths: Sequence[str],
    space: Space,
    forecasts: Sequence[str],
    outcomes: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    *,
    missing: str = "refuse",
    delimiter: str = ",",
) -> Iterator[GivenRows]:
    """Read columns of files; errors about rows in memory, raised inside the block, name their place in the file.

    Parameters
    ----------
    paths : sequence of str
        CSV or Parquet. Several files, globs, folders and large files stay in DuckDB; ``-`` is standard input.
    space : Space
    forecasts, outcomes : sequence of str
        One column per coordinate or class, in their order; outcomes may also be one column of class labels.
    weight, group : str, optional
    missing : {"refuse", "drop"}
        Whether outcomes may be missing.
    delimiter : str
        Between the cells of CSV.
    """
    if belongs_in_engine(paths):
        absent = "drop outcomes" if missing == "drop" else "refuse"
        yield GivenRows(
            lazy_columns(paths, space, forecasts, outcomes, weight, group, missing=absent, delimiter=delimiter)
        )
        return
    with open_table(paths[0], delimiter=delimiter) as table:
        sample = read_sample(table, space, forecasts, outcomes, weight, group, missing=missing)
        with sample.naming_rows():
            yield GivenRows(sample.forecasts, sample.outcomes, sample.weights, sample.groups, missing)


def lazy_columns(
    paths: Sequence[str],
    space: Space,
    forecasts: Sequence[str],
    outcomes: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    id_column: str | None = None,
    *,
    missing: Any = "refuse",
    delimiter: str = ",",
) -> Columns:
    """Open columns of files in DuckDB, read as a single file in memory is: ids, groups and labels of CSV are text."""
    named = require_forecast_columns(forecasts, space)
    labelled = require_outcome_columns(outcomes, space)
    numbers = [*named, *(() if labelled else outcomes), *([weight] if weight else ())]
    values = [*(outcomes if labelled else ()), *(name for name in (group, id_column) if name)]
    both = set(numbers) & set(values)
    if both:
        raise InputError(f"column {both.pop()!r} is asked for as a number and as a name; copy it to a second column.")
    files = find_files(paths)
    connection = own_connection()
    if kind_of_files(files) == "parquet":
        table = _typed_parquet(connection, files, numbers, values, outcomes if labelled else ())
    else:
        table = open_csv(connection, files, numbers, values, delimiter)
    kept = [quoted_name(column) for column in dict.fromkeys([*numbers, *values])]
    points = outcomes
    if labelled and isinstance(space, Simplex):
        points = [f"outcome of class {j + 1}" for j in range(space.n_classes)]
        kept.remove(quoted_name(outcomes[0]))
        kept += _one_hot(table, space, outcomes[0], points)
    table = table.project(", ".join(kept))
    opened = columns(
        table, forecasts=named, outcomes=points or None, weight=weight, group=group, id=id_column, missing=missing
    )
    alone = partial(
        _alone,
        space=space,
        forecasts=forecasts,
        outcomes=outcomes,
        weight=weight,
        group=group,
        missing=missing,
        delimiter=delimiter,
    )
    return replace(opened, files=files, connection=connection, reopen=alone, may_drop=False)


def _typed_parquet(
    connection: Any, files: Sequence[str], numbers: Sequence[str], values: Sequence[str], labels: Sequence[str]
) -> Any:
    """Numbers as doubles, true and false among them as one and zero, as a single file in memory has them."""
    with open_table(files[0]) as first:
        for column in (*numbers, *values):
            first.require(column)
    roles: dict[str, Role] = dict.fromkeys(numbers, "outcome")
    roles |= {column: "label" if column in labels else "name" for column in values}
    table = open_parquet(connection, files, roles)
    return table.project(f"* REPLACE ({as_doubles(list(dict.fromkeys(numbers)))})")


def _alone(file: str, **options: Any) -> Columns:
    return lazy_columns([file], **options)


def _one_hot(table: Any, space: Simplex, column: str, names: Sequence[str]) -> list[str]:
    """Write class labels as rows of a unit matrix, read as :mod:`prudent.tables.sample` reads them.

    NULL where the label is missing; where it is no class the row is negative, so that it is refused.
    """
    label, kind = quoted_name(column), str(table.types[table.columns.index(column)])
    text = f"trim(CAST({label} AS VARCHAR))"
    if kind == "BOOLEAN":
        text = f"CASE WHEN {label} THEN 'True' WHEN NOT {label} THEN 'False' END"
    elif kind in ("FLOAT", "DOUBLE"):  # whole numbers next to missing ones
        text = f"CASE WHEN NOT isnan({label}) THEN regexp_replace({text}, '[.]0$', '') END"
    index = class_index(space)
    written = [", ".join(quoted_text(word) for word, place in index.items() if place == j) for j in range(len(names))]
    missing = f"NULLIF({text}, '') IS NULL"
    other = f"CASE WHEN {text} IN ({', '.join(written)}) THEN 0.0::DOUBLE ELSE -1.0::DOUBLE END"
    return [
        f"CASE WHEN {missing} THEN NULL WHEN {text} IN ({words}) THEN 1.0::DOUBLE ELSE {other} END "
        f"AS {quoted_name(name)}"
        for words, name in zip(written, names, strict=True)
    ]
