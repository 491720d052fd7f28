"""Grids of outcomes and of amounts behind a nonlinear utility, and forecasts on a grid (docs/theory.md, section 14)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from prudent.arrays import FloatArray, finite_array, positive_integer, rows
from prudent.errors import InputError
from prudent.files import Record
from prudent.spaces import Grid

#: Parts of each gap of a grid of outcomes, at whose ends a utility is looked at.
PARTS = 32
_QUANTILES = 256  # by which a distribution is represented


@dataclass(frozen=True)
class Discretization:
    """What grids of outcomes and of amounts can cost; utilities of the problem are bounds from below.

    Attributes
    ----------
    error : float
        The utility of an action at an outcome is at least that of the problem, and at most so much more. Measured at 33
        outcomes in each gap of the grid, its ends included: utility is taken to be linear between these. Certificates
        and claims contain it.
    amounts_error : float or None
        Amounts between those of the grid can guarantee at most so much more; None where actions are no amounts, or
        utility is not concave in them, by what was measured at all amounts and in the middle between them.
    """

    error: float
    amounts_error: float | None = None

    def __str__(self) -> str:
        text = f"The grid of outcomes hides up to {self.error:.3g} of utility"
        if self.amounts_error is None:
            return text
        return (
            f"{text}, that of amounts up to {self.amounts_error:.3g}; utility is concave in the amount, so the mean of "
            f"a mixture, predict_amounts(), earns at least as much"
        )

    @classmethod
    def from_dict(cls, document: Any) -> "Discretization":
        """Rebuild what a file says, checking every field."""
        record = Record(document, "discretization", "error", "amounts_error")
        amounts = None if record["amounts_error"] is None else record.number("amounts_error", 0.0)
        return cls(record.number("error", 0.0), amounts)


def between(points: Any, parts: int) -> FloatArray:
    """Return points, and others in their gaps."""
    return np.interp(np.arange((len(points) - 1) * parts + 1) / parts, np.arange(len(points)), points)


def grid_errors(utilities: FloatArray, points: FloatArray) -> tuple[float, float]:
    """How far utilities ``(m, outcomes)`` lie below and above what is linear between the points of a grid."""
    excess = utilities - [np.interp(between(points, PARTS), points, own) for own in utilities[:, ::PARTS]]
    excess[np.abs(excess) <= 1e-14 * np.abs(utilities).max()] = 0.0  # rounding
    return float(-excess.min()), float(excess.max())


def amounts_error(amounts: FloatArray, utilities: FloatArray) -> float | None:
    """What amounts between those of a grid can add; None where utilities ``(amounts, outcomes)`` are not concave.

    Every other amount is in the middle between two of the grid. What a concave function has above a chord is at most
    twice what it has there.
    """
    slopes = np.diff(utilities, axis=0) / np.diff(amounts)[:, None]
    if (np.diff(slopes, axis=0) > 1e-12 * np.abs(slopes).max()).any():
        return None
    return float((2 * utilities[1::2] - utilities[:-1:2] - utilities[2::2]).max())


class GridForecasts(NamedTuple):
    """Forecasts on a grid: ``probabilities`` ``(n, d)`` of its points, and what is not known about them.

    No cumulative probability is off by more than ``error``. ``outside`` ``(n,)`` is the probability of what lies beyond
    the grid, which counts at its ends.
    """

    probabilities: FloatArray
    error: float
    outside: FloatArray


def forecasts_from(
    problem_or_grid: Any,
    *,
    points: Any = None,
    residuals: Any = None,
    residual_bins: int = 1,
    quantiles: Any = None,
    levels: Any = None,
    samples: Any = None,
    distribution: Any = None,
) -> GridForecasts:
    """Return probabilities of the points of a grid from the forecasts that one has.

    Parameters
    ----------
    problem_or_grid : DecisionProblem from ``from_utility``, or Grid
    points, residuals : arrays of shape (n,) and (r,) or (r, 2)
        Point forecasts, and outcomes minus point forecasts of other cases. With a column of these forecasts before the
        residuals, and so many ``residual_bins``, they are taken from the same quantile bin of the forecast.
    quantiles, levels : arrays of shape (n, k) and (k,)
        The distribution is taken to be linear between quantiles; what lies beyond the outer ones counts at them.
    samples : array of shape (n, s)
    distribution : frozen distribution of scipy.stats, whose parameters have shape (n,)

    Examples
    --------
    >>> import prudent
    >>> grid = prudent.Grid([0, 10, 20])
    >>> prudent.forecasts_from(grid, samples=[[5, 10], [10, 15]]).probabilities
    array([[0.25, 0.75, 0.  ],
           [0.  , 0.75, 0.25]])
    >>> prudent.forecasts_from(grid, points=[10, 12], residuals=[-2, 2]).probabilities
    array([[0.1, 0.8, 0.1],
           [0. , 0.8, 0.2]])
    """
    grid: Any = getattr(problem_or_grid, "space", problem_or_grid)
    if not isinstance(grid, Grid):
        raise InputError(f"problem_or_grid must be a problem from from_utility, or a Grid; got {problem_or_grid!r}.")
    if sum(each is None for each in (points, quantiles, samples, distribution)) != 3:
        raise InputError("one of points, quantiles, samples and distribution must be given.")
    # Quantiles in the middle of parts of equal probability leave cumulative probabilities off by half a part.
    middles, error = (np.arange(_QUANTILES) + 0.5) / _QUANTILES, 0.5 / _QUANTILES
    if distribution is not None:
        table = finite_array(distribution.ppf(middles[:, None]).T, "quantiles of distribution")
    elif quantiles is not None:
        known = finite_array(levels, "levels")
        steps = np.diff(known, prepend=0.0, append=1.0)
        if (steps <= 0).any():
            raise InputError(f"levels must rise, strictly between 0 and 1; got {levels}.")
        table = rows(quantiles, "quantiles", known.size)
        if (np.diff(table, axis=1) < 0).any():
            raise InputError("quantiles must not fall from one level to the next.")
        table, error = table @ [np.interp(middles, known, one) for one in np.eye(known.size)], error + steps.max()
    elif samples is not None:
        table, error = np.atleast_2d(finite_array(samples, "samples")), 0.0
    else:
        table = _with_residuals(points, residuals, residual_bins, middles)
    inside, found = np.clip(table, grid.points[0], grid.points[-1]), np.zeros((len(table), grid.n_classes))
    for column in inside.T:
        found += grid.place_outcomes(column) / len(inside.T)
    return GridForecasts(found, error, (inside != table).mean(axis=1))


def _with_residuals(points: Any, residuals: Any, n_bins: int, shares: FloatArray) -> FloatArray:
    """Add the quantiles of the residuals of its bin to every point forecast."""
    centres, past = rows(points, "points", 1), rows(residuals, "residuals", max(1, np.ndim(residuals)))
    known, errors, levels = past[:, 0], past[:, -1], np.arange(1, positive_integer(n_bins, "residual_bins")) / n_bins
    edges = np.unique(np.quantile(known, levels, method="higher"))
    edges = edges[edges > known.min()]
    mine, theirs = (np.searchsorted(edges, each, side="right") for each in (centres[:, 0], known))
    parts = (errors[theirs == number] for number in range(len(edges) + 1))
    spread = np.array([np.quantile(part, shares, method="inverted_cdf") for part in parts])
    return np.asarray(centres + spread[mine])
