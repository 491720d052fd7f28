"""Every way to write the same rows reads the same, and every cell can be named."""

from __future__ import annotations

import decimal
import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from cases import messy_files
from prudent.cases.file_sets import Reading
from prudent.cases.file_table import FileTable, open_table
from prudent.errors import FileFormatError, InputError, MissingExtraError


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def read(table: FileTable, numbers: list[str], names: list[str]) -> tuple[list[Any], list[Any]]:
    table.use(dict.fromkeys(names, "name") | dict.fromkeys(numbers, "number"))
    found = table.table([*map(table.number, numbers), *map(table.cell, names)])
    columns = [found.column(j).to_pylist() for j in range(found.num_columns)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [row[: len(numbers)] for row in rows], [row[len(numbers) :] for row in rows]


@pytest.mark.parametrize(
    "data",
    [
        b"id,f\na,0.5\nb,1\n",
        b"id,f\na,0.5\nb,1",
        b"\xef\xbb\xbfid,f\na,0.5\nb,1\n",
        b"id,f\r\na,0.5\r\nb,1\r\n",
        b"id,f\r\na,0.5\nb,1\r",
        b"id,f\na,0.5\r\nb,1\n",
        b"id,f\n\na,0.5\n\n\nb,1\n\n",
        b'"id","f"\n"a","0.5"\n"b","1"\n',
        b"id,f\na, 0.5 \nb,\t1\n",
        b"id,f\na,5e-1\nb,+1.\n",
        b"f,other,id\n0.5,\xff,a\n1,\xe9,b\n",
        b"f,other,id\r\n0.5,\xff,a\n1,\xe9,b\r\n",
        b"f,F,id,ID\n0.5,7,a,8\n1,7,b,8\n",
    ],
    ids=[
        "plain",
        "no last line end",
        "mark",
        "crlf",
        "mixed",
        "mixed below",
        "blank lines",
        "quoted",
        "spaces",
        "exponents",
        "other columns",
        "other columns, mixed",
        "names that differ by case",
    ],
)
def test_ways_to_write_the_same(data: bytes) -> None:
    with open_table(data, "rows.csv") as table:
        assert read(table, ["f"], ["id"]) == ([[0.5], [1.0]], [["a"], ["b"]])


def test_quotes_delimiters_and_line_ends_inside_cells() -> None:
    data = b'id;f\n"a;""b""\n c";1\n=1+1;0\n007;1\n'
    with open_table(data, "rows.csv", Reading(";")) as table:
        assert read(table, ["f"], ["id"]) == ([[1.0], [0.0], [1.0]], [['a;"b"\n c'], ["=1+1"], ["007"]])


def test_line_ends_of_several_kinds_inside_and_between_cells() -> None:
    with open_table(b'id,f\r\n"a\rb",0.5\r\n"",1\nc,0\n', "rows.csv") as table:
        assert read(table, ["f"], ["id"]) == ([[0.5], [1.0], [0.0]], [["a\rb"], [None], ["c"]])


def test_cells_that_are_empty_or_no_numbers() -> None:
    with open_table(b'f,g\n1,\n,a\nx," "\n"",b\nnan,1e400\n', "rows.csv") as table:
        numbers, names = read(table, ["f"], ["g"])
    np.testing.assert_array_equal(np.ravel(numbers).astype(float), [1, np.nan, np.inf, np.nan, np.nan])
    assert [name for [name] in names] == [None, "a", " ", "b", "1e400"]


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
    with open_table(parquet({"f": column}), "rows.parquet") as table:
        assert read(table, ["f"], [])[0] == [[0.0], [1.0]]


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
    with open_table(parquet({"f": [0.0, 1.0], "id": column}), "rows.parquet") as table:
        values = [value for [value] in read(table, ["f"], ["id"])[1]]
    assert (values, list(map(type, values))) == (expected, list(map(type, expected)))


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, st.floats()), min_size=1, max_size=30))
def test_any_text_and_any_number_survive(rows: list[tuple[str, float]]) -> None:
    quoted = ['"' + cell.replace('"', '""') + '"' for cell, _ in rows]
    data = "id,f\n" + "".join(f"{cell},{number!r}\n" for cell, (_, number) in zip(quoted, rows, strict=True))
    with open_table(data.encode(), "rows.csv") as table:
        numbers, names = read(table, ["f"], ["id"])
    np.testing.assert_array_equal(np.ravel(numbers), [number for _, number in rows])
    assert [name for [name] in names] == [cell for cell, _ in rows]


