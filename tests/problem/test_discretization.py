"""Nonlinear utilities: what grids of outcomes and amounts hide, forecasts on a grid, and the space of a basis."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import prudent
from prudent import DecisionProblem, Grid, forecasts_from, guarantees
from prudent.errors import InputError


def profit(stock: float, demand: float) -> float:
    return 5 * min(stock, demand) - 3 * stock


@pytest.mark.parametrize(
    "utility",
    [
        profit,
        lambda a, y: (y - a) ** 2,  # convex: lines between points lie above it
        lambda a, y: float(np.sin(y / 3) * a),
        lambda a, y: float(y > a),  # a jump
    ],
)
def test_utilities_are_bounds_from_below_by_at_most_what_is_hidden(utility: Any) -> None:
    problem = DecisionProblem.from_utility(utility, [0, 7, 13], np.linspace(0, 20, 11))
    outcomes = np.linspace(0, 20, 10 * 32 + 1)
    exact = np.array([[utility(a, y) for a in problem.actions] for y in outcomes])
    hidden = exact - problem.utility(outcomes)
    assert hidden.min() >= -1e-12
    assert hidden.max() <= problem.discretization.error + 1e-12
    assert hidden.max() > 0.4 * problem.discretization.error


def test_nothing_is_hidden_where_utility_is_linear_between_points() -> None:
    problem = DecisionProblem.from_utility(profit, [4, 10], [0, 4, 10, 20])
    assert problem.discretization.error == 0.0
    demand = np.random.default_rng(0).uniform(0, 20, 50)
    np.testing.assert_allclose(problem.utility(demand), [[profit(a, y) for a in (4, 10)] for y in demand], atol=1e-12)


def test_outcomes_are_in_units_and_never_positions() -> None:
    problem = DecisionProblem.from_utility(profit, [10, 20, 30], np.linspace(0, 50, 11))
    demand = np.array([0, 1, 2, 3, 10, 40, 50])
    for given in (demand, demand.tolist(), demand.astype(float)[:, None], [[float(y)] for y in demand]):
        np.testing.assert_allclose(problem.utility(given)[:, 1], [profit(20, y) for y in demand], atol=1e-12)
    rng = np.random.default_rng(0)
    forecasts = rng.dirichlet(np.ones(11), size=300)
    sold = np.array([rng.choice(np.linspace(0, 50, 11), p=p) for p in forecasts])
    audited = prudent.audit(problem, forecasts, sold, guarantee="unbiased")
    np.testing.assert_allclose(
        audited.measured.estimates,
        (np.abs(sold[:, None] - np.linspace(0, 50, 11)) < 1e-9).mean(axis=0) - forecasts.mean(axis=0),
        atol=1e-12,
    )
    with pytest.raises(InputError, match=r"from 0 to 50, as the grid of outcomes; got 51 in row 0"):
        problem.utility([51])
    with pytest.raises(InputError, match="must be numbers"):
        problem.utility(["3"])


def test_from_utility_equals_the_exact_newsvendor() -> None:
    """On whole numbers the grid loses nothing: utilities are those of the function itself."""
    problem = DecisionProblem.from_utility(lambda a, y: 5.0 * min(a, y) - 3.0 * a, [2, 4], range(6))
    forecast = np.array([[0.1, 0.2, 0.3, 0.2, 0.1, 0.1]])
    expected = [sum(p * (5 * min(a, y) - 3 * a) for y, p in enumerate(forecast[0])) for a in (2, 4)]
    np.testing.assert_allclose(problem.utility(forecast)[0], expected)


@pytest.mark.parametrize("n_points", [4, 7, 30])
def test_certificates_bracket_what_a_fine_grid_guarantees(n_points: int) -> None:
    """The lower bound of a coarse grid is below the optimum on a fine one, its upper bound above."""
    rng = np.random.default_rng(1)
    centres = rng.uniform(5, 15, 60)
    orders = [2, 7.3, 11.1, 16]
    samples = np.clip(rng.normal(centres[:, None], 3, (60, 40)), 0, 20)

    def fitted(points: Any) -> Any:
        problem = DecisionProblem.from_utility(profit, orders, points)
        forecasts = forecasts_from(problem, samples=samples).probabilities
        return prudent.RobustPolicy(problem, guarantees.Unbiased()).fit(forecasts).certificate_

    coarse = np.linspace(0, 20, n_points)
    # A refinement with every order on it, so that nothing is hidden; its worlds are held to the coarse moments.
    fine = np.union1d(np.union1d(coarse, orders), np.linspace(0, 20, 81))
    merge = Grid(coarse).place_outcomes(fine)
    problem = DecisionProblem.from_utility(profit, orders, fine)
    assert problem.discretization.error == 0.0
    forecasts = forecasts_from(problem, samples=samples).probabilities
    value = _optimum(problem, forecasts, merge)
    found = fitted(coarse)
    assert found.lower <= value + 1e-6 <= found.upper + 2e-6
    assert found.upper - found.lower <= DecisionProblem.from_utility(profit, orders, coarse).discretization.error + 1e-4


def _optimum(problem: DecisionProblem, forecasts: np.ndarray, merge: np.ndarray) -> float:
    """The best guarantee where only the means of the coarse shares are right: a linear program in the constant rule.

    With constant tests all rows are alike, so the worst world is that of one mean forecast:
    ``min_q max_a u(a, q)`` over distributions ``q`` with ``q @ merge = mean forecast @ merge``.
    """
    from scipy.optimize import linprog

    k, m = forecasts.shape[1], problem.n_actions
    rows = np.hstack([problem.linear_utility(np.eye(k)).T, -np.ones((m, 1))])
    equal = np.hstack([merge.T, np.zeros((merge.shape[1], 1))])
    target = forecasts.mean(axis=0) @ merge
    found = linprog(
        np.append(np.zeros(k), 1.0), rows, np.zeros(m), equal, target, [(0, None)] * k + [(None, None)], method="highs"
    )
    return float(found.fun)


def test_amounts_between_those_of_the_grid_add_no_more_than_said() -> None:
    def smooth(amount: float, demand: float) -> float:
        return float(4 * np.sqrt(amount * demand) - amount)

    amounts = [1, 3, 4, 9, 12]
    problem = DecisionProblem.from_utility(smooth, amounts, np.linspace(0, 20, 21), amounts=True)
    hidden = problem.discretization.amounts_error
    between, demand = np.linspace(1, 12, 500), np.linspace(0, 20, 41)
    table = np.array([[smooth(a, y) for y in demand] for a in between])
    chords = np.array([np.interp(between, amounts, [smooth(a, y) for a in amounts]) for y in demand]).T
    assert (table - chords).max() <= hidden <= 2.1 * (table - chords).max()

    forecasts = forecasts_from(problem, samples=np.random.default_rng(0).uniform(0, 20, (50, 4))).probabilities
    policy = prudent.RobustPolicy(problem, "unbiased").fit(forecasts)
    mean, mixed = policy.predict_amounts(forecasts), policy.predict_proba(forecasts)
    np.testing.assert_allclose(mean, mixed @ np.array(amounts))
    for y in (0.0, 3.3, 17.0):
        assert all(
            smooth(a, y) >= own @ [smooth(b, y) for b in amounts] - 1e-12 for a, own in zip(mean, mixed, strict=True)
        )
    assert policy.certificate_.upper - policy.certificate_.lower >= hidden
    assert "predict_amounts" in policy.certificate_.message


def test_amounts_need_a_concave_utility_and_numbers() -> None:
    convex = DecisionProblem.from_utility(lambda a, y: a * a * y, [0, 1, 2], [0, 1], amounts=True)
    assert convex.discretization.amounts_error is None
    for problem in (convex, DecisionProblem.from_utility(profit, [0, 1], [0, 1]), DecisionProblem([0, 1])):
        with pytest.raises(InputError, match="amounts need a problem"):
            prudent.PlugInPolicy(problem).predict_amounts([[0.5, 0.5]])
    for actions in (["a", "b"], [2, 1], [1]):
        with pytest.raises(InputError):
            DecisionProblem.from_utility(lambda a, y: y, actions, [0, 1], amounts=True)


GRID = Grid([-3, -1, 0, 2.5, 4])


def shares_by_integration(cumulative: Any, jump: float = 0.1) -> np.ndarray:
    """Probabilities of points as differences of the mean cumulative distribution over gaps, by adaptive quadrature."""
    points = GRID.points
    means = [quad(cumulative, a, b, points=[np.clip(jump, a, b)])[0] / (b - a) for a, b in pairwise(points)]
    return np.diff(np.array([0.0, *means, 1.0]))


def worst_cumulative_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(np.cumsum(ours - theirs)).max())


@pytest.mark.parametrize("seed", range(3))
def test_forecasts_from_agrees_with_integration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres, widths = rng.uniform(-2, 3, 4), rng.uniform(0.2, 2, 4)
    found = forecasts_from(GRID, distribution=stats.norm(centres, widths))
    assert found.error <= 1 / 256
    for own, outside, c, w in zip(found.probabilities, found.outside, centres, widths, strict=True):
        law = stats.norm(c, w)
        assert worst_cumulative_error(own, shares_by_integration(law.cdf)) <= found.error
        assert outside == pytest.approx(law.cdf(-3) + law.sf(4), abs=2 / 256)

    samples = rng.normal(size=(4, 7))
    found = forecasts_from(GRID, samples=samples)
    assert found.error == 0.0
    for own, values in zip(found.probabilities, samples, strict=True):
        expected = np.mean([shares_by_integration(lambda t, x=x: float(t >= x), x) for x in values], axis=0)
        np.testing.assert_allclose(own, expected, atol=1e-6)
        assert own @ GRID.points == pytest.approx(np.clip(values, -3, 4).mean())

    levels = [0.1, 0.4, 0.9]
    quantiles = np.sort(rng.uniform(-3, 4, (4, 3)), axis=1)
    found = forecasts_from(GRID, quantiles=quantiles, levels=levels)
    for own, knots in zip(found.probabilities, quantiles, strict=True):

        def linear(t: float, knots: np.ndarray = knots) -> float:
            return float(np.interp(t, knots, levels, left=0.0, right=1.0))

        assert worst_cumulative_error(own, shares_by_integration(linear)) <= 1 / 256 + 1e-6
    assert 0.5 <= found.error <= 0.51  # what may lie anywhere between the quantiles at 0.4 and 0.9


def test_quantiles_of_a_known_distribution_are_as_close_as_said() -> None:
    centres, levels = np.array([-1.0, 0.3, 2.0]), np.array([0.025, 0.25, 0.5, 0.75, 0.975])
    found = forecasts_from(GRID, quantiles=stats.norm(centres[:, None], 1).ppf(levels), levels=levels)
    exact = forecasts_from(GRID, distribution=stats.norm(centres, 1))
    assert worst_cumulative_error(found.probabilities[0], exact.probabilities[0]) <= found.error
    assert np.abs(np.cumsum(found.probabilities - exact.probabilities, axis=1)).max() < 0.05


def test_residuals_spread_point_forecasts() -> None:
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=50)
    found = forecasts_from(GRID, points=[0.0, 1.0], residuals=residuals)
    exact = forecasts_from(GRID, samples=np.array([[0.0], [1.0]]) + residuals)
    assert np.abs(np.cumsum(found.probabilities - exact.probabilities, axis=1)).max() <= found.error

    past = np.column_stack([np.repeat([0.0, 2.0], 25), residuals])  # forecast, residual
    split = forecasts_from(GRID, points=[0.0, 2.0], residuals=past, residual_bins=2)
    for own, point, part in zip(split.probabilities, (0.0, 2.0), (residuals[:25], residuals[25:]), strict=True):
        alone = forecasts_from(GRID, samples=[point + part]).probabilities[0]
        assert worst_cumulative_error(own, alone) <= split.error
    same = forecasts_from(GRID, points=[1.0], residuals=np.column_stack([np.ones(9), np.arange(9)]), residual_bins=4)
    assert same.probabilities.sum() == pytest.approx(1.0)


def test_discrete_distributions_and_single_ones() -> None:
    found = forecasts_from(Grid(range(8)), distribution=stats.poisson(2.0))
    np.testing.assert_allclose(found.probabilities[0][:7], stats.poisson(2.0).pmf(range(7)), atol=1 / 200)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "one of points"),
        ({"samples": [[1.0]], "points": [1.0]}, "one of points"),
        ({"quantiles": [[1.0, 2.0]], "levels": [0.5, 0.5]}, "levels must rise"),
        ({"quantiles": [[1.0, 2.0]], "levels": [0.0, 0.5]}, "levels must rise"),
        ({"quantiles": [[2.0, 1.0]], "levels": [0.1, 0.5]}, "must not fall"),
        ({"quantiles": [[2.0, 1.0]]}, "levels must be"),
        ({"points": [1.0], "residuals": [[1.0, 2.0, 3.0]]}, "residuals must have"),
        ({"points": [1.0], "residuals": [1.0], "residual_bins": 0}, "residual_bins must be"),
        ({"points": [1.0]}, "residuals must be"),
        ({"samples": [[np.nan]]}, "samples must be finite"),
    ],
)
def test_unclear_forecasts_are_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        forecasts_from(GRID, **given)


def test_forecasts_need_a_grid() -> None:
    with pytest.raises(InputError, match="problem_or_grid must be"):
        forecasts_from(DecisionProblem([0, 1]), samples=[[1.0]])
