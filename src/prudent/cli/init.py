"""``prudent init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prudent.errors import InputError

__all__ = ["init"]


def init(
    path: Annotated[str, typer.Argument(metavar="TOML", help="Where to write; - prints it.")] = "problem.toml",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented decision problem to start from."""
    from prudent.files import whole_file
    from prudent.problem import EXAMPLE_PROBLEM

    if path == "-":
        typer.echo(EXAMPLE_PROBLEM, nl=False)
        return
    if Path(path).exists() and not force:
        raise InputError(f"{path}: the file exists; --force replaces it.")
    with whole_file(path) as stream:
        stream.write(EXAMPLE_PROBLEM.encode("utf-8"))
    typer.echo(f"Wrote {path}. Edit it, then: prudent audit FILE --problem {path} --forecast COL --outcome COL")
