"""The command line: parse, call one function, render."""

import io
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
    from prudent.cli.boundary import end_on_request, leave, run

    end_on_request()
    if isinstance(sys.stdout, io.TextIOWrapper):  # names that a narrow terminal cannot show must not end the work
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = run(application, sys.argv[1:])
    except SystemExit as request:  # to terminate
        code = int(request.code or 0)
    leave(code)
