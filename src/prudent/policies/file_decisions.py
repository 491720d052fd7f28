"""Decide for the rows of files: a chunk at a time, or in DuckDB where they are large or many."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prudent.errors import EngineError, InputError
from prudent.files import whole_path
from prudent.policies.base import Policy
from prudent.policies.batches import Decisions, decide_rows, mixtures_of_chunk, output_labels, require_decidable
from prudent.policies.in_tables import decide_table
from prudent.spaces import Label
from prudent.tables import Columns, open_table, show_passes
from prudent.tables.engine import collect, speaking
from prudent.tables.file_sets import belongs_in_engine, find_files, quoted_name, quoted_text
from prudent.tables.given import lazy_columns
from prudent.tables.output import require_output
from prudent.tables.passes import run_pass
from prudent.tables.rows import BAD, SNAPPED, place_rows

__all__ = ["decide_files"]

_ACTION = "the action of a row"  # no file has a column of this name


def decide_files(
    policy: Policy,
    paths: Sequence[str],
    forecasts: Sequence[str],
    output: str,
    *,
    id_column: str | None = None,
    seed: int | None = None,
    probabilities: bool = False,
    delimiter: str = ",",
    not_over: Sequence[str] = (),
    progress: Callable[[int, int | None], None] | None = None,
) -> Decisions:
    """Write one action per row of files, in their order; the same actions wherever they are computed.

    DuckDB decides for several files, globs, folders and large files. A seed, probabilities and policies that cannot be
    written as SQL need a single file, which is then read in chunks.

    Parameters
    ----------
    policy : Policy
        Fitted.
    paths : sequence of str
        CSV or Parquet; ``-`` is standard input.
    forecasts, output, id_column, seed, probabilities, not_over
        As in :func:`prudent.policies.decide_rows`.
    delimiter : str
        Between the cells of CSV.
    progress : callable, optional
        Called after each chunk, as in :func:`prudent.policies.decide_rows`; DuckDB shows passes instead.
    """
    named = require_decidable(policy, forecasts, id_column, seed)
    if belongs_in_engine(paths):
        files = find_files(paths)
        obstacle = _obstacle(policy, named, id_column, seed, probabilities)
        if obstacle is None:
            columns = lazy_columns(files, policy._problem.space, named, id_column=id_column, delimiter=delimiter)
            with show_passes("decide", columns.connection):
                return _Work(policy, columns, delimiter).decide(output, (*files, *not_over))
        if files != tuple(paths) or len(files) > 1:
            raise InputError(f"several files are decided in DuckDB, and {obstacle}. Decide for one file at a time.")
    with open_table(paths[0], delimiter=delimiter) as table:
        return decide_rows(
            policy,
            table,
            named,
            output,
            id_column=id_column,
            seed=seed,
            probabilities=probabilities,
            not_over=(*paths, *not_over),
            progress=progress,
        )


def _obstacle(
    policy: Policy, forecasts: Sequence[str], id_column: str | None, seed: int | None, probabilities: bool
) -> str | None:
    """Say why DuckDB cannot decide, or None."""
    if probabilities:
        return "--probabilities writes what is computed in memory"
    if seed is not None and not policy.deterministic:
        return "--seed draws by the order of rows, which takes one row after the other"
    if id_column is not None and id_column.lower() == "action":
        return f"DuckDB cannot tell the column of ids, {id_column!r}, from that of actions; rename it"
    try:
        policy.to_sql("duckdb", list(forecasts), key=id_column)
    except InputError as error:
        return f"this policy has no SQL: {str(error).rstrip('.')}"
    return None


@dataclass(frozen=True, eq=False)
class _Work:
    """One table of files, decided in DuckDB."""

    policy: Policy
    columns: Columns
    delimiter: str

    def decide(self, output: str, not_over: Sequence[str]) -> Decisions:
        """Check all rows, write all actions to a file that then takes its name, and count them."""
        import duckdb

        parquet = require_output(output, not_over) == "parquet"
        try:
            n_rows, n_snapped = self._checked()
            with _file_for(output) as written:
                self._write(written, parquet=parquet)
                counts = self._counted(written, parquet=parquet)
        except EngineError as error:
            if isinstance(error.__cause__, (duckdb.InvalidInputException, duckdb.ConversionException)):
                self._name_bad_row()
            raise
        return Decisions(n_rows, counts, n_snapped)

    def _checked(self) -> tuple[int, int]:
        """Count rows and those that were snapped; refuse bad forecasts, and ids that are missing or not distinct."""
        import narwhals.stable.v2 as nw

        columns = self.columns
        placed = place_rows(columns, self.policy._problem.space, careful=True)
        states = placed.frame.select("state").group_by("state").agg(nw.len().alias("rows"))
        found = collect(states, "checking forecasts")
        rows = dict(zip(found["state"].tolist(), found["rows"].tolist(), strict=True))
        if not rows:
            raise InputError(f"{self._name}: there are no rows below the column names.")
        if BAD in rows:
            self._name_bad_row()
            placed.refuse()
        if columns.id is not None:
            self._require_distinct(columns.id)
        return int(sum(rows.values())), int(rows.get(SNAPPED, 0))

    def _require_distinct(self, key: str) -> None:
        """Refuse ids by which rows cannot be told apart."""
        import narwhals.stable.v2 as nw

        place = f"{self._name}, column {key!r}"
        kind = self.columns.frame.collect_schema()[key]
        if not kind.is_integer() and kind != nw.String:
            raise InputError(f"{place}: ids must be text or whole numbers; cast them first.")
        ids = self.columns.frame.select(nw.col(key).alias("id"))
        missing = collect(ids.select(nw.col("id").is_null().sum()), "looking for missing ids")["id"][0]
        if missing:
            self._name_bad_row()
        shared = ids.group_by("id").agg(nw.len().alias("rows")).filter(nw.col("rows") > 1).head(1)
        found = collect(shared, "looking for ids that repeat")
        if len(found["id"]):
            raise InputError(
                f"{place}: {found['rows'][0]:,} rows have the id {found['id'][0]!s}; ids must differ, or rows share "
                f"one draw."
            )

    def _write(self, path: Path, *, parquet: bool) -> None:
        """Let DuckDB write ids and actions, in the order of rows."""
        kept = [] if self.columns.id is None else [quoted_name(self.columns.id)]
        action = f'{self._written(parquet=parquet)} AS "action"'
        options = "FORMAT parquet" if parquet else "FORMAT csv, HEADER true"
        command = f"COPY decided TO {quoted_text(str(path))} ({options}, USE_TMP_FILE false)"

        def write() -> None:
            decided = decide_table(self.policy, self.columns, _ACTION)
            decided.project(", ".join([*kept, action])).create_view("decided")
            self.columns.connection.execute(command)

        with speaking("writing actions"):
            run_pass(write, "writing actions")

    def _written(self, *, parquet: bool) -> str:
        """Write actions as :func:`prudent.policies.decide_rows` does."""
        labels, action = output_labels(self.policy), quoted_name(_ACTION)
        if labels.dtype.kind == "i":
            return f"CAST({action} AS BIGINT)"
        if labels.dtype.kind != "f" or parquet:
            return action
        pairs = zip(labels.tolist(), self._texts, strict=True)
        cases = [f"WHEN CAST({label!r} AS DOUBLE) THEN {quoted_text(text)}" for label, text in pairs]
        return f"CASE {action} {' '.join(cases)} END"

    @property
    def _texts(self) -> list[str]:
        """Actions as CSV has them."""
        import pyarrow as pa

        labels = output_labels(self.policy)
        return list(pa.array(labels).cast(pa.string()).to_pylist())

    def _counted(self, path: Path, *, parquet: bool) -> dict[Label, int]:
        """Count actions in what was written."""
        source = f"read_parquet({quoted_text(str(path))})"
        if not parquet:
            names = ["action"] if self.columns.id is None else [self.columns.id, "action"]
            layout = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in names)
            source = f"read_csv({quoted_text(str(path))}, columns = {{{layout}}}, auto_detect = false, header = true)"
        command = f"SELECT action, count(*) FROM {source} GROUP BY action"  # noqa: S608  # all is quoted
        with speaking("counting actions"):
            found = run_pass(lambda: self.columns.connection.execute(command).fetchall(), "counting actions")
        counts = {"" if action is None else action: int(count) for action, count in found}
        written = output_labels(self.policy).tolist() if parquet else self._texts
        return {label: counts.get(value, 0) for label, value in zip(self.policy._problem.actions, written, strict=True)}

    def _name_bad_row(self) -> None:
        """Read the files as one reads in memory, until a row raises an error that names its place."""
        values = () if self.columns.id is None else (self.columns.id,)
        for file in self.columns.files:
            with open_table(file, delimiter=self.delimiter) as table:
                for chunk in table.chunks(self.columns.forecasts, values):
                    mixtures_of_chunk(self.policy, table, self.columns.forecasts, chunk)

    @property
    def _name(self) -> str:
        return self.columns.files[0] if len(self.columns.files) == 1 else f"{len(self.columns.files):,} files"


@contextmanager
def _file_for(output: str) -> Iterator[Path]:
    """Hand out a file to fill; it takes the output's name, or is printed, when all of it is written."""
    if output != "-":
        with whole_path(output) as path:
            yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "actions.csv"
        yield path
        with path.open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
        sys.stdout.buffer.flush()
