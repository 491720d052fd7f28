"""Estimates of calibration moments and simultaneous radii around them, from sums."""

from prudent.moments.estimates import POWER, MomentEstimates, estimate_moments, estimates_from_sums
from prudent.moments.radii import METHODS, choose_methods, mean_radius
from prudent.moments.spread import Spread, spread_of_means
from prudent.moments.sums import MomentSums, integrands, join_sums, largest_integrands, moment_sums

__all__ = [
    "METHODS",
    "POWER",
    "MomentEstimates",
    "MomentSums",
    "Spread",
    "choose_methods",
    "estimate_moments",
    "estimates_from_sums",
    "integrands",
    "join_sums",
    "largest_integrands",
    "mean_radius",
    "moment_sums",
    "spread_of_means",
]
