from prudent.policies.base import Policy, require_problem
from prudent.policies.explanation import Band, Explanation, NextAction
from prudent.policies.file_decisions import Decisions, decide_files
from prudent.policies.persistence import load, policy_from_dict, policy_text, policy_to_dict
from prudent.policies.reference import FixedRule, PlugInPolicy, RecalibratedPolicy, SafetyPolicy
from prudent.policies.robust import RobustPolicy

__all__ = [
    "Band",
    "Decisions",
    "Explanation",
    "FixedRule",
    "NextAction",
    "PlugInPolicy",
    "Policy",
    "RecalibratedPolicy",
    "RobustPolicy",
    "SafetyPolicy",
    "decide_files",
    "load",
    "policy_from_dict",
    "policy_text",
    "policy_to_dict",
    "require_problem",
]
