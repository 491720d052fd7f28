"""Tables: every way to write the same rows reads the same, and chunks change nothing."""

from __future__ import annotations

import decimal
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent import Box, InputError, Simplex
from prudent.tables import CsvTable, ParquetTable, Table, open_table, read_sample


def csv_table(data: bytes, **options: Any) -> Table:
    return CsvTable(io.BytesIO(data), "rows.csv", **options)


def parquet_table(columns: dict[str, Any], **options: Any) -> Table:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    sink.seek(0)
    return ParquetTable(sink, "rows.parquet", **options)


def all_rows(table: Table, numbers: list[str], values: list[str]) -> tuple[list[Any], list[Any]]:
    chunks = list(table.chunks(numbers, values))
    assert [chunk.first for chunk in chunks] == np.cumsum([0, *(len(chunk) for chunk in chunks)])[:-1].tolist()
    return (
        [row for chunk in chunks for row in chunk.numbers.tolist()],
        [list(row) for chunk in chunks for row in zip(*(column.tolist() for column in chunk.values), strict=True)],
    )


@pytest.mark.parametrize(
    "data",
    [
        b"id,f\na,0.5\nb,1\n",
        b"id,f\na,0.5\nb,1",
        b"\xef\xbb\xbfid,f\na,0.5\nb,1\n",
        b"id,f\r\na,0.5\r\nb,1\r\n",
        b"id,f\r\na,0.5\nb,1\r",
        b'"id","f"\n"a","0.5"\n"b","1"\n',
        b"id,f\na, 0.5 \nb,\t1\n",
        b"id,f\na,5e-1\nb,+1.\n",
        b"f,other,id\n0.5,\xff,a\n1,\xe9,b\n",
    ],
    ids=["plain", "no last line end", "mark", "crlf", "mixed", "quoted", "spaces", "exponents", "other columns"],
)
def test_ways_to_write_the_same(data: bytes) -> None:
    assert all_rows(csv_table(data), ["f"], ["id"]) == ([[0.5], [1.0]], [["a"], ["b"]])


def test_quotes_delimiters_and_line_ends_inside_cells() -> None:
    data = b'id;f\n"a;""b""\n c";1\n=1+1;0\n007;1\n'
    assert all_rows(csv_table(data, delimiter=";"), ["f"], ["id"]) == (
        [[1.0], [0.0], [1.0]],
        [['a;"b"\n c'], ["=1+1"], ["007"]],
    )


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 1], pa.int8()),
        pa.array([0, 1], pa.uint64()),
        pa.array([0, 1], pa.float32()),
        pa.array([np.float16(0), np.float16(1)], pa.float16()),
        pa.array([False, True]),
        pa.array([decimal.Decimal("0.00"), decimal.Decimal("1.00")]),
        pa.array([0.0, 1.0]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_numbers_of_every_type(column: Any) -> None:
    assert all_rows(parquet_table({"f": column}), ["f"], [])[0] == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, 2], pa.int32()), [1, 2]),
        (pa.array([1, 2**63], pa.uint64()), [1, 2**63]),
        (pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array([True, False]), [True, False]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_values_of_every_type(column: Any, expected: list[Any]) -> None:
    values = all_rows(parquet_table({"f": [0.0, 1.0], "id": column}), ["f"], ["id"])[1]
    assert [value for [value] in values] == expected
    assert [type(value) for [value] in values] == [type(value) for value in expected]


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, st.floats(0, 1)), min_size=1, max_size=30), st.integers(700, 3000))
def test_any_text_survives_in_blocks_of_any_size(rows: list[tuple[str, float]], block: int) -> None:
    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"'

    data = "id,f\n" + "".join(f"{quoted(cell)},{number!r}\n" for cell, number in rows)
    read = all_rows(csv_table(data.encode(), block_bytes=block), ["f"], ["id"])
    assert read == ([[number] for _, number in rows], [[cell] for cell, _ in rows])


