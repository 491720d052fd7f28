"""Fitted objects that users hold: forecasts in, actions out, one file to ship."""

from prudent.policies.base import Policy
from prudent.policies.persistence import load
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy, rows_to_recognise

__all__ = ["PlugInPolicy", "Policy", "PureRobustPolicy", "RobustPolicy", "SafetyPolicy", "load", "rows_to_recognise"]
