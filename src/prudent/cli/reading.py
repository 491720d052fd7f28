"""From option texts to the library's objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prudent.errors import InputError

if TYPE_CHECKING:
    from prudent.problem import DecisionProblem
    from prudent.tables import GivenRows, Sample

__all__ = ["delimiter_from_text", "opened_rows", "opened_sample", "slack_from_text"]


def delimiter_from_text(text: str) -> str:
    """Read ``--delimiter``."""
    return {"tab": "\t", "\\t": "\t"}.get(text, text)


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
    from prudent.tables import open_table, read_sample

    with open_table(file, delimiter=delimiter_from_text(delimiter)) as table:
        sample = read_sample(table, problem.space, forecast, outcome or (), weight, group, missing=missing)
        with sample.naming_rows():
            yield sample


@contextmanager
def opened_rows(
    what: str,
    files: Sequence[str],
    delimiter: str,
    problem: DecisionProblem,
    forecast: Sequence[str],
    outcome: Sequence[str] | None,
    weight: str | None = None,
    group: str | None = None,
    missing: str = "refuse",
) -> Iterator[GivenRows]:
    """Read the columns that a command works on, or leave them in DuckDB and show the passes over them."""
    from prudent.tables import read_rows, show_passes

    columns = (forecast, outcome or (), weight, group)
    between = delimiter_from_text(delimiter)
    with (
        read_rows(files, problem.space, *columns, missing=missing, delimiter=between) as rows,
        show_passes(what, rows.connection),
    ):
        yield rows


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
