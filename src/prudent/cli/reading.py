"""From option texts to the library's objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prudent.errors import InputError

if TYPE_CHECKING:
    from prudent.policies import PureRobustPolicy, RobustPolicy
    from prudent.problem import DecisionProblem
    from prudent.tables import Sample, Table

__all__ = ["fit_in_engine", "open_input", "opened_sample", "slack_from_text", "stays_in_engine"]

_LARGE = 1 << 30


@contextmanager
def open_input(file: str, delimiter: str) -> Iterator[Table]:
    """Open the table that a command reads."""
    from prudent.tables import open_table

    with open_table(file, delimiter={"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)) as table:
        yield table


@contextmanager
def opened_sample(
    file: str,
    delimiter: str,
    problem: DecisionProblem,
    forecast: Sequence[str],
    outcome: Sequence[str] | None,
    weight: str | None = None,
    group: str | None = None,
    missing: str = "refuse",
) -> Iterator[Sample]:
    """Read the columns that a command works on; errors about rows inside the block name their place in the file."""
    from prudent.tables import read_sample

    with open_input(file, delimiter) as table:
        sample = read_sample(table, problem.space, forecast, outcome or (), weight, group, missing=missing)
        with sample.naming_rows():
            yield sample


def stays_in_engine(file: str, delimiter: str) -> bool:
    """True for a glob of files, and for a file too large to be read into memory without a thought."""
    import glob
    from pathlib import Path

    if delimiter != "," or file == "-":
        return False
    path = Path(file)
    return (glob.has_magic(file) and not path.exists()) or (path.is_file() and path.stat().st_size > _LARGE)


def fit_in_engine(
    policy: PureRobustPolicy | RobustPolicy,
    file: str,
    forecast: Sequence[str],
    outcome: Sequence[str] | None,
    weight: str | None,
) -> int:
    """Fit on files that stay in DuckDB, and return the number of rows."""
    from prudent.tables import columns

    table = columns(file, forecasts=forecast, outcomes=outcome or None, weight=weight)
    policy.fit(table)
    return int(table.table.aggregate("count(*)").fetchall()[0][0])


def slack_from_text(text: str, outcome: Sequence[str] | None) -> float | str:
    """Read ``--slack``."""
    if text == "audit":
        if not outcome:
            raise InputError("--slack audit measures the slack on outcomes: give --outcome COL, too.")
        return text
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"--slack must be a number or the word audit; got {text!r}.") from error
