"""Repairing forecasters until trusting them is right."""

from prudent.recalibration.base import Recalibrator
from prudent.recalibration.boosting import GuaranteeCalibrator, MeanCalibrator
from prudent.recalibration.decision import DecisionCalibrator
from prudent.recalibration.decision_makers import DecisionMakers
from prudent.recalibration.forecaster import CalibratedForecaster
from prudent.recalibration.online import OnlineDecisionCalibrator
from prudent.recalibration.steps import HistogramCalibrator, IsotonicCalibrator

__all__ = [
    "CalibratedForecaster",
    "DecisionCalibrator",
    "DecisionMakers",
    "GuaranteeCalibrator",
    "HistogramCalibrator",
    "IsotonicCalibrator",
    "MeanCalibrator",
    "OnlineDecisionCalibrator",
    "Recalibrator",
]
