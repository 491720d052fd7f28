"""All commands, by name."""

from __future__ import annotations

from typing import Annotated

import typer

from prudent.cli.audit import audit
from prudent.cli.decide import decide
from prudent.cli.demo import demo
from prudent.cli.fit import fit
from prudent.cli.init import init
from prudent.cli.ladder import ladder
from prudent.cli.report import report
from prudent.cli.reproduce import reproduce
from prudent.cli.stress import stress
from prudent.cli.studio import studio

__all__ = ["application"]

application = typer.Typer(add_completion=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        from prudent import __version__

        typer.echo(f"prudent {__version__}")
        raise typer.Exit


@application.callback()
def prudent(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Act on forecasts you only half trust."""


for command in (demo, init, audit, fit, decide, stress, ladder, report, studio, reproduce):
    application.command()(command)
