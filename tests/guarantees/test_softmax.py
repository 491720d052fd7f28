"""Logarithms of forecasts, by hand, and where they are refused."""

from __future__ import annotations

import numpy as np
import pytest

from prudent import Box, Simplex, guarantees
from prudent.errors import InputError

UNIT = Box(0, 1)


def test_log_odds_and_temperature() -> None:
    forecasts = np.array([[0.5, 0.3, 0.2]])
    odds = guarantees.LogOdds().evaluate(forecasts, Simplex(3, classes=["a", "b", "c"]))
    np.testing.assert_allclose(odds.values, [[1, np.log(2.5), np.log(1.5)]])
    assert odds.names[3:6] == ("log-odds a:c x y[a]", "log-odds a:c x y[b]", "log-odds a:c x y[c]")
    heat = guarantees.Temperature().evaluate(forecasts, Simplex(3))
    np.testing.assert_allclose(heat.values[:, 0], np.log(forecasts))
    single = guarantees.LogOdds(intercept=False).evaluate(np.array([[0.2]]), UNIT)
    np.testing.assert_allclose(single.values, [[np.log(0.25)]])
    with pytest.raises(InputError, match="strictly inside the space; row 1 do not"):
        guarantees.LogOdds().evaluate(np.array([[0.5, 0.5], [1.0, 0.0]]), Simplex(2))
    with pytest.raises(InputError, match="Simplex or a box of one coordinate"):
        guarantees.LogOdds().evaluate(np.array([[0.5, 0.5]]), Box([0, 0], [1, 1]))
