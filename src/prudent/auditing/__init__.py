"""What data say about a guarantee: audit, verdict, ladder, confidence certificate."""

from prudent.auditing.familiar import FamiliarRows
from prudent.auditing.fresh_rows import (
    ConfidenceCertificate,
    confidence_certificate,
    movement,
    penalty,
    pledge_range,
    pledges,
)
from prudent.auditing.inspection import Audit, audit, inspect
from prudent.auditing.rungs import GuaranteeLadder, Rung, climb, guarantee_ladder, usual_guarantees
from prudent.auditing.verdict import Verdict, VerdictKind
from prudent.auditing.walk import LadderAudit, audit_best_rung

__all__ = [
    "Audit",
    "ConfidenceCertificate",
    "FamiliarRows",
    "GuaranteeLadder",
    "LadderAudit",
    "Rung",
    "Verdict",
    "VerdictKind",
    "audit",
    "audit_best_rung",
    "climb",
    "confidence_certificate",
    "guarantee_ladder",
    "inspect",
    "movement",
    "penalty",
    "pledge_range",
    "pledges",
    "usual_guarantees",
]
