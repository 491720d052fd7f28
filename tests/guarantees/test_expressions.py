"""Expressions in NumPy: every kind against a formula of its own."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent.guarantees.engine_tests import Narwhals
from prudent.guarantees.expressions import (
    ONE,
    Arrays,
    BestResponse,
    Bin,
    Chebyshev,
    Coordinate,
    Indicator,
    Largest,
    LargestCoordinate,
    Logarithm,
    Pair,
)

POINTS = np.random.default_rng(0).dirichlet(np.ones(3), 200)
A, B, C = POINTS.T
PROBLEM = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
EXPECTED = [
    ((Coordinate(0) - 0.25) / 2.0 * 3.0 + Coordinate(1), (A - 0.25) / 2 * 3 + B),
    (1.0 - Coordinate(2), 1 - C),
    (Logarithm(Coordinate(1)) - Logarithm(Coordinate(0)), np.log(B) - np.log(A)),
    (Chebyshev(3, Coordinate(0)), (A + A) * ((A + A) * A - 1) - A),
    (Largest(3), POINTS.max(axis=1)),
    (LargestCoordinate(3), POINTS.argmax(axis=1)),
    (Bin(Coordinate(1), (0.0, 0.25, 0.5, 1.0)), (B >= 0.25) * 1 + (B >= 0.5)),
    (BestResponse(PROBLEM), PROBLEM.best_actions(POINTS)),
    (
        Pair(LargestCoordinate(3), Bin(Largest(3), (0.0, 0.5, 1.0))),
        2 * POINTS.argmax(axis=1) + (POINTS.max(axis=1) >= 0.5),
    ),
]


@pytest.mark.parametrize(("expression", "expected"), EXPECTED, ids=lambda value: type(value).__name__)
def test_every_kind_is_what_numpy_says(expression: object, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(Arrays(POINTS)(expression), expected)


def test_utilities_have_the_sums_of_the_problem() -> None:
    at = Arrays(POINTS)
    found = np.stack([at(utility) for utility in BestResponse(PROBLEM).utilities], axis=1)
    np.testing.assert_array_equal(found, PROBLEM.linear_utility(POINTS))


def test_equal_expressions_are_one_and_are_evaluated_once() -> None:
    one, other = (Chebyshev(2, Coordinate(0) * 2.0 - 1.0) for _ in range(2))
    assert one == other
    assert len({one, other, Chebyshev(3, Coordinate(0))}) == 2
    at = Arrays(POINTS)
    assert at(one) is at(other)


def test_what_is_known_is_not_computed() -> None:
    label = BestResponse(PROBLEM)
    known = np.zeros(len(POINTS), dtype=np.int64)
    assert Arrays(POINTS, {label: known})(label) is known


def test_numbers_of_labels() -> None:
    assert Pair(LargestCoordinate(3), Bin(Largest(3), (0.0, 0.5, 1.0))).n_labels == 6
    assert BestResponse(PROBLEM).n_labels == 3


def test_columns_of_a_table_are_for_arrays() -> None:
    assert Arrays(POINTS)(ONE) == 1.0
    column = Indicator(LargestCoordinate(3), 1)
    np.testing.assert_array_equal(Arrays(POINTS)(column), POINTS.argmax(axis=1) == 1)
    with pytest.raises(TypeError, match="is a column of tests"):
        Narwhals()(column)
