"""Decision problems: constructors, tie-break, value semantics, refusals."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import prudent
from prudent import Box, DecisionProblem, Simplex
from prudent.errors import FileFormatError, InputError


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
    assert DecisionProblem.from_payoffs(table, actions=["wait", "treat"], classes=["healthy", "ill"]) == problem
    unnamed = DecisionProblem.from_payoffs(table.reset_index(drop=True), actions=["wait", "treat"])
    assert unnamed == problem
    polars = DecisionProblem.from_payoffs(
        pl.DataFrame({"healthy": [0, -1], "ill": [-10, -1]}), actions=["wait", "treat"]
    )
    assert polars == problem


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": [[1, 2]], "classes": ["a"]}, "classes must name 2 classes; got 1"),
        ({"table": [[1], [2]]}, "at least two classes"),
        ({"table": [[1, np.nan]]}, "table must be finite"),
        ({"table": [[1, 2]], "actions": ["a", "b"]}, "actions must name 1 actions"),
        ({"table": pd.DataFrame({"x": [1], "y": [2]}), "classes": ["y", "x"]}, r"in their order, \['x', 'y'\], or be"),
        (
            {"table": pd.DataFrame({"x": [1], "y": [2]}, index=["go"]), "actions": ["stop"]},
            r"in their order, \['go'\], or be left out; got \['stop'\]",
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
        ({"rewards": [1, 2], "actions": ["a", None]}, "without NaN or infinity; got NoneType 'None' at position 1"),
        ({"rewards": [1, 2], "actions": ["a", float("nan")]}, "without NaN or infinity"),
        ({"rewards": [1, 2], "space": "box"}, "space must be a Box, a Simplex or a Grid"),
        ({"rewards": [[1, 2, 3]], "space": Box([0, 0], [1, 1])}, "space has 2 coordinate"),
        ({"rewards": [[1, 2, 3]], "space": Simplex(2)}, "space has 2 classes"),
        ({"rewards": [1e308, -1e308], "space": Box(-1e10, 1e10)}, "too large"),
    ],
)
def test_bad_problems_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DecisionProblem(**arguments)


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
        DecisionProblem.from_utility(lambda a, y: a * y, [1, 2], [0, 1, 2], amounts=True),
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
        {**good, "discretization": {"error": 1.0}},
        {**good, "discretization": {"error": -1.0, "amounts_error": None}},
        [],
    ):
        with pytest.raises(FileFormatError):
            DecisionProblem.from_dict(broken)


@pytest.mark.parametrize("equal", [False, True])
def test_expected_utility(equal: bool) -> None:
    rng = np.random.default_rng(7)
    problem = DecisionProblem(rng.normal(size=(4, 2)), rng.normal(size=4))
    n = 40_000
    mixtures, points = rng.dirichlet(np.ones(problem.n_actions), size=n), rng.random((n, 2))
    weights = np.broadcast_to(1 / n, (n,)) if equal else rng.dirichlet(np.ones(n))
    exact = float((weights[:, None] * mixtures * (points @ problem.rewards.T - problem.costs)).sum())
    assert problem.expected_utilities([mixtures], [points], weights)[0, 0] == pytest.approx(exact, rel=1e-12)


def test_beliefs_are_not_class_labels() -> None:
    problem = prudent.DecisionProblem.from_payoffs(np.eye(3))
    for method in (problem.best_response, problem.value):
        with pytest.raises(InputError, match="beliefs must have shape"):
            method([0, 0, 1])
    np.testing.assert_array_equal(problem.utility([2]), [[0, 0, 1]])


def test_class_indices_are_accepted_beside_names() -> None:
    problem = prudent.DecisionProblem.from_payoffs(np.eye(2), classes=["x", "y"])
    np.testing.assert_array_equal(problem.utility([1, 0]), problem.utility(["y", "x"]))
    np.testing.assert_array_equal(problem.utility(pa.array(["y", "x"])), problem.utility(["y", "x"]))
    numbered = prudent.DecisionProblem.from_payoffs(np.eye(2), classes=[10, 20])
    with pytest.raises(InputError, match=r"among the classes \[10, 20\]"):
        numbered.utility([0, 1])


def test_payoffs_may_come_as_an_arrow_table() -> None:
    table = pa.table({"healthy": [0.0, -1.0], "ill": [-10.0, -1.0]})
    problem = prudent.DecisionProblem.from_payoffs(table, actions=["wait", "treat"])
    assert problem.space == prudent.Simplex(2, classes=["healthy", "ill"])


def test_numpy_scalars_are_labels() -> None:
    assert prudent.DecisionProblem([1, 2], actions=[np.int64(1), np.float32(2.5)]).actions == (1, 2.5)
