"""All commands by name, and those that read no rows: ``demo``, ``init`` and ``studio``."""

from pathlib import Path
from typing import Annotated

import typer

import prudent
from prudent.cli.commands import advise, audit, backtest, decide, fit, ladder, repair, report, stress
from prudent.cli.options import AsJson, show

application = typer.Typer(add_completion=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"prudent {prudent.__version__}")
        raise typer.Exit


@application.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Act on forecasts you only half trust."""


def demo(
    report: Annotated[Path | None, typer.Option(help="Also write a report page to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a forecaster: what can be said without outcomes, and what with them."""
    from prudent.demo import run_demonstration

    found = run_demonstration()
    document = {"without_outcomes": found.before.to_dict(), "with_outcomes": found.after.to_dict()}
    text = str(found)
    if report is not None:
        found.after.report(report)
        text += f"\n\nThe report is in {report}: open it in a browser."
    show(document, text, as_json)


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
        raise prudent.errors.InputError(f"{path}: the file exists; --force replaces it.")
    with whole_file(path) as stream:
        stream.write(EXAMPLE_PROBLEM.encode("utf-8"))
    typer.echo(f"Wrote {path}. Edit it, then: prudent advise FILE --problem {path} --forecast COL --outcome COL")


def studio(
    port: Annotated[
        int | None, typer.Option("--port", help="By default 8765; a free one if it is taken.", show_default=False)
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Open a page on this machine: bring forecasts, describe the decision, see what to do. Ctrl-C ends it."""
    from prudent.studio import serve

    serve(
        port,
        browser=not no_browser,
        announce=lambda address: typer.echo(f"The studio is at {address} (this machine only). Ctrl-C ends it."),
    )


for command in (demo, init, advise, audit, fit, decide, repair, backtest, stress, ladder, report, studio):
    application.command()(command)
