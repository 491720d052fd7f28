"""Repairing forecasters until trusting them is right."""

from prudent.recalibration.base import Recalibrator
from prudent.recalibration.decision import DecisionCalibrator, DecisionMakers
from prudent.recalibration.forecaster import CalibratedForecaster
from prudent.recalibration.guarantee import GuaranteeCalibrator
from prudent.recalibration.isotonic import IsotonicCalibrator
from prudent.recalibration.online import OnlineDecisionCalibrator
from prudent.recalibration.scaling import ScalingCalibrator
from prudent.recalibration.segmented import SegmentedCalibrator

__all__ = [
    "CalibratedForecaster",
    "DecisionCalibrator",
    "DecisionMakers",
    "GuaranteeCalibrator",
    "IsotonicCalibrator",
    "OnlineDecisionCalibrator",
    "Recalibrator",
    "ScalingCalibrator",
    "SegmentedCalibrator",
]
