"""Files that people really have, and some that they should not: an answer or one clear sentence, never a failure."""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from cases import messy_files
from prudent.studio import data_sets
from prudent.studio.data_sets import DataSets, RequestError

Ask = Callable[..., dict[str, Any]]


def parquet(names: list[str], *columns: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array(column) for column in columns], names=names), stream, **options)
    return stream.getvalue()


def upload(client: TestClient, content: bytes | str, name: str = "rows.csv") -> Any:
    content = content.encode() if isinstance(content, str) else content
    return client.post("/api/data", params={"name": name}, content=content)


def answers(client: TestClient, summary: dict[str, Any]) -> bool:
    guess = summary["guess"]
    question = {"data": summary["id"], "columns": guess["columns"], "problem": guess["problem"]}
    return client.post("/api/policy", json={**question, "guarantee": ["nothing"], "slack": 0.0}).status_code == 200


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_without_a_usable_name_are_said_and_left_alone(client: TestClient, kind: str) -> None:
    names = ["", "forecast" * 30, "a", "y", "_id" * 80]
    content = ",".join(names) + "\n0,0.5,0.2,1,0\n1,0.6,0.3,0,1\n"
    if kind == "parquet":
        content = parquet(names, [0, 1], [0.5, 0.6], [0.2, 0.3], [1, 0], [0, 1])
    taken = upload(client, content)
    assert taken.status_code == 200, taken.text
    summary = taken.json()
    assert [column["name"] for column in summary["columns"]] == ["a", "y"]
    others = dict.fromkeys(("weight", "key", "period", "every"))
    assert summary["guess"]["columns"] == {"forecast": ["a"], "outcome": ["y"], "context": [], **others}
    assert "Cannot be used: column 1 has no name; the name of column 2 has more than" in summary["guess"]["sentence"]
    assert client.get(f"/api/data/{summary['id']}").json() == summary
    assert answers(client, summary)


def test_a_table_in_which_nothing_can_be_named_is_refused(client: TestClient) -> None:
    refused = upload(client, ",,,,,,,\n1,2,3,4,5,6,7,8\n")
    assert refused.status_code == 422
    assert refused.json()["message"].startswith("rows.csv: no column can be used: column 1 has no name; ")
    assert refused.json()["message"].endswith("and 3 more.")


@pytest.mark.parametrize("values", [(-1e308, 1e308), (-1.79e308, 0.0), (1e308, 1.79e308), (-1.5e308, -1e-308)])
def test_numbers_that_overflow_start_no_decision(client: TestClient, values: tuple[float, float]) -> None:
    taken = upload(client, f"forecast,outcome\n{values[0]!r},{values[1]!r}\n0.3,0.1\n")
    assert taken.status_code == 200
    assert taken.json()["guess"]["problem"] is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_the_same_name_are_refused(client: TestClient, kind: str) -> None:
    names = ["forecast", "forecast", "outcome"]
    content = parquet(names, [0.2, 0.3], [0.4, 0.5], [1, 0]) if kind == "parquet" else ",".join(names) + "\n1,2,3\n"
    refused = upload(client, content, f"rows.{kind}")
    assert refused.status_code == 422
    assert refused.json()["message"] == f"rows.{kind}: 2 columns are named 'forecast'; names must differ."


HOSTILE = """
import io, resource, sys
import pyarrow as pa, pyarrow.parquet as pq
from prudent.errors import InputError
from prudent.studio.data_sets import DataSets

content = io.BytesIO(sys.stdin.buffer.read()).getvalue()
sets = DataSets()
sets.add(b"forecast,y\\n0.5,1\\n", "rows.csv")  # what every upload needs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    sets.add(content, "rows.parquet")
except InputError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def repeated_cell(row_groups: int, cell: int, repeats: int) -> bytes:
    """A column of text that is packed very small."""
    stream = io.BytesIO()
    text = pa.array(["x" * cell]).take(pa.array(np.zeros(repeats, int)))
    table = pa.table({"forecast": np.zeros(repeats), "note": text})
    with pq.ParquetWriter(stream, table.schema, compression="zstd") as writer:
        for _ in range(row_groups):
            writer.write_table(table)
    return stream.getvalue()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in kilobytes there")
@pytest.mark.parametrize(
    ("row_groups", "cell", "repeats"), [(1, 20_000, 20_000), (6, 50_000_000, 1)], ids=["dictionary", "row groups"]
)
def test_long_cells_that_are_packed_small_are_refused_without_unpacking_them(
    row_groups: int, cell: int, repeats: int
) -> None:
    content = repeated_cell(row_groups, cell, repeats)
    assert len(content) < 300_000
    done = subprocess.run([sys.executable, "-c", HOSTILE], input=content, capture_output=True, check=True)
    message, megabytes = done.stdout.decode().splitlines()
    assert message.startswith("rows.parquet, column 'note': unpacked it has more than 128 MB")
    assert int(megabytes) < 60


BOMBS = """
import resource, sys, tempfile
from pathlib import Path
from prudent.errors import InputError
from prudent.studio.data_sets import DataSets, RequestError

