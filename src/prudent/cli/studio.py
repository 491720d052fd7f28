"""``prudent studio``."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["studio"]


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
