"""Act on forecasts you only half trust.

Given a decision problem, what a forecaster guarantees and a sample of its
forecasts, Prudent returns the policy with the highest expected utility in the
worst world that the guarantee allows, that world, and a certificate for both.
"""

from typing import TYPE_CHECKING

from prudent.late import late_names

if TYPE_CHECKING:
    from prudent import guarantees
    from prudent.adversary import WorstCase, worst_case
    from prudent.ambiguity import Slack
    from prudent.auditing import (
        Audit,
        ConfidenceCertificate,
        GuaranteeLadder,
        Rung,
        Verdict,
        VerdictKind,
        audit,
        confidence_certificate,
        guarantee_ladder,
    )
    from prudent.decision_maker import RobustDecisionMaker
    from prudent.errors import (
        EngineError,
        FileFormatError,
        InfeasibleError,
        InputError,
        MissingExtraError,
        OutsideSpaceError,
    )
    from prudent.monitoring import Alarm, MonitorState, PolicyMonitor
    from prudent.policies import (
        Band,
        Explanation,
        NextAction,
        PlugInPolicy,
        Policy,
        PureRobustPolicy,
        RobustPolicy,
        RowwiseRobustPolicy,
        SafetyPolicy,
        action_bands,
        load,
    )
    from prudent.price import RobustnessPrice, price_of_robustness
    from prudent.problem import DecisionProblem, Discretization
    from prudent.recalibration import (
        CalibratedForecaster,
        DecisionCalibrator,
        DecisionMakers,
        GuaranteeCalibrator,
        HistogramCalibrator,
        IsotonicCalibrator,
        MeanCalibrator,
        OnlineDecisionCalibrator,
        Recalibrator,
    )
    from prudent.report import Report
    from prudent.solvers import Certificate, Solution, Status
    from prudent.spaces import Box, Simplex
    from prudent.stress import StressTest, stress_test
    from prudent.tables import Columns, columns
    from prudent.transition import Transition, sharp_transition

__version__ = "0.1.0"

__all__ = [
    "Alarm",
    "Audit",
    "Band",
    "Box",
    "CalibratedForecaster",
    "Certificate",
    "Columns",
    "ConfidenceCertificate",
    "DecisionCalibrator",
    "DecisionMakers",
    "DecisionProblem",
    "Discretization",
    "EngineError",
    "Explanation",
    "FileFormatError",
    "GuaranteeCalibrator",
    "GuaranteeLadder",
    "HistogramCalibrator",
    "InfeasibleError",
    "InputError",
    "IsotonicCalibrator",
    "MeanCalibrator",
    "MissingExtraError",
    "MonitorState",
    "NextAction",
    "OnlineDecisionCalibrator",
    "OutsideSpaceError",
    "PlugInPolicy",
    "Policy",
    "PolicyMonitor",
    "PureRobustPolicy",
    "Recalibrator",
    "Report",
    "RobustDecisionMaker",
    "RobustPolicy",
    "RobustnessPrice",
    "RowwiseRobustPolicy",
    "Rung",
    "SafetyPolicy",
    "Simplex",
    "Slack",
    "Solution",
    "Status",
    "StressTest",
    "Transition",
    "Verdict",
    "VerdictKind",
    "WorstCase",
    "action_bands",
    "audit",
    "columns",
    "confidence_certificate",
    "guarantee_ladder",
    "guarantees",
    "load",
    "price_of_robustness",
    "sharp_transition",
    "stress_test",
    "worst_case",
]

if not TYPE_CHECKING:
    # Who fits a policy does not wait for monitors, tables and reports.
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "adversary": "WorstCase worst_case",
            "ambiguity": "Slack",
            "auditing": (
                "Audit ConfidenceCertificate GuaranteeLadder Rung Verdict VerdictKind audit "
                "confidence_certificate guarantee_ladder"
            ),
            "decision_maker": "RobustDecisionMaker",
            "errors": "EngineError FileFormatError InfeasibleError InputError MissingExtraError OutsideSpaceError",
            "monitoring": "Alarm MonitorState PolicyMonitor",
            "policies": (
                "Band Explanation NextAction PlugInPolicy Policy PureRobustPolicy RobustPolicy "
                "RowwiseRobustPolicy SafetyPolicy action_bands load"
            ),
            "price": "RobustnessPrice price_of_robustness",
            "problem": "DecisionProblem Discretization",
            "recalibration": (
                "CalibratedForecaster DecisionCalibrator DecisionMakers GuaranteeCalibrator "
                "HistogramCalibrator IsotonicCalibrator MeanCalibrator OnlineDecisionCalibrator "
                "Recalibrator"
            ),
            "report": "Report",
            "solvers": "Certificate Solution Status",
            "spaces": "Box Simplex",
            "stress": "StressTest stress_test",
            "tables": "Columns columns",
            "transition": "Transition sharp_transition",
            "guarantees": "",
        },
    )
