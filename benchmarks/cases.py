"""The seven families of programs, their sizes and their goals.

A family is a problem, a guarantee and a way to draw forecasts, all from one documented seed; only the number of
rows varies. Seeds were taken so that the robust policy uses at least two actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import prudent
from benchmarks.arrays import Arrays
from prudent import guarantees

__all__ = ["FAMILIES", "Family", "smooth_tests"]


@dataclass(frozen=True)
class Family:
    """Programs that differ only in their number of rows.

    Attributes
    ----------
    number : int
        Row of the table.
    name : str
    seed : int
    make_problem : callable
        From a random generator.
    guarantee : Guarantee
    slack : number, array or Slack
    size, quick_size : int
        Rows of the race with goals; rows with ``--quick``.
    goal : float
        How many times faster than the fastest competitor in any formulation.
    goal_as_written : float or None
        The same, against the fastest program as a user writes it.
    goal_gap : float or None
        Largest certified gap, as a share of the utility range.
    """

    number: int
    name: str
    seed: int
    make_problem: Callable[[np.random.Generator], prudent.DecisionProblem]
    guarantee: guarantees.Guarantee
    size: int
    quick_size: int
    goal: float
    slack: Any = 0.0
    goal_as_written: float | None = None
    goal_gap: float | None = None

    def problem(self) -> prudent.DecisionProblem:
        """Draw the problem: the same one every time."""
        return self.make_problem(np.random.default_rng(self.seed))

    def policy(self) -> prudent.RobustPolicy:
        """Make a policy that shares nothing with those made before, so that no fit profits from another."""
        return prudent.RobustPolicy(self.problem(), self.guarantee, slack=self.slack)

    def forecasts(self, n: int) -> NDArray[np.float64]:
        """Draw forecasts ``(n, d)``, uniformly on the outcome space."""
        rng = np.random.default_rng([self.seed, 1])
        space = self.problem().space
        if isinstance(space, prudent.Simplex):
            return rng.dirichlet(np.ones(space.dimension), size=n)
        low, high = space.bounds
        return low + (high - low) * rng.random((n, space.dimension))

    def arrays(self, n: int) -> Arrays:
        """Write the program down for general solvers, with the tests as Prudent evaluates them."""
        problem, forecasts = self.problem(), self.forecasts(n)
        space = problem.space
        resolved = self.guarantee.resolve(forecasts, np.full(n, 1.0 / n), space)
        tests = resolved.evaluate(forecasts, space)
        k = tests.values.shape[1]
        slack = self.slack if isinstance(self.slack, prudent.Slack) else prudent.Slack(self.slack)
        # Slack is in outcome units, so it grows with the scale of each test; scales are listed per moment.
        radius = np.broadcast_to(slack.radius, (k,)) * tests.scales[:: space.dimension]
        norm = "exact" if not radius.any() else "linf" if space.dimension == 1 else slack.norm
        simplex = isinstance(space, prudent.Simplex)
        return Arrays(
            problem.rewards, problem.costs, *space.bounds, simplex, forecasts, np.asarray(tests.values), norm, radius
        )


def smooth_tests(count: int, first: int = 0) -> guarantees.FromFunctions:
    """Take the tests ``cos(pi j v)`` of one coordinate for ``count`` frequencies from ``first``; all reach one."""
    functions = [partial(_cosine, frequency) for frequency in range(first, first + count)]
    return guarantees.FromFunctions(functions, bounds=[1.0] * count)


def _cosine(frequency: int, forecasts: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.cos(np.pi * frequency * forecasts[:, 0])


def _sum_of_squares(forecasts: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.einsum("ij,ij->i", forecasts, forecasts)


def _lines(m: int, rng: np.random.Generator) -> prudent.DecisionProblem:
    return prudent.DecisionProblem(rng.normal(size=m), 0.3 * rng.normal(size=m))


def _planes(m: int, d: int, rng: np.random.Generator) -> prudent.DecisionProblem:
    return prudent.DecisionProblem(
        rng.normal(size=(m, d)), 0.3 * rng.normal(size=m), space=prudent.Box(np.zeros(d), np.ones(d))
    )


def _payoffs(m: int, d: int, rng: np.random.Generator) -> prudent.DecisionProblem:
    return prudent.DecisionProblem.from_payoffs(rng.normal(size=(m, d)))


_LINEAR = guarantees.SelfOrthogonal(intercept=True)

FAMILIES = {
    family.number: family
    for family in (
        Family(
            number=1,
            name="d=1, m=3, k=1 {v}",
            seed=0,
            make_problem=partial(_lines, 3),
            guarantee=guarantees.SelfOrthogonal(),
            size=100_000,
            quick_size=5_000,
            goal=100.0,
            goal_as_written=1000.0,
            goal_gap=1e-9,
        ),
        Family(
            number=2,
            name="d=1, m=5, k=10 cosines",
            seed=0,
            make_problem=partial(_lines, 5),
            guarantee=smooth_tests(10),
            size=100_000,
            quick_size=2_000,
            goal=100.0,
        ),
        Family(
            number=3,
            name="d=1, m=5, k=60 bins and cosines, slack",
            seed=0,
            make_problem=partial(_lines, 5),
            guarantee=guarantees.Bins(30) & smooth_tests(30, first=1),
            slack=prudent.Slack(np.linspace(0.001, 0.01, 60)),
            size=100_000,
            quick_size=1_000,
            goal=150.0,
        ),
        Family(
            number=4,
            name="box d=5, m=5, k=6 {1, v}",
            seed=0,
            make_problem=partial(_planes, 5, 5),
            guarantee=_LINEAR,
            size=20_000,
            quick_size=150,
            goal=50.0,
        ),
        Family(
            number=5,
            name="simplex d=5, m=6, k=6 {1, v}",
            seed=0,
            make_problem=partial(_payoffs, 6, 5),
            guarantee=_LINEAR,
            size=20_000,
            quick_size=300,
            goal=80.0,
        ),
        Family(
            number=6,
            name="simplex d=10, m=20, k=12 {1, v, v·v}",
            seed=1,
            make_problem=partial(_payoffs, 20, 10),
            guarantee=_LINEAR & guarantees.FromFunctions([_sum_of_squares]),
            size=5_000,
            quick_size=100,
            goal=15.0,
        ),
        Family(
            number=7,
            name="box d=5, m=5, k=6 {1, v}, round slack",
            seed=0,
            make_problem=partial(_planes, 5, 5),
            guarantee=_LINEAR,
            slack=prudent.Slack(0.01, norm="l2"),
            size=10_000,
            quick_size=300,
            goal=50.0,
        ),
    )
}
