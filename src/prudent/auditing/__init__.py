"""What data say about a guarantee: audit, verdict, ladder, confidence certificate."""

from prudent.auditing.audits import Audit, audit, audit_sample
from prudent.auditing.confidence import (
    ConfidenceCertificate,
    certified_range,
    certified_utilities,
    confidence_certificate,
    slack_cost,
    tilt_range,
)
from prudent.auditing.ladder import (
    GuaranteeLadder,
    Rung,
    audit_best_rung,
    guarantee_ladder,
    ladder_of_sample,
    usual_guarantees,
)
from prudent.auditing.sample import AuditSample, read_rows
from prudent.auditing.verdict import Verdict, VerdictKind

__all__ = [
    "Audit",
    "AuditSample",
    "ConfidenceCertificate",
    "GuaranteeLadder",
    "Rung",
    "Verdict",
    "VerdictKind",
    "audit",
    "audit_best_rung",
    "audit_sample",
    "certified_range",
    "certified_utilities",
    "confidence_certificate",
    "guarantee_ladder",
    "ladder_of_sample",
    "read_rows",
    "slack_cost",
    "tilt_range",
    "usual_guarantees",
]
