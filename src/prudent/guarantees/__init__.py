"""What a forecaster promises: frozen specifications of tests, combined with ``&``."""

from prudent.guarantees.base import And, Guarantee
from prudent.guarantees.bins import Binned, Classwise, Confidence, QuantileBins, TopLabel, UniformBins
from prudent.guarantees.decisions import DecisionCalibrated, UtilityCalibrated
from prudent.guarantees.elementary import FullyCalibrated, Nothing, Polynomial, SelfOrthogonal, Unbiased
from prudent.guarantees.functions import FromFunctions, Partition
from prudent.guarantees.softmax import LogOdds, Temperature

__all__ = [
    "And",
    "Binned",
    "Classwise",
    "Confidence",
    "DecisionCalibrated",
    "FromFunctions",
    "FullyCalibrated",
    "Guarantee",
    "LogOdds",
    "Nothing",
    "Partition",
    "Polynomial",
    "QuantileBins",
    "SelfOrthogonal",
    "Temperature",
    "TopLabel",
    "Unbiased",
    "UniformBins",
    "UtilityCalibrated",
]
