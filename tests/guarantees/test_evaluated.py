"""Tests kept as columns say what the same tests say when they are written out."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.guarantees.evaluated import EvaluatedTests, equal_rows, join, numbered

N = 400
RNG = np.random.default_rng(11)
CLASSES = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]])
PLANE = prudent.DecisionProblem([[1.0, 0.2], [0.1, 1.1], [0.6, 0.6]], [0.0, 0.1, 0.05])
ROWS = {3: RNG.dirichlet([2, 3, 2], N), 2: RNG.beta(2, 3, (N, 2))}
MIXED = [
    (CLASSES, guarantees.SelfOrthogonal(intercept=True) & guarantees.UtilityCalibrated(CLASSES)),
    (PLANE, guarantees.UtilityCalibrated(PLANE) & guarantees.Unbiased()),
    (CLASSES, guarantees.Classwise(5)),
    (PLANE, guarantees.Classwise(4) & guarantees.SelfOrthogonal() & guarantees.UtilityCalibrated(PLANE)),
]


def evaluated(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee
) -> tuple[EvaluatedTests, EvaluatedTests]:
    tests = guarantee.evaluate(ROWS[problem.dimension], problem.space)
    return [tests, tests.as_vector()]


@pytest.mark.parametrize(("problem", "guarantee"), MIXED)
def test_columns_say_what_written_out_tests_say(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee
) -> None:
    columns, plain = evaluated(problem, guarantee)
    d = problem.dimension
    assert (columns.names, columns.dimension, columns.multiplier_shape) == (plain.names, d, plain.multiplier_shape)
    multipliers, weights = RNG.normal(size=columns.n_moments), RNG.random(N)
    residuals, width = RNG.normal(size=(N, d)), np.full(d, 2.0)
    np.testing.assert_array_equal(columns.tilts(multipliers), plain.tilts(multipliers))  # to the last bit
    np.testing.assert_allclose(columns.moments(residuals, weights), plain.moments(residuals, weights), atol=1e-11)
    np.testing.assert_allclose(columns.row_moments(residuals), plain.row_moments(residuals), atol=1e-14)
    assert columns.reach(multipliers, weights, width) == pytest.approx(plain.reach(multipliers, weights, width))
    np.testing.assert_array_equal(columns.seen, plain.seen)
    assert columns.sizes.max() == plain.sizes.max()
    assert columns.table.nbytes < plain.table.nbytes
    some = np.array([3, 1, 200])
    np.testing.assert_array_equal(columns.take(some).as_vector().values, plain.values[some])
    assert columns.without_rows().n_rows == 0
    assert columns.without_rows().names == plain.names


def test_joined_tests_are_those_of_their_parts_written_out() -> None:
    problem, guarantee = MIXED[0]
    parts = [part.evaluate(ROWS[3], problem.space).as_vector() for part in guarantee.parts]
    np.testing.assert_array_equal(join(parts).values, evaluated(problem, guarantee)[1].values)


def test_a_column_without_numbers_is_unseen() -> None:
    problem, guarantee = CLASSES, guarantees.Classwise(5)
    tests = guarantee.evaluate(np.array([[0.9, 0.05, 0.05], [0.8, 0.1, 0.1]]), problem.space)
    np.testing.assert_array_equal(np.flatnonzero(tests.seen), [4, 5, 10])


def test_labels_tell_rows_apart_as_tests_do() -> None:
    decisions = [guarantees.Classwise(3), guarantees.DecisionCalibrated(CLASSES), guarantees.UtilityCalibrated(CLASSES)]
    for guarantee in decisions:
        tests = guarantee.evaluate(ROWS[3], CLASSES.space)
        assert tests.labels is not None
        count, index = tests.cells or (0, np.zeros(0, dtype=np.int64))
        expected = equal_rows(tests.table)
        assert expected is not None
        assert count == expected[0] == index.max() + 1
        # One numbering is the other one in another order.
        assert len({*zip(index.tolist(), expected[1].tolist(), strict=True)}) == count
        part = tests.take(np.arange(0, N, 7))
        assert part.labels is not None
        assert len(part.labels) == part.n_rows


def test_labels_that_do_not_occur_get_no_number() -> None:
    assert numbered(np.array([4, 1, 3])) is None
    found = numbered(np.array([4, 1, 4, 7]))
    assert found is not None
    assert found[0] == 3
    np.testing.assert_array_equal(found[1], [1, 0, 1, 2])


@pytest.mark.parametrize("n", [10, 6_000])
@pytest.mark.parametrize("kinds", [3, 200, 2_000])
def test_groups_hold_equal_rows_and_no_others(n: int, kinds: int) -> None:
    rng = np.random.default_rng(n + kinds)
    table = rng.random((kinds, 3))[rng.integers(0, kinds, n)]
    found = equal_rows(table[:, :2], table[:, 2:, None])
    distinct = len(np.unique(table, axis=0))
    if found is None:
        assert distinct > n // 2  # hardly any are equal
        return
    count, index = found
    assert (count, np.unique(index).tolist()) == (distinct, list(range(distinct)))
    first = np.full((count, 3), np.nan)
    first[index] = table
    np.testing.assert_array_equal(first[index], table)


def test_a_rare_kind_that_no_sample_shows_is_a_group_of_its_own() -> None:
    table = np.zeros((100_000, 1))
    table[77_777] = 1.0
    count, index = equal_rows(table)
    assert count == 2
    np.testing.assert_array_equal(np.flatnonzero(index == index[77_777]), [77_777])


def test_zeros_of_both_signs_are_equal() -> None:
    assert equal_rows(np.array([[0.0], [-0.0], [1.0]]))[0] == 2
