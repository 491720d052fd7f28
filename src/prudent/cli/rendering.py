"""Results as text or JSON documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from prudent.formatting import records

if TYPE_CHECKING:
    from prudent.evidence.audits import Audit
    from prudent.evidence.ladder import GuaranteeLadder
    from prudent.solvers import Certificate

Document = dict[str, Any]


def show(document: Document, text: str, as_json: bool) -> None:
    """Print a result as text, or as one JSON document; numbers that JSON does not have become null."""
    if as_json:
        dumped = json.dumps(document, default=lambda number: number.item())
        text = json.dumps(json.loads(dumped, parse_constant=lambda _: None), indent=2, ensure_ascii=False)
    typer.echo(text)


def audit_document(audit: Audit) -> Document:
    """Everything that an audit says."""
    verdict = audit.verdict
    return {
        "verdict": verdict.kind.value,
        "sentence": str(verdict),
        "guarantee": repr(audit.guarantee),
        "confidence": audit.confidence,
        "tolerance": verdict.tolerance,
        "p_value": audit.p_value,
        "rejected": audit.rejected,
        **_fields(verdict, "loss", "bound", "undetected", "guaranteed", "nominal_cost"),
        "rows": audit.n_rows,
        "rows_without_outcome": audit.n_dropped,
        "moments": records(audit.columns),
    }


def ladder_document(ladder: GuaranteeLadder) -> Document:
    """Everything that a ladder says."""
    numbers = "p_value", "slack", "guaranteed", "nominal", "given_up", "realised"
    return {
        "best": ladder.best.name,
        "confidence": ladder.confidence,
        "rows": ladder.n_rows,
        "rungs": [
            {"name": rung.name, "guarantee": repr(rung.guarantee), **_fields(rung, "holds", *numbers)}
            for rung in ladder.rungs
        ],
    }


def certificate_document(certificate: Certificate) -> Document:
    """What is proven."""
    return _fields(certificate, "lower", "upper", "gap", "status", "message")


def _fields(result: Any, *names: str) -> Document:
    return {name: getattr(result, name) for name in names}
