"""Repairing forecasters until trusting them is right."""

from prudent.recalibration.base import Recalibrator
from prudent.recalibration.decision import DecisionCalibrator, DecisionMakers
from prudent.recalibration.forecaster import CalibratedForecaster
from prudent.recalibration.guarantee import GuaranteeCalibrator, MeanCalibrator
from prudent.recalibration.online import OnlineDecisionCalibrator
from prudent.recalibration.step_functions import HistogramCalibrator, IsotonicCalibrator

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
