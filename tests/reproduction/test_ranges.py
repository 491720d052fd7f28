"""Ranges over worst worlds against the reference programs, which share no code with them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from reproduction.ranges import worst_worlds_of_all, worst_worlds_of_policy

import prudent
from prudent import guarantees
from prudent.solvers import Game, solve
from prudent.solvers.solve import worst_world
from solutions import worlds_of

RNG = np.random.default_rng(3)
LINE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
UNITS = prudent.DecisionProblem([2.0, 5.0, 5.0], [0.0, 14.0, 20.0], space=prudent.Box(2.0, 8.0))
CUBE = prudent.DecisionProblem(
    [[1.0, 0.1, 0.1], [0.1, 1.0, 0.1], [0.4, 0.4, 0.4]], [0.1, 0.2, 0.18], space=prudent.Box([0] * 3, [1] * 3)
)
CLASSES = prudent.DecisionProblem.from_payoffs([[1, -2, -2], [-2, 1, -2], [-2, -2, 1], [0.4, 0.4, 0.4]])
CASES = [
    pytest.param(LINE, RNG.beta(2, 3, (40, 1)), guarantees.SelfOrthogonal(), id="interval, v"),
    pytest.param(LINE, RNG.beta(2, 3, (40, 1)), guarantees.SelfOrthogonal(intercept=True), id="interval, 1 and v"),
    pytest.param(LINE, RNG.beta(2, 3, (40, 1)), guarantees.Bins(4), id="interval, bins"),
    pytest.param(UNITS, RNG.uniform(2, 8, (40, 1)), guarantees.Bins(3), id="other units"),
    pytest.param(CUBE, RNG.beta(2, 3, (25, 3)), guarantees.SelfOrthogonal(intercept=True), id="cube"),
    pytest.param(CLASSES, RNG.dirichlet([1, 1, 1], 25), guarantees.TopLabel(2), id="classes"),
]


def reference_range(problem, forecasts, tests, mixtures, objective, least):
    """Least and largest utility over worlds whose objective is within the tolerance of its least value."""
    n, d = forecasts.shape
    m = problem.n_actions
    q, heights = cp.Variable(n * d), cp.Variable(n)
    low, high = problem.space.bounds
    constraints = [q >= np.tile(low, n), q <= np.tile(high, n)]
    if isinstance(problem.space, prudent.Simplex):
        constraints.append(np.kron(np.eye(n), np.ones((1, d))) @ q == np.ones(n))
    moments = tests.transpose(1, 0, 2).reshape(-1, n * d)
    constraints.append(moments @ q == moments @ forecasts.reshape(-1))

    def mean_utility(played):
        return ((played @ problem.rewards).reshape(-1) / n) @ q - (played @ problem.costs).mean()

    if objective is None:
        utilities = np.kron(np.eye(n), problem.rewards) @ q - np.tile(problem.costs, n)
        constraints.append(np.kron(np.eye(n), np.ones((m, 1))) @ heights >= utilities)
        value = cp.sum(heights) / n
    else:
        value = mean_utility(objective)
    constraints.append(value <= least + 1e-9 * problem.utility_range)
    utility = mean_utility(mixtures)
    ends = []
    for program in (cp.Problem(cp.Minimize(utility), constraints), cp.Problem(cp.Maximize(utility), constraints)):
        program.solve(solver=cp.HIGHS)
        assert program.status == cp.OPTIMAL
        ends.append(program.value)
    return ends


@pytest.mark.parametrize(("problem", "forecasts", "guarantee"), CASES)
def test_ranges_agree_with_the_reference(problem, forecasts, guarantee) -> None:
    sample = worlds_of(problem, forecasts, guarantee)
    tests = sample.tests.as_vector().values
    optimum = solve(Game.of_problem(problem), sample)
    plug_in = prudent.PlugInPolicy(problem).predict_proba(forecasts)
    worst = worst_world(problem, sample, plug_in)
    some = np.random.default_rng(0).dirichlet(np.ones(problem.n_actions), size=len(forecasts))
    close = 2e-6 * problem.utility_range  # the reference stops at 1e-7 in its own units
    for worlds, objective, least in (
        (worst_worlds_of_all(problem, sample, optimum.upper), None, optimum.upper),
        (
            worst_worlds_of_policy(problem, sample, plug_in, worst.upper),
            plug_in,
            worst.upper,
        ),
    ):
        for mixtures in (plug_in, some):
            found = worlds.utilities(mixtures)
            low, high = found.low, found.high
            assert found.feasibility <= 1e-8
            expected = reference_range(problem, forecasts, tests, mixtures, objective, least)
            assert [low, high] == pytest.approx(expected, abs=close)
            assert low <= high


@pytest.mark.parametrize(("problem", "forecasts", "guarantee"), CASES)
def test_theorems_about_ranges(problem, forecasts, guarantee) -> None:
    sample = worlds_of(problem, forecasts, guarantee)
    optimum = solve(Game.of_problem(problem), sample)
    robust = prudent.RobustPolicy(problem, guarantee).fit(forecasts).predict_proba(forecasts)
    plug_in = prudent.PlugInPolicy(problem).predict_proba(forecasts)
    saddle = worst_worlds_of_all(problem, sample, optimum.upper)
    close = 1e-6 * problem.utility_range
    best = saddle.utilities(robust)
    assert (best.low, best.high) == pytest.approx((optimum.lower, optimum.lower), abs=close)
    found = saddle.utilities(plug_in)
    low, high = found.low, found.high
    inside = float((plug_in * problem.utility(optimum.beliefs)).sum(axis=1).mean())  # one of the worst worlds
    assert low - close <= inside <= high + close
    assert high <= optimum.upper + close
    assert low >= worst_world(problem, sample, plug_in).lower - close


def test_a_range_can_be_wide() -> None:
    """One bin with mean 1/2 where p and 1 - p cross: only q = 1/2 is worst. With a flat middle action many are."""
    forecasts = np.array([[0.2], [0.8]])
    problem = prudent.DecisionProblem([1.0, -1.0, 0.0], [0.0, -1.0, -0.8])  # the third pays 0.8 for sure
    sample = worlds_of(problem, forecasts, guarantees.Unbiased())
    optimum = solve(Game.of_problem(problem), sample)
    assert optimum.lower == pytest.approx(0.8)
    first_then_second = np.array([[1.0, 0, 0], [0, 1.0, 0]])  # gets (q_1 + 1 - q_2) / 2
    found = worst_worlds_of_all(problem, sample, optimum.upper).utilities(first_then_second)
    assert (found.low, found.high) == pytest.approx((0.2, 0.8), abs=1e-7)  # q in [0.2, 0.8] with mean 1/2


def test_slack_is_refused() -> None:
    sample = worlds_of(LINE, np.array([[0.5]]), guarantees.SelfOrthogonal(), 0.1)
    with pytest.raises(prudent.errors.InputError, match="exact guarantees"):
        worst_worlds_of_all(LINE, sample, 0.0)


@pytest.mark.parametrize("guarantee", [guarantees.SelfOrthogonal(intercept=True), guarantees.Bins(10)])
def test_large_samples_are_solved_strictly(guarantee) -> None:
    """Moments summed and not averaged over rows asked too much of a solver: it called the set empty."""
    forecasts = np.random.default_rng(7).beta(2, 3, (4_000, 1))
    sample = worlds_of(LINE, forecasts, guarantee)
    plug_in = prudent.PlugInPolicy(LINE).predict_proba(forecasts)
    worst = worst_world(LINE, sample, plug_in)
    found = worst_worlds_of_policy(LINE, sample, plug_in, worst.upper).utilities(plug_in)
    assert found.feasibility <= 1e-9
    # The policy's own worst case, up to the gap of its certificate.
    assert worst.lower - 1e-9 <= found.low <= found.high <= worst.upper + 1e-7


def test_tests_that_are_nearly_zero_on_most_rows_still_bind() -> None:
    """Log-probabilities of sure forecasts: averaged over rows, a solver dropped them as too small."""
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 8, (300, 3))
    forecasts = np.exp(logits - logits.max(axis=1, keepdims=True))
    forecasts /= forecasts.sum(axis=1, keepdims=True)
    sample = worlds_of(CLASSES, forecasts, guarantees.Temperature())
    optimum = solve(Game.of_problem(CLASSES), sample)
    plug_in = prudent.PlugInPolicy(CLASSES).predict_proba(forecasts)
    worst = worst_world(CLASSES, sample, plug_in)
    for worlds in (
        worst_worlds_of_all(CLASSES, sample, optimum.upper),
        worst_worlds_of_policy(CLASSES, sample, plug_in, worst.upper),
    ):
        assert worlds.utilities(plug_in).low >= worst.lower - 1e-8
