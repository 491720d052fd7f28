"""Repairing forecasters until trusting them is right."""

from prudent.recalibration.base import Recalibrator
from prudent.recalibration.decision import DecisionCalibrator, GuaranteeCalibrator
from prudent.recalibration.forecaster import CalibratedForecaster
from prudent.recalibration.online import OnlineDecisionCalibrator
from prudent.recalibration.segmented import SegmentedCalibrator
from prudent.recalibration.usual import IsotonicCalibrator, ScalingCalibrator

__all__ = [
    "CalibratedForecaster",
    "DecisionCalibrator",
    "GuaranteeCalibrator",
    "IsotonicCalibrator",
    "OnlineDecisionCalibrator",
    "Recalibrator",
    "ScalingCalibrator",
    "SegmentedCalibrator",
]
