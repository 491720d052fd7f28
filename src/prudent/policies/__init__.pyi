from prudent.policies.bands import Band, action_bands
from prudent.policies.base import Policy, require_problem
from prudent.policies.explanation import Explanation, NextAction
from prudent.policies.file_decisions import Decisions, decide_files
from prudent.policies.from_tables import TableSample, allowed_worlds, gather_table_sample
from prudent.policies.persistence import load, policy_from_dict, policy_text, policy_to_dict
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import (
    PureRobustPolicy,
    RobustPolicy,
    TiltedPolicy,
    read_sample,
    require_robust,
    rows_to_recognise,
)
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
    "TableSample",
    "TiltedPolicy",
    "action_bands",
    "allowed_worlds",
    "decide_files",
    "gather_table_sample",
    "load",
    "policy_from_dict",
    "policy_text",
    "policy_to_dict",
    "read_sample",
    "require_problem",
    "require_robust",
    "row_game",
    "rows_to_recognise",
]
