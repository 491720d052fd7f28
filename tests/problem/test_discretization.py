"""Nonlinear utilities on a grid of outcomes or over a basis: what the grid loses, and the space of the basis."""

from __future__ import annotations

import numpy as np
import pytest

from prudent import Box, DecisionProblem
from prudent.errors import InputError


def test_from_utility_bounds_its_discretisation_error() -> None:
    def profit(stock: float, demand: float) -> float:
        return 5 * min(stock, demand) - 3 * stock

    problem = DecisionProblem.from_utility(profit, [0, 7, 13], np.linspace(0, 20, 11), lipschitz=5)
    grid = problem.discretization
    assert grid.certified
    assert grid.error_bound == pytest.approx(5.0)
    demand = np.linspace(-1, 21, 401)
    exact = np.array([[profit(a, y) for a in problem.actions] for y in demand])
    nearest = np.abs(demand[:, None] - np.array(grid.grid)).argmin(axis=1)
    error = np.abs(problem.utility(nearest) - exact)
    assert error.max() <= grid.error_bound + 1e-12
    assert error.max() > 0.5 * grid.error_bound
    estimated = DecisionProblem.from_utility(profit, [0, 7, 13], np.linspace(0, 20, 11)).discretization
    assert not estimated.certified
    assert "estimated" in str(estimated)


def test_from_utility_equals_the_exact_newsvendor() -> None:
    """On whole numbers the grid loses nothing: utilities are those of the function itself."""
    problem = DecisionProblem.from_utility(lambda a, y: 5.0 * min(a, y) - 3.0 * a, [2, 4], range(6))
    forecast = np.array([[0.1, 0.2, 0.3, 0.2, 0.1, 0.1]])
    expected = [sum(p * (5 * min(a, y) - 3 * a) for y, p in enumerate(forecast[0])) for a in (2, 4)]
    np.testing.assert_allclose(problem.utility(forecast)[0], expected)


def test_from_basis_takes_the_bounding_box() -> None:
    problem = DecisionProblem.from_basis(
        [[1, 0], [0, 2]], [lambda y: y, lambda y: y**2], np.linspace(-1, 2, 7), costs=[0.1, 0.2], actions=["x", "y"]
    )
    assert problem.space == Box([-1, 0], [2, 4])
    with pytest.raises(InputError, match="basis function 0 is constant"):
        DecisionProblem.from_basis([[1]], [lambda y: 1.0], [0, 1])
