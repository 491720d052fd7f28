"""Tests that an engine evaluates are those of NumPy."""

from __future__ import annotations

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest

import prudent
from prudent import guarantees
from prudent.errors import InputError
from prudent.guarantees.engine_tests import engine_tests

LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
CLASSES = prudent.DecisionProblem.from_payoffs([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.6]])
RNG = np.random.default_rng(5)
ROWS = {1: np.round(RNG.beta(2, 3, (500, 1)), 2).clip(0.01, 0.99), 3: RNG.dirichlet([1, 2, 1], 500)}
CASES = [
    (LINE, guarantees.Polynomial(4) & guarantees.Bins(10)),
    (LINE, guarantees.LogOdds() & guarantees.UtilityCalibrated(LINE) & guarantees.SelfOrthogonal()),
    (CLASSES, guarantees.TopLabel(4) & guarantees.Unbiased()),
    (CLASSES, guarantees.Classwise(3) & guarantees.DecisionCalibrated(CLASSES)),
]


def columns(rows: np.ndarray, *expressions: nw.Expr) -> np.ndarray:
    frame = nw.from_native(pl.DataFrame({f"v{j}": column for j, column in enumerate(rows.T)}).lazy())
    named = [expression.alias(f"c{i}") for i, expression in enumerate(expressions)]
    return frame.with_columns(*named).select(*(f"c{i}" for i in range(len(named)))).collect().to_numpy()


@pytest.mark.parametrize(("problem", "guarantee"), CASES, ids=lambda value: f"{value!r:.50}")
def test_labels_numbers_and_tilts_are_those_of_numpy(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee
) -> None:
    rows, tests = ROWS[problem.dimension], engine_tests(guarantee, problem.space)
    expected = guarantee.evaluate(rows, problem.space)
    labels = columns(rows, *(label.expression for label in tests.labels)).astype(np.int64)
    numbers = columns(rows, *tests.numbers.values()) if tests.numbers else np.zeros((len(rows), 0))
    assembled = tests.assemble(labels, dict(zip(tests.numbers, numbers.T, strict=True)))
    np.testing.assert_allclose(assembled.as_vector().values, expected.as_vector().values, rtol=0, atol=1e-14)
    multipliers = RNG.normal(size=expected.n_moments)
    tilts = columns(rows, *tests.tilts(multipliers))
    np.testing.assert_allclose(tilts, expected.tilts(multipliers), rtol=0, atol=1e-13)
    assert all(columns(rows, condition).all() for condition, _ in tests.conditions)


def test_coordinates_have_the_names_of_their_columns() -> None:
    tests = engine_tests(guarantees.Polynomial(2) & guarantees.SelfOrthogonal(), LINE.space)
    assert set(tests.numbers) > {"v0"}
    assert len(tests.numbers) == 3


@pytest.mark.parametrize("edges", [10, [0, 0.3, 1]], ids=str)
def test_bins_are_labels_between_cuts(edges: int | list[float]) -> None:
    (label,) = engine_tests(guarantees.Bins(edges), LINE.space).labels
    rows = RNG.random((1000, 1))
    (found,) = columns(rows, label.expression).T
    np.testing.assert_array_equal(found, np.searchsorted(label.cuts, rows[:, 0], side="right"))
    assert label.cuts == pytest.approx(np.arange(1, 10) / 10 if edges == 10 else [0.3])


def test_python_functions_are_refused() -> None:
    with pytest.raises(InputError, match="inside an engine or written in SQL: its tests are Python functions"):
        engine_tests(guarantees.FromFunctions([np.sin]), LINE.space)
