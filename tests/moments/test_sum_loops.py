"""Sums of moments in one compiled pass are those that NumPy finds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import prudent
from prudent import compiled, guarantees
from prudent.moments import MomentSums, moment_sums
from prudent.moments.sum_loops import SUMS, add_up_scalar_tests, add_up_vector_tests

RNG = np.random.default_rng(8)
N = 2_000
BOX = prudent.DecisionProblem(RNG.normal(size=(3, 2)), RNG.random(3), space=prudent.Box([0.0, -5.0], [10.0, 7.0]))
CLASSES = prudent.DecisionProblem.from_payoffs(RNG.normal(size=(3, 4)))
SCALAR, VECTOR = guarantees.SelfOrthogonal(intercept=True), guarantees.UtilityCalibrated
CASES = [
    (problem, guarantee, ends, equal)
    for problem in (BOX, CLASSES)
    for guarantee in (SCALAR, guarantees.DecisionCalibrated(problem), VECTOR(problem), SCALAR & VECTOR(problem))
    for ends in (False, True)
    for equal in (False, True)
]


def rows(problem: prudent.DecisionProblem, ends: bool) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and outcomes, which are all at the ends of the space or not."""
    low, high = problem.space.bounds
    if problem is CLASSES:
        forecasts = RNG.dirichlet(np.ones(4), size=N)
        outcomes = np.eye(4)[RNG.integers(0, 4, size=N)] if ends else RNG.dirichlet(np.ones(4), size=N)
        return forecasts, outcomes
    shares = RNG.integers(0, 2, size=(N, 2)) if ends else RNG.random((N, 2))
    return low + (high - low) * RNG.random((N, 2)), low + (high - low) * shares


@pytest.mark.parametrize(("problem", "guarantee", "ends", "equal"), CASES)
def test_one_pass_adds_up_the_same(
    monkeypatch: pytest.MonkeyPatch, problem: prudent.DecisionProblem, guarantee: Any, ends: bool, equal: bool
) -> None:
    pytest.importorskip("numba")
    forecasts, outcomes = rows(problem, ends)
    weights = np.full(N, 1 / N) if equal else RNG.dirichlet(np.ones(N))
    found: list[MomentSums] = []
    for switch in ("1", "0"):
        monkeypatch.setattr(compiled, "switch", switch)
        found.append(moment_sums(guarantee, problem.space, forecasts, outcomes, weights))
    looped, plain = found
    assert (plain.chance_second is not None) == ends
    for field in fields(MomentSums):
        one, other = getattr(looped, field.name), getattr(plain, field.name)
        if field.name != "tests" and other is not None:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12 * np.abs(other).max(initial=0.0))


def test_the_loops_as_they_are_written() -> None:
    low, high = np.zeros(2), np.ones(2)
    forecasts, outcomes = RNG.random((30, 2)), RNG.integers(0, 2, (30, 2)).astype(float)
    weights, values = RNG.dirichlet(np.ones(30)), RNG.normal(size=(30, 3))
    values[::3] = 0.0
    given = forecasts, outcomes, weights, low, high
    scalar = dict(zip(SUMS, add_up_scalar_tests(values, *given).T, strict=True))
    written_out = np.zeros((30, 6, 2))
    for test in range(3):
        for j in range(2):
            written_out[:, 2 * test + j, j] = values[:, test]
    vector = dict(zip(SUMS, add_up_vector_tests(written_out, *given, False).T, strict=True))
    terms = weights[:, None] * np.einsum("nkd,nd->nk", written_out, outcomes - forecasts)
    for sums in (scalar, vector):
        np.testing.assert_allclose(sums["first"], terms.sum(axis=0))
        np.testing.assert_allclose(sums["second"], (terms**2).sum(axis=0))
        np.testing.assert_allclose(sums["fourth"], (terms**4).sum(axis=0))
        np.testing.assert_allclose(sums["cross"], weights @ terms)
        np.testing.assert_allclose(
            sums["squared_reach"], ((weights[:, None] * np.repeat(values, 2, axis=1)) ** 2).sum(0)
        )
    np.testing.assert_allclose(scalar["chance_second"], vector["chance_second"])
