"""Decide for all rows of files, some at a time, however many there are; written whole or not at all."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import AnyArray, Context, FloatArray
from prudent.cases.cases import Cases, require_forecast_columns
from prudent.cases.file_rows import use_columns
from prudent.cases.file_sets import PLAIN, Names, Reading, quoted_name
from prudent.cases.file_table import FileTable, open_table
from prudent.errors import InputError
from prudent.files import whole_file
from prudent.formatting import Printable
from prudent.policies import horizons
from prudent.policies.base import Policy, action_labels
from prudent.policies.capacity import Resources, within
from prudent.problem import DecisionProblem
from prudent.progress import tell
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
    n_clipped, n_dropped : int
        Rows whose forecast lay outside, and rows without forecast that were left out.
    certificates : tuple of UtilityBound or Certificate
        What the rule is certain to earn on these rows, where it knows past outcomes or a guarantee, and they are at
        most a million.
    """

    n_rows: int
    counts: dict[Label, int]
    n_snapped: int
    n_clipped: int
    n_dropped: int
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
    reading: Reading = PLAIN,
    outside: str = "refuse",
    missing: str = "refuse",
    not_over: Names = (),
    capacity: Callable[[int], Any] | None = None,
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
    reading : Reading
        How the files are written.
    outside : {"refuse", "clip"}
        Whether forecasts outside the space are moved onto it.
    missing : {"refuse", "drop"}
        Whether rows without forecast are left out.
    not_over : sequence of str
        Further files that the output must not replace.
    capacity : callable, optional
        Returns the capacity for a number of rows. The prices that meet it are found on these rows, which are then held
        in memory, and where it is of one action at most so many get that.
    """
    _require_decidable(policy, forecasts, id_column, seed, drawn=capacity is not None)
    labels, actions, drawer = _output_labels(policy), policy._problem.actions, _drawer(policy, seed)
    counts, done, snapped, clipped, seen = np.zeros(len(actions), dtype=np.int64), 0, 0, 0, 0
    space, ids = policy._problem.space, [] if id_column is None else [id_column]
    parts: list[tuple[FloatArray, Context]] = []
    with open_table(paths, reading=reading) as table, _open_output(output, (*not_over, *table.files)) as write:
        import pyarrow as pa

        roles = dict.fromkeys(ids, "id") | dict.fromkeys(policy.columns, "name")
        numbers = use_columns(table, space, forecasts, others=roles, outside=outside)
        total = _checked_count(table, forecasts, id_column)
        batches = table.batches([*numbers.expressions, *map(table.value, roles)])
        for batch in batches if capacity is None else [pa.Table.from_batches(batches).combine_chunks()]:
            found = numbers.of(batch, seen)
            known = found.rows >= 0
            if missing == "drop":
                known = np.asarray(~np.isnan(found.matrix).any(axis=1))
                found = replace(found, matrix=found.matrix[known], rows=found.rows[known])
            seen, clipped = seen + len(known), clipped + found.n_clipped
            if not known.any():
                continue
            beside = enumerate(policy.columns, len(forecasts) + len(ids))
            context = {name: np.array(batch.column(j).to_pylist(), dtype=object)[known] for j, name in beside}
            found.require_usable()
            placed, moved = space.place(found.matrix, "forecasts")
            with found.naming_rows():
                mixtures = policy._mixtures(placed, context)
            keys = None if id_column is None else _ids(batch.column(len(forecasts)), table, id_column)[known]
            limits = () if capacity is None else capacity(len(placed))
            if limits:
                policy = within(policy, Cases(placed, context=context).on(space), limits)
                mixtures = policy._mixtures(placed, context)
                drawer = _drawer(policy, seed)
            drawn = drawer._draw(mixtures, keys, exact=len(limits) == 1)
            written = dict.fromkeys(ids, keys) | {"action": labels[drawn]}
            if probabilities:
                written |= {f"p[{label}]": mixtures[:, j] for j, label in enumerate(actions)}
            write(pa.table({name: pa.array(values) for name, values in written.items()}))
            counts += np.bincount(drawn, minlength=len(actions))
            done, snapped = done + len(placed), snapped + moved
            parts = [*parts, (placed, context)] if done <= horizons.MOST_CERTIFIED else []
            tell(f"{seen:,} of {total:,}", at_once=seen == total)
        if not done:
            raise InputError(f"{table.name}: no row has a forecast.")
    shares = dict(zip(actions, counts.tolist(), strict=True))
    certificates = horizons.certificates(policy, parts) if parts else ()
    return Decisions(done, shares, snapped, clipped, seen - done, certificates)


def capacity_from_text(texts: Sequence[str] | None, problem: DecisionProblem, n_rows: int) -> dict[Label, float] | None:
    """Read limits such as ``treat=100``, of so many rows, or ``treat=20%`` as shares; None without any."""
    found, labels = {}, {str(action): action for action in problem.actions}
    for text in texts or ():
        name, _, amount = text.rpartition("=")
        try:
            share = float(amount.removesuffix("%")) / (100 if amount.endswith("%") else n_rows)
        except ValueError:
            share = -1.0
        if name not in labels or not share >= 0:
            raise InputError(
                f"capacity must be an action among {', '.join(labels)} with a number or share of the rows, such as "
                f"{next(iter(labels))}=100 or {next(iter(labels))}=20%; got {text!r}."
            )
        found[labels[name]] = share
    if found:
        Resources.read(found, problem)
    return found or None


def _drawer(policy: Policy, seed: int | None) -> Policy:
    """Copy a policy to draw by; one stream of numbers for all rows, so where they are cut makes no difference."""
    drawer: Any = copy(getattr(policy, "policy", policy))  # a recalibrated one draws as the policy behind it
    drawer.random_state, drawer._draws = seed, {}
    return drawer


def _require_decidable(
    policy: Policy, forecasts: Names, id_column: str | None, seed: int | None, *, drawn: bool
) -> None:
    """Check a policy and columns before any row is read."""
    check_is_fitted(policy)
    require_forecast_columns(forecasts, policy._problem.space)
    fitted = list(getattr(policy, "feature_names_in_", ()))
    if set(fitted) == set(forecasts) and fitted != list(forecasts):
        raise InputError(f"forecast columns must be in the order of the fit, {fitted}; got {list(forecasts)}.")
    if id_column is None and seed is None and (drawn or not policy.deterministic):
        raise InputError(
            "this policy mixes actions, so its draws need a key for each row: give --id COL, or --seed N to draw by "
            "the order of rows, or fit with --pure for a policy without draws."
        )
    if id_column == "action":
        raise InputError("the column of ids must not be named 'action': the output has a column of that name.")


def _checked_count(table: FileTable, columns: Names, id_column: str | None) -> int:
    """Count the rows; refuse ids that are missing or not distinct."""
    cells = [f"count({table.cell(column)})" for column in columns]
    key = "1" if id_column is None else table.value(id_column)
    counts = ", ".join(["count(*)", *cells, f"count({key}), count(DISTINCT hash({key}))"])
    count, *_, known, distinct = table.ask(f"SELECT {counts} FROM rows")[0]  # noqa: S608  # all is quoted
    if count == 0:
        table.count()
    if id_column is not None and known < count:
        table.refuse_empty(id_column)
    if id_column is not None and distinct < count:
        for earlier, later in table.repeated([key]):  # none where only hashes are the same
            raise InputError(
                f"{table.at(later, id_column)}: the id is that of {table.at(earlier)}; ids must differ, or two rows "
                f"share one draw."
            )
    return int(count)


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
        for line in lines if started else [rows.column_names, *lines]:
            cells = [quoted_name(cell) if not cell or _SPECIAL.search(cell) else cell for cell in line]
            stream.write((",".join(cells) + "\n").encode())
        started = True

    return write
