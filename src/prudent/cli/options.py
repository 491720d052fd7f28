"""Options that several commands share, and what ``--json`` does."""

import json
from typing import Annotated, Any, Literal

import typer

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES", help="CSV or Parquet: files, folders, globs; - is standard input.", show_default=False
    ),
]
ProblemFile = Annotated[
    str, typer.Option("--problem", metavar="TOML", help="The decision problem; prudent init writes one.")
]
Forecast = Annotated[
    list[str],
    typer.Option("--forecast", metavar="COL", help="Column of forecasts; once per coordinate or class, in order."),
]
_OUTCOME = typer.Option(
    "--outcome", metavar="COL", help="Column of outcomes; once per coordinate, or one of class labels."
)
Outcome = Annotated[list[str], _OUTCOME]
OptionalOutcome = Annotated[list[str] | None, _OUTCOME]
GuaranteeName = Annotated[
    str | None,
    typer.Option("--guarantee", metavar="NAME", help="Such as self-orthogonal, bins:20 or unbiased+polynomial:2."),
]
Weight = Annotated[str | None, typer.Option("--weight", metavar="COL", help="Column of weights.")]
Period = Annotated[
    str | None,
    typer.Option("--period", metavar="COL", help="Column of periods; only rows of one period depend on each other."),
]
Every = Annotated[
    Literal["day", "week", "month", "quarter", "year"] | None,
    typer.Option("--every", help="Where --period is a column of dates: how long a period is."),
]
ConfidenceLevel = Annotated[float, typer.Option("--confidence", help="Of everything that is measured.")]
SlackText = Annotated[
    str | None,
    typer.Option(
        "--slack",
        metavar="NUMBER|audit",
        help="How far the guarantee may be off; audit measures it, the default where there are outcomes; else 0.",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        help="Gains up to this do not matter; by default a tenth of what the forecast promises over the best single "
        "action.",
    ),
]
Pure = Annotated[bool, typer.Option("--pure", help="The best rule without randomness.")]
Missing = Annotated[Literal["refuse", "drop"], typer.Option("--missing", help="What to do with rows without outcome.")]
Delimiter = Annotated[str, typer.Option("--delimiter", help="Between cells of CSV: one character, or tab.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


def show(document: dict[str, Any], text: str, as_json: bool) -> None:
    """Print a result as text, or as one JSON document."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else text)
