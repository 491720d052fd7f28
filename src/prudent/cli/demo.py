"""``prudent demo``."""

from __future__ import annotations

import typer

__all__ = ["demo"]


def demo() -> None:
    """Train a forecaster, fit the robust policy, show its certificate and stress test."""
    from prudent.experiments import run_demonstration

    typer.echo(str(run_demonstration()))
