"""Plain formulas of the forecast, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import Box, Grid, Simplex, guarantees
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


@pytest.mark.parametrize("space", [Simplex(4, classes=["low", "mid", "high", "top"]), Grid([0, 1, 3, 10])])
def test_cumulative_moments_are_those_of_the_distribution_functions(space: Simplex) -> None:
    rng = np.random.default_rng(0)
    forecasts, outcomes = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(4), 50)
    weights = rng.dirichlet(np.ones(50))
    errors = (np.cumsum(outcomes, axis=1) - np.cumsum(forecasts, axis=1))[:, :3]
    for guarantee in (guarantees.Cumulative(), guarantees.Cumulative(orthogonal=True)):
        tests = guarantee.evaluate(forecasts, space)
        expected = weights @ errors
        if guarantee.orthogonal:
            expected = np.append(expected, weights @ (np.cumsum(forecasts, axis=1)[:, :3] * errors))
        np.testing.assert_allclose(tests.moments(outcomes - forecasts, weights), expected, atol=1e-14)
        np.testing.assert_allclose(weights @ tests.row_moments(outcomes - forecasts), expected, atol=1e-14)
        # No forecast and outcome differ by more than one in a cumulative probability.
        corners = np.eye(4)[[0, 3, 1, 2, 0]]
        assert np.abs(tests.take(slice(4)).row_moments(corners[1:] - corners[:-1])).max() <= 1.0
    assert guarantees.Cumulative().evaluate(forecasts, space).names[0] == f"{space.coordinate_names[0]} or less"


def test_cumulative_without_slack_is_unbiased() -> None:
    problem = prudent.DecisionProblem.from_payoffs(np.random.default_rng(1).random((4, 5)))
    forecasts = np.random.default_rng(2).dirichlet(np.ones(5), 40)
    for orthogonal, other in ((False, guarantees.Unbiased()), (True, None)):
        lower = prudent.RobustPolicy(problem, guarantees.Cumulative(orthogonal)).fit(forecasts).certificate_
        assert lower.status == "optimal"
        if other is not None:
            again = prudent.RobustPolicy(problem, other).fit(forecasts).certificate_
            assert lower.lower == pytest.approx(again.lower, abs=1e-6)


def test_slack_of_cumulative_probabilities_does_not_add_up_over_points() -> None:
    """On grids from coarse to fine, nested, what audited slack leaves hardly falls; that of single points collapses."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(5, 15, 400)
    outcomes = np.clip(centres + rng.normal(size=400) * 2, 0, 20)
    samples = np.clip(centres[:, None] + rng.normal(size=(400, 100)) * 2, 0, 20)
    found = {}
    for n_points in (6, 41):
        problem = prudent.DecisionProblem.from_utility(
            lambda a, y: 5 * min(a, y) - 2 * a, np.linspace(0, 20, 6).tolist(), np.linspace(0, 20, n_points)
        )
        assert problem.discretization.error == 0.0
        forecasts = prudent.forecasts_from(problem, samples=samples).probabilities
        for guarantee in (guarantees.Unbiased(), guarantees.Cumulative()):
            policy = prudent.RobustPolicy(problem, guarantee, slack="audit").fit(forecasts, outcomes)
            realised = (problem.utility(outcomes) * policy.predict_proba(forecasts)).sum(axis=1).mean()
            found[type(guarantee).__name__, n_points] = policy.certificate_.lower, realised
    assert found["Cumulative", 41][0] > 0.93 * found["Cumulative", 6][0]
    assert found["Cumulative", 41][1] >= 0.999 * found["Cumulative", 6][1]
    assert found["Unbiased", 41][0] < 0.7 * found["Unbiased", 6][0]


@pytest.mark.parametrize("orthogonal", [1, "yes", None])
def test_cumulative_checks_what_it_gets(orthogonal: object) -> None:
    with pytest.raises(InputError, match="orthogonal must be True or False"):
        guarantees.Cumulative(orthogonal)
    with pytest.raises(InputError, match="for ordered classes and grids"):
        guarantees.Cumulative().evaluate(np.array([[0.5]]), prudent.Box(0, 1))
