"""``prudent decide``."""

from contextlib import closing
from typing import Annotated

import typer

from prudent.cli.options import AsJson, Delimiter, Files, Forecast
from prudent.errors import InputError
from prudent.progress import ProgressLine


def decide(
    files: Files,
    policy: Annotated[str, typer.Option("--policy", metavar="JSON", help="What prudent fit wrote.")],
    forecast: Forecast,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Ends in .csv or .parquet; - prints CSV.")
    ],
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COL", help="Column of ids: the same id gets the same draw.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=2**32 - 1, help="Draw by the order of rows, without ids.")
    ] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Write the mixture of each row, too.")] = False,
    delimiter: Delimiter = ",",
    as_json: AsJson = False,
) -> None:
    """Write one action per row, in the order of files and rows; they may be larger than memory."""
    from prudent.cli.reading import delimiter_from_text
    from prudent.cli.rendering import print_json
    from prudent.policies import decide_files, load

    if as_json and output == "-":
        raise InputError("--json and -o - both print to standard output; give the actions a file.")
    if id_column is not None and seed is not None:
        raise InputError("--id and --seed are two sources of draws; give one of them.")
    fitted = load(policy)
    with closing(ProgressLine("decide", wanted=True)) as line:
        decisions = decide_files(
            fitted,
            files,
            forecast,
            output,
            id_column=id_column,
            seed=seed,
            probabilities=probabilities,
            delimiter=delimiter_from_text(delimiter),
            not_over=(policy,),
            progress=line.show,
        )
    if output == "-":
        return
    if as_json:
        counts = {str(label): count for label, count in decisions.counts.items()}
        snapped = {"rows_snapped": decisions.n_snapped}
        print_json({"rows": decisions.n_rows, "actions": counts, **snapped, "output": output})
        return
    shares = ", ".join(f"{label} {count / decisions.n_rows:.1%}" for label, count in decisions.counts.items())
    typer.echo(f"{decisions.n_rows:,} rows: {shares}. Wrote {output}.")
