from prudent import errors, guarantees, monitoring, plots, recalibration
from prudent.adversary import stress_test, worst_case
from prudent.advice import Advice, advise, backtest
from prudent.cases.cases import Cases
from prudent.cases.file_table import read_hubverse
from prudent.cases.scan import scan
from prudent.decision_maker import RobustDecisionMaker
from prudent.evidence.audits import audit, guarantee_ladder
from prudent.evidence.confidence import confidence_certificate
from prudent.monitoring import PolicyMonitor
from prudent.policies import FixedRule, PlugInPolicy, RecalibratedPolicy, RobustPolicy, SafetyPolicy, load
from prudent.problem import DecisionProblem, forecasts_from
from prudent.report import Report
from prudent.slack import Slack
from prudent.spaces import Box, Grid, Simplex

__version__: str

__all__ = [
    "Advice",
    "Box",
    "Cases",
    "DecisionProblem",
    "FixedRule",
    "Grid",
    "PlugInPolicy",
    "PolicyMonitor",
    "RecalibratedPolicy",
    "Report",
    "RobustDecisionMaker",
    "RobustPolicy",
    "SafetyPolicy",
    "Simplex",
    "Slack",
    "advise",
    "audit",
    "backtest",
    "confidence_certificate",
    "errors",
    "forecasts_from",
    "guarantee_ladder",
    "guarantees",
    "load",
    "monitoring",
    "plots",
    "read_hubverse",
    "recalibration",
    "scan",
    "stress_test",
    "worst_case",
]
