"""Act on forecasts you only half trust.

Given a decision problem, what a forecaster guarantees and a sample of its
forecasts, Prudent returns the policy with the highest expected utility in the
worst world that the guarantee allows, that world, and a certificate for both.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

# A name is imported when it is first asked for: who fits a policy does not wait for monitors, tables and reports.
_HOMES = {
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
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            return import_module(f"prudent.{name}")
        if name not in _HOME_OF:
            raise AttributeError(f"module 'prudent' has no attribute {name!r}")
        value = getattr(import_module(f"prudent.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES, *_HOME_OF})
