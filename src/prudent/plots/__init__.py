"""Pictures of results, in scikit-learn's style: a display holds data, ``plot`` draws it."""

from prudent.plots.audit import AuditDisplay
from prudent.plots.belief import BeliefDisplay
from prudent.plots.ladder import LadderDisplay
from prudent.plots.policy import PolicyDisplay
from prudent.plots.price import RobustnessPriceDisplay
from prudent.plots.stress import StressTestDisplay
from prudent.plots.transition import TransitionDisplay

__all__ = [
    "AuditDisplay",
    "BeliefDisplay",
    "LadderDisplay",
    "PolicyDisplay",
    "RobustnessPriceDisplay",
    "StressTestDisplay",
    "TransitionDisplay",
]