def test_rows_keep_their_order_in_a_file_that_many_threads_read(tmp_path: Path) -> None:
    """Cells with line ends that look like rows, in more than one buffer of DuckDB's reader."""
    draw = random.Random(0)
    lines = [f'{j},0.{j},"" x' for j in range(10)]
    with (tmp_path / "rows.csv").open("w", newline="") as stream:
        stream.write("id,f,z\n")
        for row in range(400_000):
            stream.write(f'{row},0.5,"' + "\n".join(lines[: draw.randrange(10)]) + '"\n')
    with open_table(str(tmp_path / "rows.csv")) as table:
        found = table.table([table.cell("id")]).column(0).to_pylist()
    assert found == [str(row) for row in range(400_000)]


def test_places_name_file_row_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text('f,z\n0.5,"1\n2"\n0.5,1\n')
    Path("b.csv").write_text('f,z\n\n0.5,"1\n2"\nx,1\n')
    with open_table(["a.csv", "b.csv"]) as table:
        assert table.at(1, "f") == "a.csv, row 2 (line 4), column 'f'"
        assert table.at(3, "f", "z") == "b.csv, row 2 (line 5), columns 'f', 'z'"
        assert table.written(3, "f") == "x"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"f,g\n1,2\n1\n", r"rows\.csv, row 2 \(line 3\): it has 1 cell\(s\), .* 2: '1'\. Cells end at ','"),
        (b"f,g\n1,2\r\n1,2,3\n", r"rows\.csv, row 2 \(line 3\): it has 3 cell\(s\)"),
        (b'f,g\n1,2\n1,"2\n', r"rows\.csv, row 2 \(line 3\): a quoted cell is not closed"),
        (b"f,g\n1,2\n\xe9,2\n", r"rows\.csv, row 2 \(line 3\), column 'f': b'\\xe9' is not UTF-8 text"),
        (b"f,g\n", r"rows\.csv: there are no rows below the column names\.$"),
        (b"f,f\n1,2\n", r"rows\.csv: 2 columns are named 'f'; names must differ\.$"),
        (b"F1,g\n1,2\n", r"rows\.csv: there is no column 'f'; there are 'F1', 'g'\.$"),
    ],
    ids=["few", "many", "open quote", "latin", "no rows", "twice", "absent"],
)
def test_what_cannot_be_read(data: bytes, words: str) -> None:
    with open_table(data, "rows.csv") as table, pytest.raises(InputError, match=words):
        read(table, ["f"], [])


