"""The door: what comes in, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import prudent
from prudent import guarantees
from prudent.arrays import (
    describe_rows,
    largest_in_columns,
    largest_in_rows,
    row_weights,
    smallest_in_columns,
    smallest_in_rows,
    sums_of_rows,
)
from prudent.errors import InputError

VALUES = [0.1, 0.4, 0.9]
PROBLEM = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])


@pytest.mark.parametrize(
    "forecasts",
    [
        VALUES,
        tuple(VALUES),
        np.array(VALUES),
        np.array(VALUES)[:, None],
        np.array(VALUES, dtype=np.float32),
        np.array(VALUES, dtype=object),
        np.array([*VALUES, 0.3, 0.2, 0.1])[::1][:3],
        np.asfortranarray(np.array(VALUES)[:, None]),
        pd.Series(VALUES),
        pd.DataFrame({"f": VALUES}),
        pl.Series(VALUES),
        pl.DataFrame({"f": VALUES}),
        pa.array(VALUES),
        pa.chunked_array([VALUES[:1], VALUES[1:]]),
        pa.table({"f": VALUES}),
    ],
    ids=lambda value: f"{type(value).__module__.split('.')[0]}-{type(value).__name__}",
)
def test_everything_that_holds_numbers_is_accepted(forecasts: object) -> None:
    policy = prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal()).fit(forecasts)
    assert policy.certificate_.lower == pytest.approx(
        prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal()).fit(VALUES).certificate_.lower, abs=1e-6
    )
    assert policy.predict_proba(forecasts).shape == (3, 2)


def test_column_names_are_remembered_and_checked() -> None:
    policy = prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal()).fit(pd.DataFrame({"demand": VALUES}))
    assert policy.feature_names_in_.tolist() == ["demand"]
    with pytest.raises(ValueError, match="feature names should match"):
        policy.predict(pd.DataFrame({"other": VALUES}))


@pytest.mark.parametrize(
    ("forecasts", "message"),
    [
        ([0.1, np.nan], "forecasts must be finite; got NaN, infinity .* in row 1"),
        ([0.1, np.inf], "forecasts must be finite"),
        ([None, 0.1], "forecasts must be"),
        ([], "at least one row"),
        (np.zeros((0, 1)), "at least one row"),
        (np.zeros((3, 0)), "0 feature"),
        (np.zeros((3, 2)), r"1 column\(s\), one per coordinate of the outcome space; got shape \(3, 2\)"),
        (np.zeros((2, 2, 2)), "one- or two-dimensional"),
        (0.5, "one- or two-dimensional"),
        (["low", "high"], "forecasts must be numbers"),
        ([[0.1], [0.2, 0.3]], "rectangular"),
        (np.array([0.1 + 1j]), "Complex"),
        (scipy.sparse.csr_matrix([[0.1]]), "sparse"),
        (np.ma.masked_array([0.1, 0.2], mask=[0, 1]), "masked"),
        (pl.LazyFrame({"f": VALUES}), "lazy"),
        ({"f": VALUES}, "forecasts must be"),
    ],
)
def test_bad_forecasts_are_refused(forecasts: object, message: str) -> None:
    for policy in (prudent.RobustPolicy(PROBLEM, guarantees.Unbiased()), prudent.PlugInPolicy(PROBLEM)):
        with pytest.raises(InputError, match=message):
            policy.fit(forecasts)


def test_a_flat_list_is_refused_where_rows_are_needed() -> None:
    problem = prudent.DecisionProblem([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InputError, match=r"Expected 2D array, got 1D array instead.*single row is"):
        prudent.PlugInPolicy(problem).predict([0.1, 0.2])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], "must not be negative; it is in row 1"),
        ([1, np.nan, 1], "weights must be finite"),
        ([0, 0, 0], "must not be zero for all rows"),
        ([1, 1], r"shape \(3,\), one weight per row; got \(2,\)"),
        ([[1], [1], [1]], r"shape \(3,\)"),
        (["a", "b", "c"], "weights must be numbers"),
    ],
)
def test_bad_weights_are_refused(weights: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal()).fit(VALUES, sample_weight=weights)


def test_weights_survive_extreme_sizes() -> None:
    for size in (1e300, 1e-300):
        weights, used = row_weights([size, 3 * size], 2)
        np.testing.assert_allclose(weights, [0.25, 0.75])
        assert used.all()


def test_zero_weights_are_as_good_as_absent() -> None:
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    full = prudent.RobustPolicy(PROBLEM, guarantee).fit([0.1, 0.4, 0.9, 0.7], sample_weight=[1, 2, 1, 0])
    part = prudent.RobustPolicy(PROBLEM, guarantee).fit([0.1, 0.4, 0.9], sample_weight=[1, 2, 1])
    assert full.certificate_ == part.certificate_
    np.testing.assert_array_equal(full.multipliers_, part.multipliers_)
    worst = prudent.worst_case(full, [0.1, 0.4, 0.9, 0.7], guarantee=guarantee, weights=[1, 2, 1, 0])
    assert worst.beliefs.shape == (4, 1)
    assert worst.beliefs[3, 0] == 0.7


def test_rows_are_described_briefly() -> None:
    assert describe_rows([4]) == "row 4"
    assert describe_rows([4, 7]) == "rows 4, 7"
    assert describe_rows(list(range(12))) == "12 rows (0, 1, 2, 3, 4, ...)"


@pytest.mark.parametrize("shape", [(5, 3), (4_000, 1), (4_000, 3), (4_000, 20), (2_000, 2, 4)])
def test_least_and_largest_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    table = np.random.default_rng(1).normal(size=shape)
    table.flat[7] = np.nan
    before = table.copy()
    np.testing.assert_array_equal(smallest_in_rows(table), table.min(axis=-1))
    np.testing.assert_array_equal(largest_in_rows(table), table.max(axis=-1))
    np.testing.assert_array_equal(table, before)


@pytest.mark.parametrize("shape", [(0, 3), (5, 3), (4_000, 1), (4_000, 3), (4_000, 8), (4_000, 20)])
def test_columns_and_sums_are_those_of_numpy(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(2).normal(size=shape)
    np.testing.assert_array_equal(smallest_in_columns(table, 0.1), table.min(axis=0, initial=0.1))
    np.testing.assert_array_equal(largest_in_columns(table, 0.1), table.max(axis=0, initial=0.1))
    np.testing.assert_allclose(sums_of_rows(table), table.sum(axis=1), rtol=1e-12, atol=1e-12)
    if len(table):
        table[3, 0] = np.nan
        assert np.isnan(smallest_in_columns(table)[0])
        assert np.isnan(largest_in_columns(table)[0])
        assert np.isnan(sums_of_rows(table)[3])
