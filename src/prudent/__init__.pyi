from prudent import guarantees
from prudent.adversary.stress_test import StressTest, stress_test
from prudent.adversary.worst_case import WorstCase, worst_case
from prudent.cases.scan import Columns, columns
from prudent.decision_maker import RobustDecisionMaker
from prudent.errors import (
    EngineError,
    FileFormatError,
    InfeasibleError,
    InputError,
    MissingExtraError,
    OutsideSpaceError,
)
from prudent.evidence.audits import Audit, audit
from prudent.evidence.confidence import ConfidenceCertificate, confidence_certificate
from prudent.evidence.ladder import GuaranteeLadder, Rung, guarantee_ladder
from prudent.evidence.verdict import Verdict, VerdictKind
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
from prudent.slack import Slack
from prudent.solvers import Certificate, Solution, Status
from prudent.spaces import Box, Simplex

__version__: str

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
    "RowwiseRobustPolicy",
    "Rung",
    "SafetyPolicy",
    "Simplex",
    "Slack",
    "Solution",
    "Status",
    "StressTest",
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
    "stress_test",
    "worst_case",
]
