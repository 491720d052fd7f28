"""The demonstration's numbers hold together."""

from __future__ import annotations

import numpy as np
import pytest

from prudent.demo import demonstration_sample, run_demonstration


def test_the_certificate_is_what_the_stress_test_finds() -> None:
    found = run_demonstration()
    assert max(abs(value) for value in found.moments.values()) < 1e-10
    worst = dict(zip(found.stress.names, found.stress.worst, strict=True))
    assert worst["robust"] == pytest.approx(found.certificate.lower, abs=1e-6)
    assert worst["robust"] > worst["plug-in"]
    assert worst["robust"] > worst["safety"]
    assert f"at least {found.certificate.lower:.2f}" in str(found)


def test_the_sample_is_cross_fitted() -> None:
    """Its errors are not orthogonal to the forecasts, as those of the rows of the fit are."""
    problem, forecasts, outcomes = demonstration_sample()
    problem.space.place(forecasts, "forecasts")
    assert forecasts.shape == outcomes.shape == (442,)
    assert abs(np.mean(forecasts * (outcomes - forecasts))) > 1.0
