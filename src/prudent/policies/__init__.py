"""Fitted objects that users hold: forecasts in, actions out, one file to ship."""

from typing import TYPE_CHECKING

from prudent.late import late_names

if TYPE_CHECKING:
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

if not TYPE_CHECKING:
    # Who predicts does not wait for tables, files and explanations.
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "bands": "Band action_bands",
            "base": "Policy",
            "batches": "Decisions decide_rows",
            "changes": "NextAction",
            "explanation": "Explanation",
            "file_decisions": "decide_files",
            "persistence": "load policy_from_dict policy_text policy_to_dict",
            "reference": "PlugInPolicy SafetyPolicy",
            "robust": "PureRobustPolicy RobustPolicy rows_to_recognise",
            "rowwise": "RowwiseRobustPolicy row_game",
        },
    )
