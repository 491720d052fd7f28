"""Decide for all rows of files, some at a time, however many there are; written whole or not at all."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import AnyArray, Context, FloatArray
from prudent.cases.cases import require_forecast_columns
from prudent.cases.file_rows import FileNumbers
from prudent.cases.file_sets import Names, Roles, quoted_text
from prudent.cases.file_table import FileTable, open_table
from prudent.errors import InputError
from prudent.files import whole_file
from prudent.formatting import Printable
from prudent.policies.base import Policy, action_labels
from prudent.policies.horizons import RunningBounds
from prudent.spaces import Label

_SPECIAL = re.compile('[",\r\n]')


@dataclass(frozen=True, repr=False)
class Decisions(Printable):
    """What was decided.

    Attributes
    ----------
    n_rows : int
    counts : dict of label to int
        How many rows got each action, in declared order.
    n_snapped : int
        Rows moved onto the space by at most 1e-6 of its width.
    certificates : tuple of UtilityBound or Certificate
        What the rule is certain to earn on these rows, where it knows past outcomes or a guarantee.
    """

    n_rows: int
    counts: dict[Label, int]
    n_snapped: int
    certificates: tuple[Any, ...] = ()

    def __str__(self) -> str:
        counts = ", ".join(f"{label} {count:,}" for label, count in self.counts.items())
        return f"{self.n_rows:,} rows decided: {counts}"


def decide_files(
    policy: Policy,
    paths: str | Names,
    forecasts: Names,
    output: str,
    *,
    id_column: str | None = None,
    seed: int | None = None,
    probabilities: bool = False,
    delimiter: str = ",",
    not_over: Names = (),
    progress: Callable[[int, int], None] | None = None,
) -> Decisions:
    """Write one action per row of files, in their order.

    Draws come from the ids, exactly as in ``policy.predict(X, keys=ids)``, or from a seed and the row's place, as in
    ``predict`` with ``random_state=seed``; in neither case do they depend on how many rows are decided at a time.

    Parameters
    ----------
    policy : Policy
        Fitted.
    paths : str or sequence of str
        CSV or Parquet: files, globs, folders; ``-`` is standard input.
    forecasts : sequence of str
        Columns, one per coordinate or class.
    output : str
        A file that ends in .csv or .parquet, written whole or not at all; ``-`` is standard output.
    id_column : str, optional
        Text or whole numbers, distinct; written to the output as they are.
    seed : int, optional
        For a policy that mixes actions, where there are no ids.
    probabilities : bool
        Write the mixture of each row, too.
    delimiter : str
        Between the cells of CSV.
    not_over : sequence of str
        Further files that the output must not replace.
    progress : callable, optional
        Called with the numbers of rows decided so far and of all rows.
    """
    _require_decidable(policy, forecasts, id_column, seed)
    columns = tuple(forecasts)
    labels, actions, drawer = _output_labels(policy), policy._problem.actions, copy(policy)
    # One stream of numbers for all rows: where they are cut makes no difference.
    drawer.random_state, drawer._draws = seed, {}
    counts, done, snapped = np.zeros(len(actions), dtype=np.int64), 0, 0
    bounds = RunningBounds(policy)
    with (
        open_table(paths, delimiter=delimiter) as table,
        _open_output(output, (*not_over, *table.files)) as write,
    ):
        import pyarrow as pa

        ids = [] if id_column is None else [id_column]
        roles: Roles = dict.fromkeys([*ids, *policy.columns], "name") | dict.fromkeys(columns, "number")
        total = _checked_count(table, columns, id_column, roles)
        for batch in table.batches([*map(table.number, columns), *map(table.cell, [*ids, *policy.columns])], roles):
            points = np.stack([batch.column(j).to_numpy(zero_copy_only=False) for j in range(len(columns))], axis=1)
            cells = [np.array(held.to_pylist(), dtype=object) for held in batch.columns[len(columns) + len(ids) :]]
            context = dict(zip(policy.columns, cells, strict=True))
            placed, mixtures, moved = _mixtures(policy, table, columns, points, done, context)
            keys = None if id_column is None else _ids(batch.column(len(columns)), table, id_column)
            bounds.add(placed, mixtures, context)
            drawn = drawer._draw(mixtures, keys)
            written = dict.fromkeys(ids, keys) | {"action": labels[drawn]}
            if probabilities:
                written |= {f"p[{label}]": mixtures[:, j] for j, label in enumerate(actions)}
            write(pa.table({name: pa.array(values) for name, values in written.items()}))
            counts += np.bincount(drawn, minlength=len(actions))
            done, snapped = done + len(points), snapped + moved
            if progress is not None:
                progress(done, total)
    shares = dict(zip(actions, counts.tolist(), strict=True))
    return Decisions(done, shares, snapped, bounds.certificates())


def _require_decidable(policy: Policy, forecasts: Names, id_column: str | None, seed: int | None) -> None:
    """Check a policy and columns before any row is read."""
    check_is_fitted(policy)
    require_forecast_columns(forecasts, policy._problem.space)
    fitted = list(getattr(policy, "feature_names_in_", ()))
    if set(fitted) == set(forecasts) and fitted != list(forecasts):
        raise InputError(f"forecast columns must be in the order of the fit, {fitted}; got {list(forecasts)}.")
    if id_column is None and seed is None and not policy.deterministic:
        raise InputError(
            "this policy mixes actions, so its draws need a key for each row: give --id COL, or --seed N to draw by "
            "the order of rows, or fit with --pure for a policy without draws."
        )
    if id_column == "action":
        raise InputError("the column of ids must not be named 'action': the output has a column of that name.")


def _checked_count(table: FileTable, columns: Names, id_column: str | None, roles: Roles) -> int:
    """Count the rows; refuse ids that are missing or not distinct."""
    cells = [f"count({table.cell(column)})" for column in columns]
    key = table.cell(id_column) if id_column is not None else ""
    cells += [f"count({key}), count(DISTINCT hash({key}))"] if key else []

    def count(rows: Any) -> tuple[int, ...]:
        return tuple(rows.aggregate(", ".join(["count(*)", *cells])).fetchall()[0])

    found = table.fetch(count, roles)
    if found[0] == 0:
        table.count()
    if key and found[-2] < found[0]:
        row = table.rows_where(f"{key} IS NULL", roles, 1)[0]
        raise InputError(f"{table.at(row, str(id_column))}: the cell is empty.")
    if key and found[-1] < found[0]:
        shared = table.fetch(
            lambda rows: rows.aggregate(f"{key} AS id, count(*) AS n").filter("n > 1").order("id").limit(1).fetchall(),
            roles,
        )
        for value, _ in shared:  # none where only hashes are the same
            literal = str(value) if isinstance(value, int) else quoted_text(str(value))
            earlier, later = table.rows_where(f"{key} = {literal}", roles, 2)
            raise InputError(
                f"{table.at(later, str(id_column))}: the id is that of {table.at(earlier)}; ids must differ, or two "
                f"rows share one draw."
            )
    return found[0]


def _mixtures(
    policy: Policy, table: FileTable, columns: Names, points: FloatArray, first: int, context: Context
) -> tuple[FloatArray, FloatArray, int]:
    """Return forecasts on the space, mixtures, and how many were snapped; errors name the first bad row."""
    space, rows = policy._problem.space, np.arange(first, first + len(points))
    numbers = FileNumbers(table, space, columns, (), None, points, rows)
    numbers.require_usable()
    placed, moved = space.place(points, "forecasts")
    with numbers.naming_rows():
        return placed, policy._mixtures(placed, context), moved


def _ids(column: Any, table: FileTable, name: str) -> AnyArray:
    import pyarrow as pa

    if not any(test(column.type) for test in (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)):
        raise InputError(f"{table.name}, column {name!r}: ids must be text or whole numbers; cast them first.")
    return column.to_numpy(zero_copy_only=False)


def _output_labels(policy: Policy) -> AnyArray:
    """Labels as one type that a file has; labels of different types become text."""
    labels = action_labels(policy._problem)
    if labels.dtype.kind in "iufb":
        return labels
    texts = [str(label) for label in policy._problem.actions]
    if len(set(texts)) < len(texts):
        raise InputError(
            f"actions must differ as text to be written to a file; they are {list(policy._problem.actions)}."
        )
    return np.array(texts, dtype=object)


@contextmanager
def _open_output(path: str, not_over: Names) -> Iterator[Callable[[Any], None]]:
    """Open a table for writing: a function that appends the rows of an Arrow table."""
    if path == "-":
        yield _csv_writer(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if target.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise InputError(f"{path}: the output must end in .csv or .parquet, or be - for standard output.")
    if target.exists() and any(Path(other).exists() and target.samefile(other) for other in not_over):
        raise InputError(f"{path}: the output must not replace a file that is being read.")
    with whole_file(path) as stream, ExitStack() as opened:  # a writer is closed after an error, too
        if target.suffix.lower() == ".csv":
            yield _csv_writer(stream)
            return
        from pyarrow.parquet import ParquetWriter

        writers: list[Any] = []

        def write(rows: Any) -> None:
            if not writers:
                writers.append(opened.enter_context(ParquetWriter(stream, rows.schema)))
            writers[0].write_table(rows)

        yield write


def _csv_writer(stream: BinaryIO) -> Callable[[Any], None]:
    """Write CSV with quotes only around cells that need them; the module csv does not quote a carriage return."""
    started = False

    def write(rows: Any) -> None:
        nonlocal started
        lines = [*zip(*(column.cast("string").to_pylist() for column in rows.columns), strict=True)]
        texts = [",".join(map(_quoted, line)) + "\n" for line in (lines if started else [rows.column_names, *lines])]
        stream.write("".join(texts).encode("utf-8"))
        started = True

    return write


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if not cell or _SPECIAL.search(cell) else cell
