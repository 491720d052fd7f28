"""The demonstration's numbers hold together."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent.demo import demonstration_sample, run_demonstration
from prudent.formatting import format_number


def test_both_answers_are_those_of_the_library() -> None:
    found, (problem, forecasts, outcomes) = run_demonstration(), demonstration_sample()
    before = prudent.advise(problem, forecasts, guarantee="self-orthogonal")
    after = prudent.advise(problem, forecasts, outcomes)
    assert found.before.to_dict() == before.to_dict()
    assert found.after.to_dict() == after.to_dict()
    assert str(before) in str(found)
    assert str(after) in str(found)


def test_the_first_certificate_is_what_the_stress_test_finds() -> None:
    found = run_demonstration().before
    worst = dict(zip(("plug-in", "advised", "safety"), found.stress_test().worst, strict=True))
    assert worst["advised"] == pytest.approx(found.certificate.lower, abs=1e-6)
    assert worst["advised"] > worst["plug-in"]
    assert worst["advised"] > worst["safety"]
    assert f"at least {format_number(found.certificate.lower, 4)} points" in str(found)


def test_the_sample_is_cross_fitted() -> None:
    """Its errors are not orthogonal to the forecasts, as those of the rows of the fit are."""
    problem, forecasts, outcomes = demonstration_sample()
    problem.space.place(forecasts, "forecasts")
    assert forecasts.shape == outcomes.shape == (442,)
    assert abs(np.mean(forecasts * (outcomes - forecasts))) > 1.0
