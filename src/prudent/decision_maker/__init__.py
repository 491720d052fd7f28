"""Features in, actions out: a model, what it guarantees, and the robust policy as one estimator."""

from prudent.decision_maker.estimator import RobustDecisionMaker

__all__ = ["RobustDecisionMaker"]