def test_content_decides(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(parquet({"f": [0.5]}))
    with open_table(str(tmp_path / "rows.csv")) as table:
        assert (table.kind, read(table, ["f"], [])[0]) == ("parquet", [[0.5]])
    (tmp_path / "rows.parquet").write_text("f\n0.5\n")
    with pytest.raises(FileFormatError, match="the file is not Parquet"), open_table(str(tmp_path / "rows.parquet")):
        pass


def test_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_table(b"id,f\r\na,0.5\nb,1\r", "rows.csv") as table:
        read(table, ["f"], ["id"])
        (own,) = tmp_path.iterdir()
        assert len(list(own.iterdir())) == 2  # what was given, and the copy with line ends of one kind
    assert list(tmp_path.iterdir()) == []


def test_excel_without_its_reader_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with (
        pytest.raises(MissingExtraError, match=r"reading Excel files needs openpyxl.*prudent\[excel\]"),
        open_table(messy_files.sheet(), "rows.xlsx"),
    ):
        pass


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("rest", [b"", b"\n\n", b";;;\n", b" , \r\n\r\n", b"\n" * 100_000])
def test_only_lines_without_content_at_the_end_are_no_rows(end: bytes, rest: bytes) -> None:
    names = b"f,id" + end + b"0.5,a" + end
    for content in (names + b"1,b" + end, names + b'1,"b' + end + b'"' + end):
        with open_table(content + rest, "rows.csv") as table:
            assert table.count() == 2
    with open_table(b"f" + end + b"0.5" + end + end + b"1" + end + rest, "rows.csv") as table:
        assert table.count() == 3


LEVELS = ["0.025", "0.5", "0.975"]


def long(*rows: tuple[str, ...]) -> str:
    return "".join(",".join(row) + "\n" for row in (("location", "output_type", "output_type_id", "value"), *rows))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tasks, not in the order of their names, with quantiles in any order, a median, and class probabilities."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for location, low in (("US", 10.0), ("01", 2.0)):
        rows += [(location, "quantile", level, str(low + 10 * float(level))) for level in reversed(LEVELS)]
        rows += [
            (location, "median", "NA", str(low)),
            (location, "pmf", "up", "0.25"),
            (location, "pmf", "down", "0.75"),
        ]
    Path("hub.csv").write_text(long(*rows))
    return tmp_path


def test_quantiles_are_arrays_in_the_order_of_levels_and_tasks(hub: Path) -> None:
    found = prudent.read_hubverse("hub.csv")
    assert found.ids == (0.025, 0.5, 0.975)
    assert found.tasks["location"].tolist() == ["US", "01"]
    np.testing.assert_array_equal(found.values, [[10.25, 15.0, 19.75], [2.25, 7.0, 11.75]])


def test_parquet_has_the_same(hub: Path) -> None:
    rows = [line.split(",") for line in Path("hub.csv").read_text().splitlines()]
    columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
    columns["value"] = tuple(map(float, columns["value"]))
    pq.write_table(pa.table({name: list(cells) for name, cells in columns.items()}), "hub.parquet")
    one, other = prudent.read_hubverse("hub.csv"), prudent.read_hubverse("hub.parquet")
    np.testing.assert_array_equal(one.values, other.values)
    assert one.ids == other.ids


def test_a_level_that_a_task_does_not_have(hub: Path) -> None:
    Path("hub.csv").write_text(
        long(("a", "quantile", "0.5", "1"), ("b", "quantile", "0.5", "2"), ("b", "quantile", "0.1", "0"))
    )
    np.testing.assert_array_equal(prudent.read_hubverse("hub.csv").values, [[np.nan, 1], [0, 2]])


def test_class_probabilities_are_cases(hub: Path) -> None:
    space = prudent.Simplex(2, classes=["up", "down"])
    cases = prudent.scan("hub.csv", ["up", "down"], ids="location", hubverse="pmf")
    rows = cases.on(space).in_memory()
    np.testing.assert_array_equal(rows.forecasts, [[0.25, 0.75]] * 2)
    assert cases.table.project("location").fetchall() == [("US",), ("01",)]
    found = prudent.read_hubverse("hub.csv", "pmf")
    assert found.ids == ("up", "down")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (long(("a", "sample", "1", "0.5")), "rows of output_type 'quantile' must have 1 to 1,000 different"),
        ("f,y\n0.5,1\n", "there is no column 'output_type'"),
        (long(("a", "quantile", "0.5", "1"), ("a", "quantile", "0.5", "2")), "row 2 .*already in hub.csv, row 1"),
        (long(("a", "quantile", "0.5", "much")), "hub.csv, task 1, column '0.5': 'much' is not a number"),
        (long(("a", "quantile", "", "1")), "different output_type_id that are no names"),
    ],
    ids=["no rows", "no columns", "twice", "text", "no level"],
)
def test_what_is_no_hubverse_file_is_refused(hub: Path, content: str, words: str) -> None:
    Path("hub.csv").write_text(content)
    with pytest.raises(InputError, match=words):
        prudent.read_hubverse("hub.csv")
