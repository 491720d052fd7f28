"""What all guarantees share: joining, and numbers that must be whole."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.errors import InputError, OutsideSpaceError
from prudent.guarantees.base import symbolic_tests
from prudent.guarantees.expressions import Arrays


def test_and_joins_names_and_mixes_scalar_with_vector() -> None:
    problem = prudent.DecisionProblem([[1.0, 2.0], [3.0, 0.0]])
    both = guarantees.Unbiased() & guarantees.Unbiased() & guarantees.UtilityCalibrated(problem)
    assert len(both.parts) == 3
    tests = both.evaluate(np.array([[0.1, 0.9]]), problem.space)
    assert tests.names == ("1 x y[0]", "1 x y[1]", "1 x y[0] (2)", "1 x y[1] (2)", "utility")
    assert tests.values.shape == (1, 5, 2)
    assert tests.groups.tolist() == [0, 0, 1, 1, 2]
    with pytest.raises(TypeError):
        guarantees.Unbiased() & "something"


def test_best_responding_needs_no_forecast_at_which_all_tests_are_defined() -> None:
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    joined = guarantees.LogOdds() & guarantees.UtilityCalibrated(problem) & guarantees.Bins([0, 0.5, 1])
    multipliers = joined.plug_in_multipliers(problem)
    np.testing.assert_array_equal(multipliers, [0, 0, -1, 0, 0])
    functions = guarantees.FromFunctions([np.sin, np.ravel]) & guarantees.UtilityCalibrated(problem)
    np.testing.assert_array_equal(functions.plug_in_multipliers(problem), [0, 0, -1])
    rng = np.random.default_rng(0)
    forecasts = rng.uniform(0.3, 0.7, 500)
    outcomes = (rng.random(500) < forecasts).astype(float)
    assert prudent.audit(problem, forecasts, outcomes, guarantee=joined).n_rows == 500


@pytest.mark.parametrize("make", [guarantees.Polynomial, guarantees.TopLabel, guarantees.Bins])
@pytest.mark.parametrize("count", [-1, 2.5, "3", True])
def test_counts_must_be_whole(make: object, count: object) -> None:
    with pytest.raises(InputError, match="must be a whole number"):
        make(count)


LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
CLASSES = prudent.DecisionProblem.from_payoffs([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.6]])
RNG = np.random.default_rng(3)
ROWS = {1: RNG.beta(2, 3, (20_000, 1)), 3: RNG.dirichlet([1, 2, 1], 20_000)}
CASES = [
    (LINE, guarantees.SelfOrthogonal(intercept=True)),
    (LINE, guarantees.Polynomial(5)),
    (LINE, guarantees.Bins(5) & guarantees.Bins(5) & guarantees.DecisionCalibrated(LINE)),
    (LINE, guarantees.LogOdds() & guarantees.Bins([0, 0.3, 1]) & guarantees.UtilityCalibrated(LINE)),
    (CLASSES, guarantees.Polynomial(2) & guarantees.Classwise(3)),
    (CLASSES, guarantees.TopLabel(4) & guarantees.Temperature()),
    (CLASSES, guarantees.TopLabelPooled(5) & guarantees.DecisionCalibrated([CLASSES, CLASSES])),
]


@pytest.mark.parametrize(("problem", "guarantee"), CASES, ids=lambda value: f"{value!r:.50}")
def test_terms_add_up_to_the_tilt_to_the_last_bit(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee
) -> None:
    rows = ROWS[problem.dimension]
    tests = guarantee.evaluate(rows, problem.space)
    multipliers = RNG.normal(size=tests.n_moments) * (RNG.random(tests.n_moments) < 0.8)
    at, total = Arrays(rows), np.zeros(rows.shape)
    for term in symbolic_tests(guarantee, problem.space).tilt(multipliers):
        table = term.table[np.zeros(len(rows), dtype=int) if term.label is None else at(term.label)]
        total += table if term.factor is None else table * np.reshape(at(term.factor), (-1, 1))
    np.testing.assert_array_equal(total, tests.tilts(multipliers))


@pytest.mark.parametrize(("problem", "guarantee"), CASES, ids=lambda value: f"{value!r:.50}")
def test_a_row_has_the_same_tests_alone(problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee) -> None:
    rows = ROWS[problem.dimension]
    together = guarantee.evaluate(rows, problem.space).values
    for row in (0, 8_191, 8_192, 19_999):
        np.testing.assert_array_equal(guarantee.evaluate(rows[row : row + 1], problem.space).values[0], together[row])


def test_rows_that_break_a_condition_are_named_in_one_way() -> None:
    rule = "the guarantee takes logarithms, so forecasts must lie strictly inside the space"
    for guarantee in (guarantees.LogOdds(), guarantees.Temperature()):
        with pytest.raises(OutsideSpaceError, match=rf"^{rule}; rows 1, 2 do not \(first: \[0.0\]\)\.") as refused:
            guarantee.evaluate(np.array([[0.5], [0.0], [1.0]]), prudent.Box(0, 1))
        assert refused.value.rows == (1, 2)


def test_bins_must_cover_the_space() -> None:
    assert symbolic_tests(guarantees.Bins([-1, 0.5, 1]), prudent.Box(0, 1)).labels
    with pytest.raises(prudent.errors.InputError, match=r"edges must cover the outcome space, \[0.0, 1.0\]; got \[0.1"):
        symbolic_tests(guarantees.Bins([0.1, 1]), prudent.Box(0, 1))


def test_labels_and_numbers_are_what_columns_are_made_of() -> None:
    classwise = symbolic_tests(guarantees.Classwise(3), CLASSES.space)
    assert len(classwise.labels) == 3
    assert classwise.numbers == ()
    polynomial = symbolic_tests(guarantees.Polynomial(3), prudent.Box(0, 1))
    assert polynomial.labels == ()
    assert len(polynomial.numbers) == 3
