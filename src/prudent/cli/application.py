"""All commands, by name."""

from __future__ import annotations

import typer

from prudent.cli.demo import demo
from prudent.cli.reproduce import reproduce

__all__ = ["application"]

application = typer.Typer(add_completion=False, no_args_is_help=True)


@application.callback()
def prudent() -> None:
    """Act on forecasts you only half trust."""


application.command()(demo)
application.command()(reproduce)
