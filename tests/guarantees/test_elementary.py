"""Plain formulas of the forecast, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import Box, guarantees
from prudent.errors import InputError

UNIT = Box(0, 1)
V = np.array([[0.0], [0.25], [0.5], [0.75], [1.0]])


def test_nothing_has_no_moments() -> None:
    tests = guarantees.Nothing().evaluate(V, UNIT)
    assert tests.values.shape == (5, 0)
    assert tests.names == ()
    assert tests.multiplier_shape == (0, 1)


def test_unbiased_is_the_constant() -> None:
    tests = guarantees.Unbiased().evaluate(np.tile(V, 2), Box([0, 0], [1, 1]))
    assert (tests.values == 1).all()
    assert tests.names == ("1 x y[0]", "1 x y[1]")


def test_self_orthogonal_is_scaled_to_outcome_units() -> None:
    tests = guarantees.SelfOrthogonal(intercept=True).evaluate(np.array([[-3.0], [2.0]]), Box(-3, 2))
    np.testing.assert_array_equal(tests.values, [[1, -3], [1, 2]])
    assert tests.scales.tolist() == [1.0, 3.0]
    assert tests.names == ("1", "v")


def test_polynomials_are_products_of_chebyshev_polynomials_on_the_space() -> None:
    tests = guarantees.Polynomial(2).evaluate(np.array([[10.0, 4.0], [5.0, 1.0]]), Box([0, 0], [20, 4]))
    x = np.array([[0.0, 1.0], [-0.5, -0.5]])
    a, b = x.T
    np.testing.assert_array_equal(tests.values, np.stack([a**0, a, b, 2 * a**2 - 1, a * b, 2 * b**2 - 1], axis=1))
    names = ("1", "T1(v[0])", "T1(v[1])", "T2(v[0])", "T1(v[0]) T1(v[1])", "T2(v[1])")
    assert tests.names[::2] == tuple(f"{name} x y[0]" for name in names)
    assert guarantees.Polynomial(0).evaluate(V, UNIT).values.shape == (5, 1)


@pytest.mark.parametrize("degree", [3, 6, 17, 40])
def test_high_degrees_are_evaluated_to_rounding(degree: int) -> None:
    points = np.linspace(-3.0, 7.0, 1001)[:, None]
    tests = guarantees.Polynomial(degree).evaluate(points, Box(-3, 7))
    x = (points[:, 0] + 3) / 5 - 1
    exact = np.cos(np.arange(degree + 1) * np.arccos(np.clip(x, -1, 1))[:, None])
    np.testing.assert_allclose(tests.values, exact, rtol=0, atol=2e-15 * degree**2)
    assert tests.names[-1] == f"T{degree}(v)"
    assert np.linalg.cond(tests.values) < 30


def test_full_calibration_cannot_be_evaluated_but_absorbs() -> None:
    with pytest.raises(InputError, match="infinitely many tests"):
        guarantees.FullyCalibrated().evaluate(V, UNIT)
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    guarantee = guarantees.Unbiased() & guarantees.FullyCalibrated()
    policy = prudent.RobustPolicy(problem, guarantee).fit(V)
    assert policy.multipliers_ is None
    np.testing.assert_array_equal(policy.predict_proba(V), prudent.PlugInPolicy(problem).predict_proba(V))
    np.testing.assert_array_equal(policy.worst_case_belief(V), V)
    with pytest.raises(InputError, match="slack has no meaning for FullyCalibrated"):
        prudent.RobustPolicy(problem, guarantee, slack=0.1).fit(V)
