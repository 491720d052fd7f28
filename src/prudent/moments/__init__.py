"""Estimates of calibration moments and simultaneous radii around them, from sums."""

from prudent.moments.estimates import POWER, Measurement, MomentEstimates, estimate_moments, estimates_from_sums
from prudent.moments.radii import METHODS, mean_radius, require_method, spread_of_means
from prudent.moments.sums import MomentSums, join_sums, largest_integrands, moment_sums

__all__ = [
    "METHODS",
    "POWER",
    "Measurement",
    "MomentEstimates",
    "MomentSums",
    "estimate_moments",
    "estimates_from_sums",
    "join_sums",
    "largest_integrands",
    "mean_radius",
    "moment_sums",
    "require_method",
    "spread_of_means",
]
