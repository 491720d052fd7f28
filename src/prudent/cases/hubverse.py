"""Forecasts in the format of the Hubverse: a row per task and class or level becomes a row per task."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prudent.arrays import AnyArray, FloatArray
from prudent.cases.file_sets import Names, Reading, quoted_name, quoted_text
from prudent.cases.file_table import NUMBERED, FileTable, open_table
from prudent.errors import InputError

_LONG = ("output_type", "output_type_id", "value")
_MOST_WIDE = 1_000


class HubverseForecasts(NamedTuple):
    """Forecasts of tasks.

    Attributes
    ----------
    tasks : dict of str to array of shape (n,)
        Columns that name the tasks, and whatever else the files hold, as text.
    ids : tuple
        Levels of the quantiles in increasing order, or names of the classes.
    values : array of shape (n, ids)
        NaN where a task has no value.
    """

    tasks: dict[str, AnyArray]
    ids: tuple[Any, ...]
    values: FloatArray


def read_hubverse(paths: str | Names, output_type: str = "quantile", *, delimiter: str = ",") -> HubverseForecasts:
    """Read Hubverse files: CSV or Parquet with the columns ``output_type``, ``output_type_id`` and ``value``.

    Parameters
    ----------
    paths : str or sequence of str
        Files, globs and folders.
    output_type : {"quantile", "pmf"}
    delimiter : str
        Between the cells of CSV.
    """
    with open_table(paths, reading=Reading(delimiter, hubverse=output_type)) as table:
        names, quantiles = [name for name in table.columns if name not in table.wide], output_type == "quantile"
        ids = sorted(table.wide, key=float) if quantiles else table.wide
        found = table.table([*map(table.number, ids), *map(table.cell, names)])
        columns = [found.column(j).to_numpy(zero_copy_only=False) for j in range(found.num_columns)]
        values = np.stack(columns[: len(ids)], axis=1)
        for row, column in np.argwhere(np.isinf(values)).tolist():
            raise InputError(f"{table.at(row, ids[column])}: {table.written(row, ids[column])!r} is not a number.")
    tasks = dict(zip(names, columns[len(ids) :], strict=True))
    return HubverseForecasts(tasks, tuple(map(float, ids) if quantiles else ids), values)


def write_wide(table: FileTable, output_type: str, target: Path) -> tuple[str, ...]:
    """Write one row of CSV for each task, in their order, with a column per id of an output type; return the ids."""
    kind, given, value = map(table.cell, _LONG)
    given = f"CAST({given} AS VARCHAR)"
    tasks = [table.cell(column) for column in table.columns if column not in _LONG]
    wanted = f"{kind} = {quoted_text(output_type)}"
    rows = f"{NUMBERED} WHERE {wanted}"
    found = table.ask(f"SELECT {given} FROM {rows} GROUP BY 1 ORDER BY min(prudent_row) LIMIT {_MOST_WIDE + 1}")
    ids = [name for (name,) in found]
    if not ids or len(ids) > _MOST_WIDE or None in ids or set(ids) & set(table.columns):
        raise InputError(
            f"{table.name}: rows of output_type {output_type!r} must have 1 to {_MOST_WIDE:,} different output_type_id "
            f"that are no names of columns; there are {len(ids):,}: {ids[:5]}."
        )
    for first, again in table.repeated([*tasks, given], wanted):
        raise InputError(f"{table.at(again, *_LONG[:2])}: the task has this id already in {table.at(first)}.")
    wide = [f"max({value}) FILTER ({given} = {quoted_text(name)}) AS {quoted_name(name)}" for name in ids]
    grouped = f"SELECT {', '.join([*tasks, *wide])} FROM {rows} GROUP BY ALL ORDER BY min(prudent_row)"
    table.fetch(lambda opened: opened.query("rows", grouped).write_csv(str(target), header=True))
    return tuple(ids)
