"""What a forecaster promises: frozen specifications of tests, combined with ``&``."""

from prudent.guarantees.base import Guarantee
from prudent.guarantees.bins import Bins, Classwise, TopLabel, TopLabelPooled
from prudent.guarantees.decisions import DecisionCalibrated, UtilityCalibrated
from prudent.guarantees.elementary import (
    Cumulative,
    FullyCalibrated,
    LogOdds,
    Nothing,
    Polynomial,
    SelfOrthogonal,
    Temperature,
    Unbiased,
)
from prudent.guarantees.functions import FromFunctions, Partition
from prudent.guarantees.within import Within

__all__ = [
    "Bins",
    "Classwise",
    "Cumulative",
    "DecisionCalibrated",
    "FromFunctions",
    "FullyCalibrated",
    "Guarantee",
    "LogOdds",
    "Nothing",
    "Partition",
    "Polynomial",
    "SelfOrthogonal",
    "Temperature",
    "TopLabel",
    "TopLabelPooled",
    "Unbiased",
    "UtilityCalibrated",
    "Within",
]