content, folder = sys.stdin.buffer.read(), Path(tempfile.gettempdir())
sets = DataSets()
sets.add(b"forecast,y\\n0.5,1\\n", "rows.csv")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    sets.add(content, "rows")
except (InputError, RequestError) as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
print(len(list(folder.glob("prudent-*"))))
"""


def wide_sheet() -> bytes:
    """One cell in the last column of the last row."""
    stream, out = io.BytesIO(messy_files.sheet()), io.BytesIO()
    with zipfile.ZipFile(stream) as given, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in given.namelist():
            data = given.read(name)
            if name == "xl/worksheets/sheet1.xml":
                far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
                data = data.replace(b"</sheetData>", far)
            made.writestr(name, data)
    return out.getvalue()


def long_sheet() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(messy_files.sheet())) as given, zipfile.ZipFile(out, "w", 8) as made:
        for name in given.namelist():
            space = b" " * (140 << 20) if name == "xl/worksheets/sheet1.xml" else b""
            made.writestr(name, given.read(name) + space)
    return out.getvalue()


def gzip_bomb() -> bytes:
    return gzip.compress(b"forecast,y\n" + b"0.5,1\n" * (48 << 20), 1)


def zstd_bomb() -> bytes:
    return messy_files.zst(b"forecast,y\n" + b"0.5,1\n" * (48 << 20))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in kilobytes there")
@pytest.mark.parametrize("bomb", [gzip_bomb, zstd_bomb, long_sheet, wide_sheet])
def test_bombs_are_refused_before_they_fill_memory_or_disk(bomb: Callable[[], bytes], tmp_path: Path) -> None:
    content = bomb()
    assert len(content) < 8 << 20
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", BOMBS], input=content, capture_output=True, check=True, env=environment
    )
    message, megabytes, left = done.stdout.decode().splitlines()
    assert re.match("rows: unpacked it has more than [0-9]+ MB|rows, row 61 .*: it has 16384 cell", message)
    assert int(megabytes) < 200
    assert int(left) == 0


def test_different_cells_that_are_packed_small_are_refused(client: TestClient) -> None:
    cells = pa.array([f"{k}{'x' * 400_000}" for k in range(400)])
    content = parquet(["forecast", "note"], np.zeros(400), cells, compression="zstd", row_group_size=400)
    assert len(content) < 1 << 20
    refused = upload(client, content, "rows.parquet")
    assert refused.status_code == 422
    assert "column 'note': unpacked it has more than 128 MB" in refused.json()["message"]


def test_very_many_columns_or_cells_are_refused(client: TestClient) -> None:
    wide = upload(client, ",".join(f"c{j}" for j in range(1_001)) + "\n" + ",".join("0" * 1_001) + "\n")
    assert wide.status_code == 413
    assert "more than 1,000 columns or 100,000,000 cells" in wide.json()["message"]
    names = [f"c{j}" for j in range(900)]
    many = DataSets()  # with the usual limits
    with pytest.raises(RequestError, match="100,000,000 cells"):
        many.add(parquet(names, *[np.zeros(120_000, np.int8)] * 900, compression="zstd"), "rows.parquet")


def test_text_in_parquet_is_summarised_as_in_csv(client: TestClient) -> None:
    labels = ["b", None, "a", "b", "", "c"] * 50
    numbers = [0.5, 0.25, 0.75, 0.125, 0.5, 0.25] * 50
    text = "p,y\n" + "".join(f"{p},{y or ''}\n" for y, p in zip(labels, numbers, strict=True))
    plain = upload(client, text).json()
    packed = upload(client, parquet(["p", "y"], numbers, labels), "rows.parquet").json()
    assert plain["columns"] == packed["columns"]
    assert packed["columns"][1]["values"] == ["b", "a", "c"]


def test_an_unused_column_of_lists_is_said_and_left_alone(client: TestClient, ask: Ask) -> None:
    lists, marks = [[1, 2]] * 4, pa.array([b"abc"] * 4, pa.binary(3))
    content = parquet(["forecast", "z", "y", "m"], [0.2, 0.7, 1.5, 0.1], lists, [0, 1, 0, 1], marks)
    summary = upload(client, content, "rows.parquet").json()
    assert [column["name"] for column in summary["columns"]] == ["forecast", "y"]
    assert "Cannot be used: 'z' holds list<" in summary["guess"]["sentence"]
    assert "'m' holds fixed_size_binary[3]" in summary["guess"]["sentence"]
    assert answers(client, summary)
    question = ask(data=summary["id"], columns=summary["guess"]["columns"], guarantee=["nothing"], slack=0.0)
    listed = client.post("/api/policy", json=question)
    assert [row["row"] for row in listed.json()["rows"]] == [3]
    left = client.post("/api/policy", json={**question, "skip_broken_rows": True})
    assert left.json()["left_out"].startswith("1 of 4 rows left out")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_found_and_told_to_the_script(
    client: TestClient, ask: Ask, delimiter: str, tmp_path: Path
) -> None:
    content = "name;forecast;y\na, b;0.2;0\nc;0.7;1\nd;0.4;1\n".replace(";", delimiter)
    summary = upload(client, content).json()
    assert summary["guess"]["columns"]["forecast"] == ["forecast"]
    assert answers(client, summary)
    question = ask(data=summary["id"], columns=summary["guess"]["columns"], guarantee=["nothing"], slack=0.0)
    wanted = {"question": question, "name": "rows.csv"}
    (tmp_path / "rows.csv").write_text(content)
    (tmp_path / "policy.py").write_text(client.post("/api/files/python", json=wanted).text)
    if delimiter == ";":
        subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, check=True, capture_output=True)
        assert (tmp_path / "policy.json").read_text() == client.post("/api/files/policy", json=wanted).text
    assert f"delimiter={delimiter!r}" in (tmp_path / "policy.py").read_text()


def test_decimal_commas_are_read_and_said(client: TestClient, ask: Ask, tmp_path: Path) -> None:
    content = "forecast;y\n0,2;0\n0,7;1\n1;1\n0,45;0\n"
    summary = upload(client, content).json()
    assert summary["guess"]["sentence"].endswith("Numbers are read with a decimal comma.")
    assert (summary["columns"][0]["lower"], summary["columns"][0]["upper"]) == (0.2, 1.0)
    assert answers(client, summary)
    question = ask(data=summary["id"], columns=summary["guess"]["columns"], guarantee=["nothing"], slack=0.0)
    wanted = {"question": question, "name": "rows.csv"}
    (tmp_path / "rows.csv").write_text(content)
    (tmp_path / "policy.py").write_text(client.post("/api/files/python", json=wanted).text)
    subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "policy.json").read_text() == client.post("/api/files/policy", json=wanted).text


def test_thousands_are_not_taken_for_decimals(client: TestClient) -> None:
    summary = upload(client, "forecast;amount\n0.2;1,234\n0.7;2,500\n").json()
    assert "comma" not in summary["guess"]["sentence"]
    assert summary["columns"][1]["kind"] == "text"


@pytest.mark.parametrize("kind", ["csv.gz", "csv.zst", "xlsx"])
def test_packed_files_are_those_inside(client: TestClient, kind: str) -> None:
    plain = upload(client, messy_files.CLEAN.content).json()
    packed = {"csv.gz": "gzip", "csv.zst": "zstd", "xlsx": "Excel, words"}[kind]
    summary = upload(client, messy_files.READ[packed].content, f"rows.{kind}").json()
    assert [(c["name"], c["kind"], c["lower"]) for c in summary["columns"]] == [
        (c["name"], c["kind"], c["lower"]) for c in plain["columns"]
    ]
    assert summary["guess"]["columns"] == plain["guess"]["columns"]
    assert answers(client, summary)


def test_what_was_guessed_is_kept(client: TestClient) -> None:
    summary = upload(client, "forecast,y\n0.5,1\n").json()
    assert client.get(f"/api/data/{summary['id']}").json() == summary
    kept = data_sets.DataSets()
    added = kept.add(b"forecast,y\n0.5,1\n", "rows.csv")
    assert kept.get(added.id).guess is added.guess


def test_data_make_room_for_newer_ones(client: TestClient, rows: Callable[..., bytes]) -> None:
    identities = [client.post("/api/data", content=rows(20, seed)).json()["id"] for seed in range(20)]
    assert client.get(f"/api/data/{identities[0]}").status_code == 404
    assert client.get(f"/api/data/{identities[-1]}").status_code == 200
