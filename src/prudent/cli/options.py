"""Options that several commands share: those of cases, read and shown in one way; and what ``--json`` does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option, echo

from prudent.errors import InputError

if TYPE_CHECKING:
    from prudent.cases.cases import Cases
    from prudent.cases.file_sets import Reading
    from prudent.problem import DecisionProblem

_OUTCOME = Option(metavar="COL", help="Column of outcomes; once per coordinate, or one of class labels.")
GuaranteeName = Annotated[
    str | None,
    Option(metavar="NAME", help="Such as self-orthogonal, bins:20, unbiased+polynomial:2 or within:region:unbiased."),
]
SlackText = Annotated[
    str | None,
    Option(
        metavar="NUMBER|audit",
        help="How far the guarantee may be off; audit measures it, the default where there are outcomes; else 0.",
    ),
]
Tolerance = Annotated[
    float | None,
    Option(
        help="Gains up to this do not matter; by default a tenth of what the forecast promises over the best single "
        "action."
    ),
]
Capacity = Annotated[
    list[str] | None,
    Option(
        metavar="ACTION=N|N%",
        help="At most so many rows of these files get the action, such as treat=100 or treat=20%.",
    ),
]
Pure = Annotated[bool, Option("--pure", help="The best rule without randomness.")]
AsJson = Annotated[bool, Option("--json", help="Print the result as JSON, and nothing else.")]


@dataclass(kw_only=True)
class FileOptions:
    """What every command that reads files is asked: where they are, how they are written, how to print."""

    command: str
    files: Annotated[
        list[str],
        Argument(
            metavar="FILES",
            help="CSV, Parquet or Excel: files, folders, globs; - is standard input.",
            show_default=False,
        ),
    ]
    forecast: Annotated[
        list[str], Option(metavar="COL", help="Column of forecasts; once per coordinate or class, in order.")
    ]
    missing: Annotated[
        Literal["refuse", "drop"], Option(help="What to do with rows without outcome; in decide, without forecast.")
    ] = "refuse"
    outside: Annotated[Literal["refuse", "clip"], Option(help="Move forecasts outside the outcome space onto it.")] = (
        "refuse"
    )
    delimiter: Annotated[str, Option(help="Between cells of CSV: one character, or tab.")] = ","
    decimal: Annotated[Literal[".", ","], Option(help="The decimal mark of CSV.")] = "."
    hubverse: Annotated[
        Literal["pmf", "quantile"] | None,
        Option(help="Read Hubverse files; each output_type_id of this output_type is a column."),
    ] = None
    as_json: AsJson = False

    def __post_init__(self) -> None:
        self.clipped = 0  # forecasts that were moved onto the space

    @property
    def reading(self) -> Reading:
        """How the files are written."""
        from prudent.cases.file_sets import Reading

        return Reading(self.delimiter, self.decimal, self.hubverse)

    @property
    def said(self) -> str:
        """Say how many forecasts were clipped, if that was asked for."""
        return f"Forecasts outside the outcome space that were moved onto it: {self.clipped:,}." if self.clipped else ""

    def show(self, document: dict[str, Any], text: str) -> None:
        """Print a result as text, or as one JSON document."""
        if self.outside == "clip":
            document = {**document, "rows_clipped": self.clipped}
        show(document, "\n".join(filter(None, [text, self.said])), self.as_json)


@dataclass(kw_only=True)
class CaseOptions(FileOptions):
    """What commands about cases are asked, too: which columns there are, and how to measure."""

    outcome: Annotated[list[str], _OUTCOME]
    problem: Annotated[str, Option(metavar="TOML", help="The decision problem; prudent init writes one.")] = (
        "problem.toml"
    )
    weight: Annotated[str | None, Option(metavar="COL", help="Column of weights.")] = None
    period: Annotated[
        str | None, Option(metavar="COL", help="Column of periods; only rows of one period depend on each other.")
    ] = None
    every: Annotated[
        Literal["day", "week", "month", "quarter", "year"] | None,
        Option(help="Where --period is a column of dates: how long a period is."),
    ] = None
    context: Annotated[
        list[str] | None, Option(metavar="COL", help="Column known at decision time; repeatable. For within:COL:NAME.")
    ] = None
    confidence: Annotated[float, Option(help="Of everything that is measured.")] = 0.95

    @contextmanager
    def opened(self, *guarantees: str | None, in_memory: bool = False) -> Iterator[tuple[DecisionProblem, Cases]]:
        """Read the problem and the cases; errors about rows inside the block name their place in the file.

        Names of guarantees are checked before files are read. Several files and large ones stay in DuckDB, unless they
        are needed ``in_memory``. Passes over them, and what is worked on, are shown.
        """
        from prudent.cases.file_rows import read_sample, use_columns
        from prudent.cases.file_table import open_table
        from prudent.cases.scan import scan
        from prudent.guarantees.names import read_guarantee
        from prudent.problem import read_problem
        from prudent.progress import show_steps

        decision = read_problem(self.problem)
        columns = self.forecast, self.outcome or (), self.weight
        shared: dict[str, Any] = {"every": self.every, "context": self.context or (), "missing": self.missing}
        for name in filter(None, guarantees):
            read_guarantee(name, decision)
        with open_table(self.files, reading=self.reading) as table, show_steps(self.command):
            if table.is_large and self.outside == "refuse" and not in_memory:
                use_columns(table, decision.space, *columns)
                table.count()  # what DuckDB does not take is named, or rewritten
                shared |= {"weights": self.weight, "periods": self.period}
                yield decision, scan(table, self.forecast, self.outcome or None, **shared)
                return
            sample = read_sample(table, decision.space, *columns, self.period, outside=self.outside, **shared)
            self.clipped = sample.numbers.n_clipped
            with sample.numbers.naming_rows():
                yield decision, sample.cases


@dataclass(kw_only=True)
class UnknownOutcomes(CaseOptions):
    """The same where outcomes need not be known."""

    outcome: Annotated[list[str] | None, _OUTCOME] = None  # type: ignore[assignment]


def on_cases(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of cases as one object before its own, which replace those of the same name."""
    (_, first), *rest = signature(command, eval_str=True).parameters.items()
    own, shared = dict(rest), dict(list(signature(first.annotation, eval_str=True).parameters.items())[1:])
    order = [*list(shared)[:4], *own, *shared]

    def run(**options: Any) -> Any:
        given = first.annotation(command=command.__name__, **{name: options[name] for name in shared})
        return command(given, **{name: options[name] for name in own})

    parameters = [(shared | own)[name].replace(kind=Parameter.KEYWORD_ONLY) for name in dict.fromkeys(order)]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__module__, run.__name__, run.__doc__ = command.__module__, command.__name__, command.__doc__
    return run


def slack_from_text(text: str | None, outcome: Sequence[str] | None) -> float | str:
    """Read ``--slack``: outcomes that are given are used unless a number is."""
    if text == "audit" and not outcome:
        raise InputError("--slack audit measures the slack on outcomes: give --outcome COL, too.")
    if text in (None, "audit"):
        return "audit" if outcome else 0.0
    try:
        return float(str(text))
    except ValueError as error:
        raise InputError(f"--slack must be a number or the word audit; got {text!r}.") from error


def show(document: dict[str, Any], text: str, as_json: bool) -> None:
    """Print a result as text, or as one JSON document."""
    echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else text)
