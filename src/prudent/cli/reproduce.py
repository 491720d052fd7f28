"""``prudent reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["reproduce"]


def reproduce(
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with bike_sharing_day.csv and cal_housing.data[.gz].")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Random splits; 20 by default, 2 with --quick.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller data and grids: under a minute.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result alone, as JSON.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for JSON, Markdown, figures and finished seeds."),
    ] = None,
    other_data: Annotated[
        bool, typer.Option("--other-data", help="Accept files with the right columns and other rows than published.")
    ] = False,
) -> None:
    """Run the paper's experiments and what the exact policy adds; interrupted runs continue."""
    from prudent.errors import FileFormatError, InputError, MissingExtraError
    from prudent.experiments import run_reproduction

    try:
        found = run_reproduction(
            data_dir,
            seeds=seeds,
            quick=quick,
            other_data=other_data,
            keep=None if output is None else output / "seeds",
            progress=True,
        )
        typer.echo(found.to_json() if json else str(found))
        if output is not None:
            for path in found.save(output):
                typer.echo(f"wrote {path}", err=True)
    except (InputError, FileFormatError, MissingExtraError, OSError) as error:
        typer.echo(f"prudent reproduce: {error}", err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        typer.echo("prudent reproduce: interrupted; finished seeds are kept, run it again to continue.", err=True)
        sys.exit(130)
