"""``prudent demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    report: Annotated[Path | None, typer.Option(help="Also write a report page to this file.")] = None,
) -> None:
    """Train a forecaster, fit the robust policy, show its certificate and stress test."""
    from prudent.experiments import demonstration_sample, run_demonstration

    typer.echo(str(run_demonstration()))
    if report is not None:
        from prudent.report import Report

        Report(
            *demonstration_sample(),
            title="Which care for which patient",
            source="scikit-learn's diabetes data, forecast by cross-fitted linear regression",
            command=f"prudent demo --report {report}",
        ).save(report)
        typer.echo(f"\nThe report is in {report}: open it in a browser.")
