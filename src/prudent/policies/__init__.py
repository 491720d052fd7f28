"""Fitted objects that users hold: forecasts in, actions out, one file to ship."""

from prudent.policies.bands import Band, action_bands
from prudent.policies.base import Policy
from prudent.policies.batches import Decisions, decide_rows
from prudent.policies.changes import NextAction
from prudent.policies.explanation import Explanation
from prudent.policies.file_decisions import decide_files
from prudent.policies.persistence import load, policy_from_dict, policy_text, policy_to_dict
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy, rows_to_recognise
from prudent.policies.rowwise import RowwiseRobustPolicy, row_game

__all__ = [
    "Band",
    "Decisions",
    "Explanation",
    "NextAction",
    "PlugInPolicy",
    "Policy",
    "PureRobustPolicy",
    "RobustPolicy",
    "RowwiseRobustPolicy",
    "SafetyPolicy",
    "action_bands",
    "decide_files",
    "decide_rows",
    "load",
    "policy_from_dict",
    "policy_text",
    "policy_to_dict",
    "row_game",
    "rows_to_recognise",
]
