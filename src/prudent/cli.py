"""The command line: parse, call one function, render."""

from __future__ import annotations

import sys

from prudent.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command ``prudent``."""
    try:
        import typer
    except ImportError:
        sys.stderr.write(f"prudent: {MissingExtraError('typer', 'cli', 'the command line')}\n")
        raise SystemExit(2) from None

    application = typer.Typer(add_completion=False, no_args_is_help=True, help="Act on forecasts you only half trust.")

    @application.callback()
    def prudent() -> None:
        """Act on forecasts you only half trust."""

    @application.command()
    def demo() -> None:
        """Train a forecaster, fit the robust policy, show its certificate and stress test."""
        from prudent.experiments import run_demonstration

        typer.echo(str(run_demonstration()))

    application()