def test_the_place_of_a_bad_cell_does_not_depend_on_blocks() -> None:
    data = b"f\n" + b"0.5\n" * 5000 + b"x\n" + b"0.5\n" * 100
    for block in (64, 1000, 1 << 20):
        with pytest.raises(InputError, match=r"^rows\.csv, row 5,001, column 'f': 'x' is not a number\.$"):
            list(csv_table(data, block_bytes=block).chunks(["f"]))
    columns = {"f": pa.array([0.5] * 5000 + [None] + [0.5] * 100)}
    for rows in (7, 1000, 1 << 20):
        with pytest.raises(InputError, match=r"^rows\.parquet, row 5,001, column 'f': the cell is empty"):
            list(parquet_table(columns, batch_rows=rows).chunks(["f"]))


def test_missing_cells_only_where_they_may_be() -> None:
    [chunk] = csv_table(b"f,g\n1,\n,a\n").chunks(["f"], ["g"], missing=["f", "g"])
    np.testing.assert_array_equal(chunk.numbers[:, 0], [1, np.nan])
    assert chunk.values[0].tolist() == [None, "a"]
    with pytest.raises(InputError, match=r"row 3, column 'f': 'x' is not a number"):
        list(csv_table(b"f,g\n1,\n,a\nx,b\n").chunks(["f"], ["g"], missing=["f", "g"]))


def test_content_decides_and_a_stream_without_seeking_is_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"f": [0.5]}), tmp_path / "rows.csv")
    with open_table(str(tmp_path / "rows.csv")) as table:
        assert isinstance(table, ParquetTable)


class TestSamples:
    def test_labels_of_any_type_find_their_class(self) -> None:
        space = Simplex(2)
        halves = {"p": [0.5, 0.5], "q": [0.5, 0.5]}
        one_hot = [[0.0, 1.0], [1.0, 0.0]]
        for labels in ([1, 0], [1.0, 0.0], ["1", "0"]):
            sample = read_sample(parquet_table({**halves, "y": labels}), space, ["p", "q"], ["y"])
            assert sample.outcomes is not None
            assert sample.outcomes.tolist() == one_hot
        sample = read_sample(
            parquet_table({**halves, "y": [True, False]}), Simplex(2, classes=[False, True]), ["p", "q"], ["y"]
        )
        assert sample.outcomes is not None
        assert sample.outcomes.tolist() == one_hot

    def test_classes_that_look_the_same_are_refused(self) -> None:
        table = parquet_table({"p": [0.5], "q": [0.5], "y": ["1"]})
        with pytest.raises(InputError, match="the classes 1 and '1' look the same in a file"):
            read_sample(table, Simplex(2, classes=[1, "1"]), ["p", "q"], ["y"])

    def test_missing_labels_become_rows_of_nan(self) -> None:
        table = parquet_table({"p": [0.5, 0.5], "q": [0.5, 0.5], "y": [1, None]})
        sample = read_sample(table, Simplex(2), ["p", "q"], ["y"], missing="drop")
        np.testing.assert_array_equal(sample.outcomes, [[0, 1], [np.nan, np.nan]])

    def test_probabilities_that_do_not_sum_to_one(self) -> None:
        table = parquet_table({"p": [0.5, 0.5], "q": [0.5, 0.6]})
        with pytest.raises(
            InputError, match=r"row 2, columns 'p', 'q': probabilities must .* sum to 1; 0\.5, 0\.6 sum to 1\.1"
        ):
            read_sample(table, Simplex(2), ["p", "q"])

    def test_outcomes_in_several_columns(self) -> None:
        table = parquet_table({"a": [0.1], "b": [20.0], "y": [1.0], "z": [40.0], "w": [2.0], "g": ["x"]})
        space = Box([0, 10], [1, 40])
        sample = read_sample(table, space, ["a", "b"], ["y", "z"], "w", "g")
        assert sample.forecasts.tolist() == [[0.1, 20.0]]
        assert sample.outcomes is not None
        assert sample.outcomes.tolist() == [[1.0, 40.0]]
        assert sample.weights is not None
        assert sample.weights.tolist() == [2.0]
        table = parquet_table({"a": [0.1], "b": [20.0], "y": [1.0], "z": [41.0]})
        with pytest.raises(InputError, match=r"column 'z': 41 lies outside the outcome space, \[10, 40\]"):
            read_sample(table, space, ["a", "b"], ["y", "z"])
