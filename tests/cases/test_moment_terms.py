"""Terms of the sums: errors by chance against an enumeration of the outcomes."""

from __future__ import annotations

import numpy as np
import pytest

from prudent.cases.moment_sums import ARRAYS, row_terms, scalar_terms, unit_terms


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 3.0)])
def test_outcomes_at_the_ends_have_these_moments(low: float, high: float) -> None:
    forecast = np.linspace(low, high, 11)
    share = (forecast - low) / (high - low)
    moments = [share * (high - forecast) ** k + (1 - share) * (low - forecast) ** k for k in (2, 4)]
    terms = scalar_terms(None, forecast, forecast, low, high)
    np.testing.assert_allclose(terms["chance_second"], moments[0], atol=1e-14)
    np.testing.assert_allclose(terms["chance_fourth"], moments[1], atol=1e-13)


def test_classes_have_the_moments_of_draws_from_the_forecast() -> None:
    rng = np.random.default_rng(0)
    forecasts, tests = rng.dirichlet(np.ones(3), 20), rng.normal(size=(20, 3))
    draws = tests - (tests * forecasts).sum(axis=1, keepdims=True)  # the error if each class happens
    found = row_terms(tests.T, tests.T, forecasts.T, [(0.0, 1.0)] * 3, classes=True, arithmetic=ARRAYS)
    np.testing.assert_allclose(found["deviation"] ** 2, (forecasts * draws**2).sum(axis=1))
    np.testing.assert_allclose(found["fourth"], (forecasts * draws**4).sum(axis=1))
    np.testing.assert_allclose(found["far"], np.abs(draws).max(axis=1))


def test_without_a_fourth_moment_there_is_a_bound() -> None:
    rng = np.random.default_rng(1)
    forecasts, tests = rng.random((2, 30)), rng.normal(size=(2, 30))
    terms = row_terms(tests, forecasts, forecasts, [(0.0, 1.0)] * 2, classes=False, arithmetic=ARRAYS)
    bound = unit_terms(1.0, **terms)["chance_fourth"]
    ends = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    for i in range(30):
        v, b = forecasts[:, i], tests[:, i]
        shares = np.prod(np.where(ends == 1.0, v, 1 - v), axis=1)
        assert shares @ ((ends - v) @ b) ** 4 <= bound[i] * (1 + 1e-12)


def test_probabilities_that_exceed_one_by_rounding_have_a_deviation() -> None:
    forecast = np.array([1.0 + 1e-13])
    terms = row_terms([np.ones(1)], [forecast], [forecast], [(0.0, 1.0)], classes=False, arithmetic=ARRAYS)
    assert np.isfinite(terms["deviation"]).all()
