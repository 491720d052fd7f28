"""The decision problems of the experiments: the paper's two, and what lies beyond them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from sklearn.datasets import load_digits

from prudent.arrays import FloatArray
from prudent.guarantees import Bins, DecisionCalibrated, SelfOrthogonal, Temperature, TopLabel
from prudent.guarantees.base import Guarantee
from prudent.problem import DecisionProblem
from prudent.spaces import Box
from reproduction.data_sets import DataSets

__all__ = ["ALPHA", "BIKE", "HOUSING", "Case", "make_cases", "paper_problem"]

BIKE, HOUSING = "Bike Sharing", "California Housing"
#: The factor of the benefit in the paper's utility ``alpha a y - C(a)``.
ALPHA = 0.9
_MULTIPLIERS = {BIKE: (0.8, 1.0, 1.2), HOUSING: (0.6, 0.75, 0.9)}
_COSTS = {BIKE: (0.02, 0.05, 0.10), HOUSING: (0.02, 0.05, 0.20)}
#: Table 1 of the paper: i.i.d., worst case for robust, worst case for plug-in; plug-in first, then robust.
_PUBLISHED = {
    BIKE: {"iid": (0.474, 0.463), "worst_for_robust": (0.402, 0.410), "worst_for_plug_in": (0.393, 0.412)},
    HOUSING: {"iid": (0.216, 0.207), "worst_for_robust": (0.160, 0.164), "worst_for_plug_in": (0.155, 0.166)},
}
_BUSY_DAY = 0.8


@dataclass(frozen=True, eq=False)
class Case:
    """One data set with one decision problem and the guarantees to play it under.

    Attributes
    ----------
    name : str
    problem : DecisionProblem
    features : array of shape (n, p)
    outcomes : array of shape (n, d), or class numbers (n,)
    guarantees : mapping of name to Guarantee
    classes : bool
        True if outcomes are classes and the forecaster is a classifier.
    published : mapping of column to the paper's (plug-in, robust), empty where the paper has none
    sizes : tuple of float
        The number that each action stands for, for mean actions; empty if actions are not numbers.
    error : float
        Bound on the calibration error at every forecast for the minimax-regret rule; zero leaves the rule out.
    slow_pure : frozenset of str
        Guarantees under which the search for the best deterministic rule takes minutes and is left out.
    """

    name: str
    problem: DecisionProblem
    features: FloatArray
    outcomes: FloatArray
    guarantees: Mapping[str, Guarantee]
    classes: bool = False
    published: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sizes: tuple[float, ...] = ()
    error: float = 0.0
    slow_pure: frozenset[str] = frozenset()


def paper_problem(name: str, alpha: float = ALPHA, cost_factor: float = 1.0) -> DecisionProblem:
    """Build the paper's problem for a data set; other parameters for the sweeps."""
    multipliers = _MULTIPLIERS[name]
    return DecisionProblem(
        [alpha * a for a in multipliers],
        [cost_factor * cost for cost in _COSTS[name]],
        actions=[f"{a:g}x" for a in multipliers],
    )


def make_cases(data: DataSets, *, most_rows: int | None = None) -> dict[str, Case]:
    """Build all cases; ``most_rows`` thins out housing and digits evenly to about so many rows, for quick runs."""
    counts = data.bike.columns["cnt"]
    step = _step(data.housing.n_rows, most_rows)
    prices = data.housing.columns["medianHouseValue"][::step]
    cases = [
        _paper_case(BIKE, data.bike_covariates, counts, data.bike.published),
        _paper_case(HOUSING, data.housing_covariates[::step], prices, data.housing.published and step == 1),
        _busy_day(data.bike_covariates, counts),
        _three_demands(data),
        _digits(most_rows),
    ]
    return {case.name: case for case in cases}


def _paper_case(name: str, features: FloatArray, target: FloatArray, published: bool) -> Case:
    problem = paper_problem(name)
    guarantees = {
        "{v}": SelfOrthogonal(),
        "{1, v}": SelfOrthogonal(intercept=True),
        "10 bins": Bins(10),
        "decision calibration": DecisionCalibrated((problem,)),
    }
    known = _PUBLISHED[name] if published else {}
    return Case(name, problem, features, scaled(target[:, None]), guarantees, published=known, sizes=_MULTIPLIERS[name])


def _busy_day(features: FloatArray, counts: FloatArray) -> Case:
    """Two actions and a binary outcome: whether to call in extra staff for one of the busiest fifth of days."""
    busy = (counts >= np.quantile(counts, _BUSY_DAY)).astype(np.float64)
    problem = DecisionProblem([-1.0, 0.0], [0.0, 0.15], actions=["as usual", "extra staff"])
    guarantees = {"{v}": SelfOrthogonal(), "{1, v}": SelfOrthogonal(intercept=True)}
    return Case("Busy day (binary)", problem, features, busy[:, None], guarantees, error=0.2)


def _three_demands(data: DataSets) -> Case:
    """Three outcomes at once: casual and registered riders of a day, all riders of the next; multipliers are 3 x 3."""
    columns = data.bike.columns
    target = np.column_stack([columns["casual"][:-1], columns["registered"][:-1], columns["cnt"][1:]])
    problem = DecisionProblem(
        [[1.0, 0.1, 0.1], [0.1, 1.0, 0.1], [0.1, 0.1, 1.0], [0.45, 0.45, 0.45]],
        [0.10, 0.20, 0.25, 0.18],
        actions=["visitors", "commuters", "tomorrow", "balanced"],
        space=Box([0.0] * 3, [1.0] * 3),
    )
    guarantees = {"{v}": SelfOrthogonal(), "{1, v}": SelfOrthogonal(intercept=True)}
    return Case("Three demands (d = 3)", problem, data.bike_covariates[:-1], scaled(target), guarantees)


def _digits(most_rows: int | None) -> Case:
    """Ten classes: a right reading pays 1, a wrong one costs 2, asking a human pays 0.4 whatever the digit."""
    features, labels = load_digits(return_X_y=True)
    step = _step(len(labels), most_rows)
    payoffs = np.vstack([np.where(np.eye(10) > 0, 1.0, -2.0), np.full(10, 0.4)])
    problem = DecisionProblem.from_payoffs(payoffs, actions=[*(f"read {digit}" for digit in range(10)), "ask a human"])
    guarantees = {"log v": Temperature(), "top label, 3 bins": TopLabel(3)}
    slow = frozenset({"top label, 3 bins"})
    return Case(
        "Digits (10 classes)",
        problem,
        np.asarray(features, dtype=np.float64)[::step],
        np.asarray(labels)[::step],
        guarantees,
        classes=True,
        slow_pure=slow,
    )


def _step(n_rows: int, most_rows: int | None) -> int:
    return 1 if most_rows is None else max(1, n_rows // most_rows)


def scaled(target: FloatArray) -> FloatArray:
    """Scale each column to [0, 1] by its smallest and largest value."""
    low, high = target.min(axis=0), target.max(axis=0)
    result: FloatArray = (target - low) / (high - low)
    return result
