"""Pictures of results, in scikit-learn's style: a display holds data, ``plot`` draws it."""

from prudent.plots.policy import BeliefDisplay, PolicyDisplay
from prudent.plots.results import AuditDisplay, LadderDisplay, StressTestDisplay

__all__ = ["AuditDisplay", "BeliefDisplay", "LadderDisplay", "PolicyDisplay", "StressTestDisplay"]
