"""From option texts to the library's objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from prudent.errors import InputError

if TYPE_CHECKING:
    from prudent.cases.cases import Cases
    from prudent.problem import DecisionProblem


def delimiter_from_text(text: str) -> str:
    """Read ``--delimiter``."""
    return {"tab": "\t", "\\t": "\t"}.get(text, text)


@contextmanager
def opened_cases(
    command: str,
    options: Mapping[str, Any],
    *,
    guarantees: Sequence[str | None] = (),
    in_memory: bool = False,
) -> Iterator[tuple[DecisionProblem, Cases]]:
    """Read the problem and the cases of a command; errors about rows inside the block name their place in the file.

    ``options`` are those of the command: its problem, files, delimiter and columns, and what else it has. Names of
    guarantees are checked before files are read. Several files and large ones stay in DuckDB, unless they are
    needed ``in_memory``, and passes over them are shown.
    """
    from prudent.cases.cases import Cases
    from prudent.cases.engine import show_passes
    from prudent.cases.file_rows import read_sample
    from prudent.cases.file_sets import belongs_in_engine, find_files
    from prudent.cases.file_table import FileTable, open_table
    from prudent.cases.scan import scan
    from prudent.guarantees.names import read_guarantee
    from prudent.problem import read_problem
    from prudent.progress import show_steps

    files, forecast, outcome = options["files"], options["forecast"], options["outcome"] or ()
    weight, period, every = (options.get(name) for name in ("weight", "period", "every"))
    missing = options.get("missing", "refuse")
    decision, between = read_problem(options["problem"]), delimiter_from_text(options["delimiter"])
    space = decision.space
    for name in filter(None, guarantees):
        read_guarantee(name, decision)
    if not in_memory and belongs_in_engine(files):
        table = FileTable(find_files(files), delimiter=between)
        named: dict[str, Any] = {"weights": weight, "periods": period, "every": every, "missing": missing}
        cases = scan(table, forecast, outcome or None, **named)
        with show_passes(command, cases.connection):
            yield decision, cases
        return
    with open_table(files, delimiter=between) as table:
        sample = read_sample(table, space, forecast, outcome, weight, period, missing=missing)
        with sample.numbers.naming_rows(), show_steps(command, wanted=command == "fit"):
            columns: dict[str, Any] = {"weights": sample.weights, "periods": sample.periods, "every": every}
            yield decision, Cases(sample.forecasts, sample.outcomes, **columns, missing=missing)


def slack_from_text(text: str | None, outcome: Sequence[str] | None) -> float | str:
    """Read ``--slack``: outcomes that are given are used unless a number is."""
    if text is None:
        return "audit" if outcome else 0.0
    if text == "audit":
        if not outcome:
            raise InputError("--slack audit measures the slack on outcomes: give --outcome COL, too.")
        return text
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"--slack must be a number or the word audit; got {text!r}.") from error


@contextmanager
def steps_shown(command: str, steps: int) -> Iterator[Callable[[str], None]]:
    """Say which of several steps is worked on."""
    from prudent.progress import ProgressLine

    seen = count(1)
    with closing(ProgressLine(command, wanted=True)) as line:
        yield lambda name: line.show(next(seen), steps, name)
