"""An audit for those who do not know what their forecaster promises: walk the ladder, audit the best rung."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prudent.auditing.inspection import Audit, audit
from prudent.auditing.rungs import GuaranteeLadder, guarantee_ladder
from prudent.problem import DecisionProblem

__all__ = ["LadderAudit", "audit_best_rung"]


@dataclass(frozen=True, eq=False)
class LadderAudit:
    """The ladder, and the audit of its best rung.

    The rung is chosen by the same rows that it is audited on. So the audit has the confidence that all rungs would
    need for their statements to hold at once, and then those about the chosen one do.
    """

    ladder: GuaranteeLadder
    audit: Audit

    def __str__(self) -> str:
        return (
            f"{self.ladder}\n\n"
            f"The audit of {self.ladder.best.name!r}, at {100 * self.audit.confidence:.4g}% so that the choice among "
            f"{len(self.ladder.rungs)} rungs is allowed for:\n{self.audit}"
        )


def audit_best_rung(
    forecasts: Any, outcomes: Any, problem: DecisionProblem, *, tolerance: float | None = None, **options: Any
) -> LadderAudit:
    """Walk the default ladder and audit the rung with the highest guaranteed utility.

    Parameters
    ----------
    forecasts, outcomes : arrays
    problem : DecisionProblem
    tolerance : float, optional
        As in :func:`prudent.audit`.
    **options
        As in :func:`prudent.guarantee_ladder`.
    """
    ladder = guarantee_ladder(forecasts, outcomes, problem, **options)
    shared = {name: options[name] for name in ("method", "sample_weight", "groups", "missing") if name in options}
    result = audit(
        forecasts,
        outcomes,
        ladder.best.guarantee,
        problem=problem,
        tolerance=tolerance,
        confidence=ladder.rung_confidence,
        **shared,
    )
    return LadderAudit(ladder, result)
