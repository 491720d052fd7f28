"""Decision problems: constructors, tie-break, value semantics, refusals."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from prudent import Box, DecisionProblem, InputError, Simplex
from prudent.errors import FileFormatError


def test_utility_value_and_best_response() -> None:
    problem = DecisionProblem([[1, 2], [3, -1]], [0.5, 0.25], actions=["a", "b"])
    beliefs = [[0.2, 0.4], [1.0, 0.0]]
    np.testing.assert_allclose(problem.utility(beliefs), [[0.5, -0.05], [0.5, 2.75]])
    np.testing.assert_allclose(problem.value(beliefs), [0.5, 2.75])
    assert problem.best_response(beliefs).tolist() == [0, 1]
    assert (problem.n_actions, problem.dimension, problem.actions) == (2, 2, ("a", "b"))
    assert problem.space == Box([0, 0], [1, 1])


def test_ties_go_to_the_first_declared() -> None:
    assert DecisionProblem([1, 1, 1]).best_response([0.3]).tolist() == [0]
    assert DecisionProblem([2, 1], [0.5, 0.0]).best_response([0.5]).tolist() == [0]
    assert DecisionProblem([1, 2], [0.0, 0.5]).best_response([0.5]).tolist() == [0]


def test_from_payoffs_reads_labels_of_frames() -> None:
    table = pd.DataFrame([[0, -10], [-1, -1]], index=["wait", "treat"], columns=["healthy", "ill"])
    problem = DecisionProblem.from_payoffs(table)
    assert problem.actions == ("wait", "treat")
    assert problem.space == Simplex(2, classes=["healthy", "ill"])
    swapped = DecisionProblem.from_payoffs(table, classes=["ill", "healthy"])
    np.testing.assert_array_equal(swapped.rewards, [[-10, 0], [-1, -1]])
    turned = DecisionProblem.from_payoffs(table, actions=["treat", "wait"])
    np.testing.assert_array_equal(turned.rewards, [[-1, -1], [0, -10]])
    assert turned.actions == ("treat", "wait")
    unnamed = DecisionProblem.from_payoffs(table.reset_index(drop=True), actions=["wait", "treat"])
    assert unnamed == problem
    polars = DecisionProblem.from_payoffs(
        pl.DataFrame({"healthy": [0, -1], "ill": [-10, -1]}), actions=["wait", "treat"]
    )
    assert polars == problem


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": [[1, 2]], "classes": ["a"]}, "classes must name the 2 columns of table; got 1"),
        ({"table": [[1], [2]]}, "at least two classes"),
        ({"table": [[1, np.nan]]}, "table must be finite"),
        ({"table": [[1, 2]], "actions": ["a", "b"]}, "actions must name 1 actions"),
        ({"table": pd.DataFrame({"x": [1], "y": [2]}), "classes": ["x", "z"]}, r"missing \['y'\], unknown \['z'\]"),
        (
            {"table": pd.DataFrame({"x": [1], "y": [2]}, index=["go"]), "actions": ["stop"]},
            r"missing \['go'\], unknown \['stop'\]",
        ),
        ({"table": pd.DataFrame([[1, 2]], columns=["x", "x"])}, "columns of table must be distinct"),
    ],
)
def test_bad_payoffs_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DecisionProblem.from_payoffs(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rewards": []}, "at least one action"),
        ({"rewards": np.zeros((2, 2, 2))}, r"shape \(m,\) or \(m, d\)"),
        ({"rewards": [1, np.inf]}, "rewards must be finite"),
        ({"rewards": [1, 2], "costs": [1]}, r"costs must have shape \(2,\)"),
        ({"rewards": [1, 2], "costs": [1, np.nan]}, "costs must be finite"),
        ({"rewards": [1, 2], "actions": ["a", "a"]}, "actions must be distinct; 'a' stands at positions 0 and 1"),
        ({"rewards": [1, 2], "actions": ["a"]}, "actions must name 2 actions"),
        ({"rewards": [1, 2], "actions": ["a", None]}, "type str, int, float or bool; got NoneType at position 1"),
        ({"rewards": [1, 2], "actions": ["a", float("nan")]}, "must not contain NaN"),
        ({"rewards": [1, 2], "space": "box"}, "space must be a Box or a Simplex"),
        ({"rewards": [[1, 2, 3]], "space": Box([0, 0], [1, 1])}, "space has 2 coordinate"),
        ({"rewards": [[1, 2, 3]], "space": Simplex(2)}, "space has 2 classes"),
        ({"rewards": [1e308, -1e308], "space": Box(-1e10, 1e10)}, "too large"),
    ],
)
def test_bad_problems_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DecisionProblem(**arguments)


def test_from_utility_bounds_its_discretisation_error() -> None:
    def profit(stock: float, demand: float) -> float:
        return 5 * min(stock, demand) - 3 * stock

    problem = DecisionProblem.from_utility(profit, [0, 7, 13], np.linspace(0, 20, 11), lipschitz=5)
    grid = problem.discretization
    assert grid.certified
    assert grid.error_bound == pytest.approx(5.0)
    demand = np.linspace(-1, 21, 401)
    exact = np.array([[profit(a, y) for a in problem.actions] for y in demand])
    error = np.abs(problem.utility(grid.nearest(demand)) - exact)
    assert error.max() <= grid.error_bound + 1e-12
    assert error.max() > 0.5 * grid.error_bound
    estimated = DecisionProblem.from_utility(profit, [0, 7, 13], np.linspace(0, 20, 11)).discretization
    assert not estimated.certified
    assert "estimated" in str(estimated)
    with pytest.raises(InputError, match="within the outcome grid"):
        grid.nearest([25.0])


def test_from_utility_equals_the_exact_newsvendor() -> None:
    """On whole numbers the grid loses nothing: utilities are those of the function itself."""
    problem = DecisionProblem.from_utility(lambda a, y: 5.0 * min(a, y) - 3.0 * a, [2, 4], range(6))
    forecast = np.array([[0.1, 0.2, 0.3, 0.2, 0.1, 0.1]])
    expected = [sum(p * (5 * min(a, y) - 3 * a) for y, p in enumerate(forecast[0])) for a in (2, 4)]
    np.testing.assert_allclose(problem.utility(forecast)[0], expected)


def test_from_basis_takes_the_bounding_box() -> None:
    problem = DecisionProblem.from_basis(
        [[1, 0], [0, 2]], [lambda y: y, lambda y: y**2], np.linspace(-1, 2, 7), costs=[0.1, 0.2], actions=["x", "y"]
    )
    assert problem.space == Box([-1, 0], [2, 4])
    with pytest.raises(InputError, match="basis function 0 is constant"):
        DecisionProblem.from_basis([[1]], [lambda y: 1.0], [0, 1])


def test_problems_are_immutable_values() -> None:
    problem = DecisionProblem([1, 2], [0.5, 0.25], actions=["a", "b"], space=Box(0, 5))
    twin = DecisionProblem(np.array([1.0, 2.0]), (0.5, 0.25), actions=("a", "b"), space=Box(0, 5))
    assert problem == twin
    assert hash(problem) == hash(twin)
    assert problem != DecisionProblem([1, 2], [0.5, 0.25], actions=["a", "c"], space=Box(0, 5))
    assert problem != "something else"
    assert copy.deepcopy(problem) is problem
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert eval(repr(problem), {"DecisionProblem": DecisionProblem, "Box": Box}) == problem
    with pytest.raises(ValueError, match="read-only"):
        problem.rewards[0] = 7
    with pytest.raises(AttributeError):
        problem.actions = ()


def test_labels_of_equal_value_and_other_type_differ() -> None:
    assert DecisionProblem([1, 2], actions=[0, 1]) != DecisionProblem([1, 2], actions=[0.0, 1.0])


@pytest.mark.parametrize(
    "problem",
    [
        DecisionProblem([1, 2], [0.1, 0.2], actions=["a", 3], space=Box(-5, 7)),
        DecisionProblem.from_payoffs([[1, 2, 3], [0, 0, 9]], classes=["x", "y", "z"]),
        DecisionProblem.from_utility(lambda a, y: a * y, [1, 2], [0, 1, 2], lipschitz=2),
    ],
)
def test_problems_survive_a_file(problem: DecisionProblem) -> None:
    assert DecisionProblem.from_dict(problem.to_dict()) == problem


def test_descriptions_are_checked() -> None:
    good = DecisionProblem([1, 2]).to_dict()
    for broken in (
        {**good, "extra": 1},
        {key: value for key, value in good.items() if key != "costs"},
        {**good, "space": {"kind": "ball"}},
        {**good, "discretization": {"grid": [0, 1]}},
        [],
    ):
        with pytest.raises(FileFormatError):
            DecisionProblem.from_dict(broken)
