"""How many moments a guarantee has on a space: known before any test is evaluated, so that a file can be checked."""

from math import comb

from prudent.errors import InputError
from prudent.guarantees import (
    And,
    Binned,
    Classwise,
    Confidence,
    DecisionCalibrated,
    Guarantee,
    LogOdds,
    Nothing,
    Polynomial,
    SelfOrthogonal,
    Temperature,
    TopLabel,
    Unbiased,
    UniformBins,
    UtilityCalibrated,
)
from prudent.spaces import Simplex, Space

_MOST = 10_000_000  # coordinates of tests at one forecast: 80 MB
_FEW = 30  # of twice as many or more have more than the most subsets, and are counted in no time


def count_moments(guarantee: Guarantee, space: Space) -> int:
    """Count the moments of a guarantee that does not depend on a sample.

    Examples
    --------
    >>> from prudent import Simplex, guarantees
    >>> from prudent.guarantees.counts import count_moments
    >>> count_moments(guarantees.SelfOrthogonal() & guarantees.TopLabel(10), Simplex(3))
    39
    """
    d = space.dimension
    match guarantee:
        case And(parts=parts):
            count = sum(count_moments(part, space) for part in parts)
        case Nothing():
            count = 0
        case Unbiased():
            count = d
        case SelfOrthogonal(intercept=intercept):
            count = (d + intercept) * d
        case Polynomial(degree=degree):
            free = d - isinstance(space, Simplex)
            count = comb(degree + free, min(degree, free, _FEW)) * d
        case Binned(edges=edges):
            count = (len(edges) - 1) * d
        case UniformBins(n_bins=n_bins) | Classwise(n_bins=n_bins) | TopLabel(n_bins=n_bins):
            count = n_bins * d
        case Confidence(n_bins=n_bins):
            count = n_bins
        case DecisionCalibrated(problems=problems):
            guarantee.require_space(space)
            count = sum(problem.n_actions for problem in problems) * d
        case UtilityCalibrated(problems=problems):
            guarantee.require_space(space)
            count = len(problems)
        case LogOdds(intercept=intercept):
            count = (max(d - 1, 1) + intercept) * d
        case Temperature():
            count = 1
        case _:
            raise InputError(f"{guarantee!r} has no tests of its own, before it is resolved on a sample.")
    if count * d > _MOST:
        raise InputError(f"{guarantee!r} has too many tests on {space!r} to be read from a file.")
    return count
