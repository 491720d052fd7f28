"""Radii and p-values are those of the literature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import prudent
from prudent import guarantees
from prudent.cases.intervals import METHODS
from solutions import estimate_moments

SPACE = prudent.Box(0.0, 1.0)


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    v = rng.random((n, 1))
    y = (rng.random((n, 1)) < v).astype(float)
    w = rng.random(n)
    return v, y, w / w.sum()


def test_radii_are_those_of_the_literature() -> None:
    v, y, _ = rows(300)
    w = np.full(300, 1 / 300)
    z = v[:, 0] * (y - v)[:, 0]
    sd, width = z.std(ddof=1), 2.0
    args = (guarantees.SelfOrthogonal(), SPACE, v, y, w)
    bernstein = estimate_moments(*args, confidence=0.95, method="bernstein")
    level = np.log(4 / 0.05)
    assert bernstein.radii[0] == pytest.approx(
        np.sqrt(2 * sd**2 * level / 300) + 7 * width * level / (3 * 299), rel=1e-9
    )
    normal = estimate_moments(*args, confidence=0.95)
    assert normal.methods.tolist() == ["normal"]
    quantile = stats.t(normal.spread.effective[0] - 1).ppf(0.975)
    assert normal.radii[0] == pytest.approx(quantile * sd / np.sqrt(300), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bias", [0.0, 0.04, 0.3])
def test_p_values_and_intervals_agree(method: str, bias: float) -> None:
    v, y, w = rows(600, seed=4)
    y = np.clip(y - bias, 0, 1)
    found = estimate_moments(guarantees.Bins(4).resolve(v, w, SPACE), SPACE, v, y, w, confidence=0.95, method=method)
    outside = np.abs(found.estimates) > found.radii
    np.testing.assert_array_equal(outside, found.p_values < 0.05)


def test_tests_without_bounds_have_no_finite_sample_radius() -> None:
    v, y, w = rows(30)
    v = v * 0.9 + 0.05
    with pytest.raises(prudent.errors.InputError, match="no declared bound"):
        estimate_moments(guarantees.LogOdds(), SPACE, v, y, w, confidence=0.95, method="bernstein")
    found = estimate_moments(guarantees.LogOdds(), SPACE, v, y, w, confidence=0.95)
    assert found.methods[1] == "normal"
