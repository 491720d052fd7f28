"""``prudent demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prudent.cli.options import AsJson

__all__ = ["demo"]


def demo(
    report: Annotated[Path | None, typer.Option(help="Also write a report page to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a forecaster, fit the robust policy, show its certificate and stress test."""
    from prudent.experiments import demonstration_sample, run_demonstration

    found = run_demonstration()
    if as_json:
        from prudent.cli.rendering import certificate_document, print_json, records

        policies = records({"policy": list(found.stress.names), **found.stress.columns})
        print_json(
            {"certificate": certificate_document(found.certificate), "moments": found.moments, "stress": policies}
        )
    else:
        typer.echo(str(found))
    if report is not None:
        from prudent.report import Report

        Report(
            *demonstration_sample(),
            title="Which care for which patient",
            source="scikit-learn's diabetes data, forecast by cross-fitted linear regression",
            command=f"prudent demo --report {report}",
        ).save(report)
        if not as_json:
            typer.echo(f"\nThe report is in {report}: open it in a browser.")
