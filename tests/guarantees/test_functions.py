"""Tests that are Python functions: shapes, bounds, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import Box, guarantees
from prudent.errors import InputError

UNIT = Box(0, 1)
V = np.array([[0.0], [0.25], [0.5], [0.75], [1.0]])
WEIGHTS = np.full(5, 0.2)


def test_partition_remembers_the_cells_it_saw() -> None:
    cells = guarantees.Partition(lambda v: np.where(v[:, 0] < 0.5, "low", "high"))
    resolved = cells.resolve(V[:2], WEIGHTS[:2], UNIT)
    assert resolved.cells == ("low",)
    np.testing.assert_array_equal(resolved.evaluate(V, UNIT).values, [[1], [1], [0], [0], [0]])
    with pytest.raises(InputError, match=r"one cell per row, shape \(5,\)"):
        guarantees.Partition(lambda v: v[:1, 0]).evaluate(V, UNIT)


def test_functions_may_be_scalar_or_vector() -> None:
    guarantee = guarantees.FromFunctions([lambda v: v[:, 0] ** 2, lambda v: v[:, ::-1]], names=["square", "flip"])
    tests = guarantee.evaluate(np.array([[0.5, 0.2]]), Box([0, 0], [1, 1]))
    np.testing.assert_allclose(tests.values[0], [[0.25, 0], [0, 0.25], [0.2, 0.5]])
    assert tests.names == ("square x y[0]", "square x y[1]", "flip")
    assert tests.groups.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: v[:2, 0], r"must return shape \(5,\) or \(5, 1\); got \(2,\)"),
        (lambda v: np.full(5, np.nan), "'h1' must be finite"),
        (lambda v: ["a"] * 5, "'h1' must be numbers"),
    ],
)
def test_bad_functions_are_refused(function: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        guarantees.FromFunctions([function]).evaluate(V, UNIT)


def test_declared_bounds_are_checked_and_scale() -> None:
    guarantee = guarantees.FromFunctions([lambda v: 4 * v[:, 0]], bounds=[4.0])
    assert guarantee.evaluate(V, UNIT).scales.tolist() == [4.0]
    with pytest.raises(InputError, match="reaches 4, above its declared bound 2"):
        guarantees.FromFunctions([lambda v: 4 * v[:, 0]], bounds=[2.0]).evaluate(V, UNIT)
    for arguments in ({"functions": []}, {"functions": [1]}, {"functions": [np.sin], "names": ["a", "b"]}):
        with pytest.raises(InputError):
            guarantees.FromFunctions(**arguments)
    with pytest.raises(InputError, match="bounds must be 1 positive numbers"):
        guarantees.FromFunctions([np.sin], bounds=[-1])


def test_functions_cannot_change_the_forecasts() -> None:
    values = V.copy()

    def vandal(v: np.ndarray) -> np.ndarray:
        v[:] = 0.5
        return v[:, 0]

    guarantees.FromFunctions([vandal]).evaluate(values, UNIT)
    np.testing.assert_array_equal(values, V)


THREE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["a", "b", "c"])


def test_partitions_cannot_change_the_forecasts() -> None:
    def vandal(v: np.ndarray) -> np.ndarray:
        v[:] = 0.0
        return np.zeros(len(v))

    forecasts = np.array([[0.2], [0.9]])
    prudent.RobustPolicy(THREE, guarantees.Partition(vandal)).fit(forecasts)
    assert forecasts[1, 0] == 0.9


def test_functions_are_described_by_name() -> None:
    guarantee = guarantees.FromFunctions([np.sin], names=["sine"], bounds=[1.0])
    assert repr(guarantee) == "FromFunctions(sine)"
    described = {"kind": "FromFunctions", "functions": ["sin"], "names": ["sine"], "bounds": [1.0]}
    assert guarantee.to_dict() == described | {"context": []}
    assert repr(guarantees.Partition(np.sin)) == "Partition(sin)"
    described = {"kind": "Partition", "function": "sin", "cells": None, "context": []}
    assert guarantees.Partition(np.sin).to_dict() == described


class TestFunctionsOfContext:
    REGION = np.array(["north", "south", "north", "south"])

    def guarantee(self) -> guarantees.FromFunctions:
        tests = [lambda v, z: v[:, 0] * (z["region"] == "north"), lambda v, z: 1.0 * (z["region"] == "south")]
        return guarantees.FromFunctions(tests, names=["north", "south"], context="region")

    def test_are_evaluated_on_the_rows_of_the_columns(self) -> None:
        tests = self.guarantee().evaluate(V[:4], UNIT, {"region": self.REGION})
        expected = [[v * (name == "north"), name == "south"] for v, name in zip(V[:4, 0], self.REGION, strict=True)]
        np.testing.assert_array_equal(tests.values, np.array(expected, dtype=float))

    def test_are_played_and_certified_with_the_same_columns(self) -> None:
        forecasts, context = np.array([0.2, 0.9, 0.4, 0.7]), {"region": self.REGION, "other": np.zeros(4)}
        policy = prudent.RobustPolicy(THREE, self.guarantee()).fit(forecasts, context=context)
        assert policy.columns == ("region",)
        worst = prudent.worst_case(policy, forecasts, guarantee=self.guarantee(), context=context)
        assert worst.value == pytest.approx(policy.certificate_.lower, abs=1e-6)
        cases = prudent.Cases(forecasts, context=context)
        np.testing.assert_array_equal(policy.predict_proba(cases), policy.predict_proba(forecasts, context=context))
        assert policy.certify(cases).lower == pytest.approx(policy.certificate_.lower, abs=1e-9)

    @pytest.mark.parametrize(
        ("context", "message"),
        [
            (None, r"context must have the column 'region', .*; got no context. Pass context=\{'region'"),
            ({"place": REGION}, r"must have the column 'region', .*; got \['place'\]"),
            ({"region": REGION[:3]}, r"region.* must have one (value|row) per forecast, 4"),
            ({"region": np.array(["north", None, "south", None])}, "'region' must have no missing .* rows 1, 3 have"),
            ([1, 2], "context must be a frame or a mapping of column names to columns; got list"),
        ],
    )
    def test_need_their_columns(self, context: object, message: str) -> None:
        forecasts, known = np.array([0.2, 0.9, 0.4, 0.7]), {"region": self.REGION}
        policy = prudent.RobustPolicy(THREE, self.guarantee()).fit(forecasts, context=known)
        for ask in (policy.predict, policy.predict_proba, policy.worst_case_belief, policy.certify):
            with pytest.raises(InputError, match=message):
                ask(forecasts, context=context)
        with pytest.raises(InputError, match=message):
            prudent.RobustPolicy(THREE, self.guarantee()).fit(forecasts, context=context)

    def test_names_of_columns_are_checked(self) -> None:
        with pytest.raises(InputError, match="context must be"):
            guarantees.FromFunctions([np.sin], context=["a", "a"])
