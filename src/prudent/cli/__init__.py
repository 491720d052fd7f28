"""The command line: parse, call one function, render."""

from __future__ import annotations

import sys

from prudent.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command ``prudent``."""
    try:
        import rich
        import typer
    except ImportError as error:
        missing = MissingExtraError(error.name or "typer", "cli", "the command line")
        sys.stderr.write(f"prudent: {missing}\n")
        raise SystemExit(2) from None
    del rich, typer
    from prudent.cli.application import application
    from prudent.cli.boundary import end_on_request, run

    end_on_request()
    raise SystemExit(run(application, sys.argv[1:]))
