"""Fitted objects that users hold: forecasts in, actions out, one file to ship."""

from prudent.policies.base import Policy
from prudent.policies.changes import NextAction
from prudent.policies.explanation import Explanation
from prudent.policies.persistence import load, policy_from_dict, policy_to_dict
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy, rows_to_recognise

__all__ = [
    "Explanation",
    "NextAction",
    "PlugInPolicy",
    "Policy",
    "PureRobustPolicy",
    "RobustPolicy",
    "SafetyPolicy",
    "load",
    "policy_from_dict",
    "policy_to_dict",
    "rows_to_recognise",
]
