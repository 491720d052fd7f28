"""Results as JSON documents."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from prudent.auditing import Audit, GuaranteeLadder
    from prudent.solvers import Certificate

__all__ = ["audit_document", "certificate_document", "ladder_document", "print_json", "records"]


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document; numbers that JSON does not have become null."""
    typer.echo(json.dumps(_plain(document), indent=2, allow_nan=False, ensure_ascii=False))


def records(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Turn columns of a table into one object per row."""
    names = [name.replace(" ", "_").replace("-", "_") for name in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def audit_document(audit: Audit) -> dict[str, Any]:
    """Everything that an audit says."""
    verdict = audit.verdict
    return {
        "verdict": verdict.kind.value,
        "sentence": str(verdict),
        "guarantee": repr(audit.guarantee),
        "confidence": audit.confidence,
        "tolerance": verdict.tolerance,
        "p_value": audit.p_value,
        "rejected": list(audit.rejected),
        "loss": verdict.loss,
        "bound": verdict.bound,
        "undetected": verdict.undetected,
        "guaranteed": verdict.guaranteed,
        "nominal_cost": verdict.nominal_cost,
        "rows": audit.n_rows,
        "rows_without_outcome": audit.n_dropped,
        "moments": records(audit.columns),
    }


def ladder_document(ladder: GuaranteeLadder) -> dict[str, Any]:
    """Everything that a ladder says."""
    return {
        "best": ladder.best.name,
        "confidence": ladder.confidence,
        "rows": ladder.n_rows,
        "rungs": [
            {
                "name": rung.name,
                "guarantee": repr(rung.guarantee),
                "holds": bool(rung.holds),
                "p_value": rung.p_value,
                "slack": rung.slack,
                "guaranteed": rung.guaranteed,
                "nominal": rung.nominal,
                "given_up": rung.given_up,
                "realised": rung.realised,
            }
            for rung in ladder.rungs
        ],
    }


def certificate_document(certificate: Certificate) -> dict[str, Any]:
    """What is proven."""
    return {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "gap": certificate.gap,
        "status": certificate.status.value,
        "message": certificate.message,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a NumPy number
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
