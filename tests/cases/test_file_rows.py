"""Columns of files as samples: labels, missing outcomes, weights, groups, and errors that name the first bad row."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent import Box, Simplex
from prudent.cases.file_rows import Sample, find_broken_rows, read_sample
from prudent.cases.file_table import open_table
from prudent.errors import InputError
from prudent.spaces import Space


def parquet(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=2)
    return sink.getvalue()


@contextmanager
def sample_of(content: dict[str, Any] | bytes, space: Space, *columns: Any, **options: Any) -> Iterator[Sample]:
    name = "rows.csv" if isinstance(content, bytes) else "rows.parquet"
    with open_table(content if isinstance(content, bytes) else parquet(content), name) as table:
        yield read_sample(table, space, *columns, **options)


HALVES = {"p": [0.5, 0.5], "q": [0.5, 0.5]}


@pytest.mark.parametrize("labels", [[1, 0], [1.0, 0.0], ["1", "0"], [" 1", "0 "]], ids=str)
def test_labels_of_any_type_find_their_class(labels: list[Any]) -> None:
    with sample_of({**HALVES, "y": labels}, Simplex(2), ["p", "q"], ["y"]) as sample:
        assert sample.cases.outcomes is not None
        assert sample.cases.outcomes.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_true_and_false_as_classes() -> None:
    space = Simplex(2, classes=[False, True])
    with sample_of({**HALVES, "y": [True, False]}, space, ["p", "q"], ["y"]) as sample:
        assert sample.cases.outcomes is not None
        assert sample.cases.outcomes.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_classes_that_look_the_same_are_refused() -> None:
    with (
        pytest.raises(InputError, match="the classes 1 and '1' look the same in a file"),
        sample_of({**HALVES, "y": ["1", "1"]}, Simplex(2, classes=[1, "1"]), ["p", "q"], ["y"]),
    ):
        pass


@pytest.mark.parametrize("labels", [[1, None], [1.0, float("nan")], ["1", ""], ["1", None]], ids=str)
def test_missing_labels_become_rows_of_nan(labels: list[Any]) -> None:
    with sample_of({**HALVES, "y": labels}, Simplex(2), ["p", "q"], ["y"], missing="drop") as sample:
        np.testing.assert_array_equal(sample.cases.outcomes, [[0, 1], [np.nan, np.nan]])


def test_outcomes_in_several_columns() -> None:
    rows = {"a": [0.1], "b": [20.0], "y": [1.0], "z": [40.0], "w": [2.0], "g": ["x"]}
    with sample_of(rows, Box([0, 10], [1, 40]), ["a", "b"], ["y", "z"], "w", "g") as sample:
        found = [sample.cases.forecasts, sample.cases.outcomes, sample.cases.weights, sample.cases.periods]
    assert [column.tolist() for column in found if column is not None] == [[[0.1, 20.0]], [[1.0, 40.0]], [2.0], ["x"]]


@pytest.mark.parametrize(
    ("rows", "space", "columns", "words"),
    [
        (
            {"p": [0.5, 0.5], "q": [0.5, 0.6]},
            Simplex(2),
            (["p", "q"],),
            r"row 2, columns 'p', 'q': probabilities must not be negative and sum to 1; 0\.5, 0\.6 sum to 1\.1\. Fix",
        ),
        (
            {"a": [0.1], "b": [20.0], "y": [1.0], "z": [41.0]},
            Box([0, 10], [1, 40]),
            (["a", "b"], ["y", "z"]),
            r"row 1, column 'z': 41 lies outside the outcome space, \[10, 40\]\. Fix the forecaster",
        ),
        (
            {**HALVES, "y": ["1", "2"]},
            Simplex(2),
            (["p", "q"], ["y"]),
            r"row 2, column 'y': '2' is not one of the classes 0, 1\.$",
        ),
        (
            {"f": [0.5, None, None]},
            Box(0, 1),
            (["f"],),
            r"row 2, column 'f': the cell is empty.* \(and 1 more rows\)\.$",
        ),
        ({"f": [0.5, 0.5], "w": [1, -1]}, Box(0, 1), (["f"], [], "w"), r"row 2, column 'w': a weight must not be neg"),
        (b"f,y\n0.5,\n0.5,x\n", Box(0, 1), (["f"], ["y"]), r"row 2 \(line 3\), column 'y': 'x' is not a number\.$"),
        ({"f": [0.5], "g": pa.array([None], pa.string())}, Box(0, 1), (["f"], [], None, "g"), "row 1, column 'g': the"),
    ],
    ids=["sum", "outside", "class", "empty", "weight", "text", "group"],
)
def test_the_first_bad_row_is_named(rows: Any, space: Space, columns: Any, words: str) -> None:
    with pytest.raises(InputError, match=words), sample_of(rows, space, *columns, missing="drop"):
        pass


def test_rows_left_out_keep_the_numbers_of_the_others() -> None:
    rows = {
        "p": [0.5, 0.2, None, 0.7, 0.6, 0.0],
        "q": [0.5, 0.8, 0.5, 0.5, 0.4, 1.0],
        "label": ["b", "c", "a", "a", "a", "b"],
        "w": [1.0, 1.0, 1.0, 1.0, -1.0, 2.0],
    }
    space = prudent.DecisionProblem.from_payoffs([[1, 0], [0, 1]], classes=["a", "b"]).space
    columns = ["p", "q"], ["label"], "w"
    with open_table(parquet(rows), "rows.parquet") as table:
        sample = read_sample(table, space, *columns, skip_broken=True)
        assert sample.numbers.rows.tolist() == [0, 5]
        assert str(sample.left_out).startswith("4 of 6 rows left out because ")
        assert str(sample.left_out).count("(1)") == 4
        assert sample.cases.forecasts.tolist() == [[0.5, 0.5], [0.0, 1.0]]
        with (
            pytest.raises(InputError, match=r"rows\.parquet, row 6, columns .* lies on the edge"),
            sample.numbers.naming_rows(),
        ):
            prudent.guarantees.LogOdds().evaluate(sample.cases.forecasts, space)


def test_all_broken_cells_of_a_file_in_the_order_of_rows() -> None:
    content = b"p,q,y,w\n0.5,0.5,a,1\nx,,c,-1\n0.5,0.6,,1\n"
    space = prudent.Simplex(2, classes=["a", "b"])
    with open_table(content, "rows.csv") as table:
        found = find_broken_rows(table, space, ["p", "q"], ["y"], "w")
        assert [
            (cell.row, cell.columns) for cell in find_broken_rows(table, space, ["p", "q"], ["y"], "w", limit=2)
        ] == [
            (2, ("p",)),
            (2, ("q",)),
        ]
    assert [(cell.row, cell.columns, cell.message) for cell in found] == [
        (2, ("p",), "'x' is not a number"),
        (2, ("q",), "the cell is empty, and a number is needed"),
        (2, ("y",), "'c' is not one of the classes 'a', 'b'"),
        (2, ("w",), "a weight must not be negative; got -1"),
        (3, ("p", "q"), "probabilities must not be negative and sum to 1; 0.5, 0.6 sum to 1.1"),
        (3, ("y",), "the cell is empty, and a class is needed"),
    ]


def test_numbers_for_a_grid_are_read_in_units() -> None:
    grid = prudent.Grid([0, 5, 10])
    columns = {"a": [0.2, 0.2], "b": [0.3, 0.3], "c": [0.5, 0.5]}
    with sample_of({**columns, "y": [1.0, 10.0]}, grid, ["a", "b", "c"], ["y"]) as sample:
        placed = sample.cases.on(grid).known_outcomes
        np.testing.assert_allclose(placed, [[0.8, 0.2, 0.0], [0.0, 0.0, 1.0]])
    with (
        pytest.raises(InputError, match=r"row 2 \(line 3\), column 'y': 10.5 lies outside the outcome space"),
        sample_of(b"a,b,c,y\n.2,.3,.5,1\n.2,.3,.5,10.5\n", grid, ["a", "b", "c"], ["y"]),
    ):
        pass
    with (
        pytest.raises(InputError, match="'many' is not a number"),
        sample_of(b"a,b,c,y\n.2,.3,.5,many\n", grid, ["a", "b", "c"], ["y"]),
    ):
        pass
