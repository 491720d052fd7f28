"""The session: results go with their data, are bounded, and can leave out rows that break a rule."""

from __future__ import annotations

import csv
import gc
import gzip
import io
import os
import re
import subprocess
import sys
import weakref
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
from prudent.studio.schemas import Question
from prudent.studio.session import DataSets, RequestError, Session

Ask = Callable[..., dict[str, Any]]
_FILLING, _MORE = 80, 30  # a cache holds 64 results
BROKEN = {3: ("high", None), 10: (None, ""), 11: ("1.5", None), 50: ("", ""), 77: (" inf ", None), 90: (None, "nan")}
SENTENCE = (
    "6 of 400 rows left out because 'forecast' is empty or not a finite number (3); 'forecast' lies outside the "
    "outcome space (1); 'y' is empty or not a finite number (2)"
)


def test_results_go_with_their_data(rows: Callable[..., bytes], ask: Ask) -> None:
    data_sets = DataSets()
    session = Session(data_sets)
    question = Question.model_validate(ask(data=data_sets.add(rows(50, 1), "rows.csv").id))
    report = session.report(question)
    held = [session.rows(question)[0], report.rows, report.policy, report.stress, report.audit]
    known = [weakref.ref(one) for one in held]
    del held, report
    for seed in range(2, 18):
        newest = data_sets.add(rows(50, seed), "rows.csv").id
    session.rows(Question.model_validate(ask(data=newest)))
    gc.collect()
    assert [reference() for reference in known] == [None] * 5
    with pytest.raises(RequestError, match="does not hold these data any more"):
        session.report(question)


def test_results_are_computed_once_for_what_they_depend_on(rows: Callable[..., bytes], ask: Ask) -> None:
    data_sets = DataSets()
    session = Session(data_sets)
    identity = data_sets.add(rows(50, 1), "rows.csv").id

    def asked(**changes: Any) -> Question:
        return Question.model_validate(ask(data=identity, **changes))

    best, picked, surer = asked(), asked(guarantee=["self-orthogonal"]), asked(confidence=0.99)
    for part in ("advice", "ladder", "policy", "robust", "audit", "stress"):
        assert getattr(session.report(best), part) is getattr(session.report(asked()), part)
        assert getattr(session.report(picked), part) is getattr(
            session.report(asked(guarantee=["self-orthogonal"])), part
        )
    assert session.report(best).ladder is session.report(picked).ladder
    assert session.report(best).ladder is not session.report(surer).ladder
    assert session.report(best).advice is session.report(picked).advice
    assert session.report(best).advice is not session.report(surer).advice
    assert session.report(best).policy is session.report(best).advice.policy
    assert session.report(best).robust is session.report(best).ladder.best.policy
    assert session.report(picked).policy is session.report(picked).robust
    assert session.report(best).policy is not session.report(picked).policy
    assert session.report(picked).audit is session.report(asked(guarantee=["self-orthogonal"], slack=0.1)).audit
    renamed = asked()
    renamed.problem.actions[0] = "rest"
    assert session.rows(renamed)[0] is session.rows(best)[0]
    assert session.report(renamed).policy.problem.actions[0] == "rest"


REFUSED = {
    "capacity must be an action among wait, act with a number or share": ["act"],
    "cannot be kept by any rule at once": ["wait=30%", "act=100"],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_an_impossible_capacity_is_refused_with_its_reason(client: TestClient, ask: Ask, reason: str) -> None:
    for part in ("policy", "verdict", "stress"):
        refused = client.post(f"/api/{part}", json=ask(capacity=REFUSED[reason]))
        assert (refused.status_code, refused.json()["where"]) == (422, "capacity")
        assert reason in refused.json()["message"]


def test_results_within_a_capacity_are_their_own(client: TestClient, ask: Ask) -> None:
    plain = client.post("/api/policy", json=ask()).json()
    for limit in ("act=20%", "act=40", "act=20%"):
        within = client.post("/api/policy", json=ask(capacity=[limit])).json()
        assert within["shares"][1] == pytest.approx(0.2 if limit == "act=20%" else 0.1, abs=1e-9)
        assert within["cards"][4]["value"] > 0
        assert within["curve"]["acts_on"] == "forecast"
    assert client.post("/api/policy", json=ask()).json()["cards"] == plain["cards"]


@pytest.mark.parametrize("guarantee", ["auto", ["self-orthogonal"]])
def test_the_script_knows_context_and_capacity(client: TestClient, ask: Ask, tmp_path: Path, guarantee: Any) -> None:
    rng = np.random.default_rng(1)
    forecasts, region = rng.uniform(0.1, 0.9, 2_000).round(6), rng.integers(1, 3, 2_000)
    outcomes = (rng.random(2_000) < np.clip(forecasts + np.where(region == 1, 0.2, -0.2), 0, 1)).astype(int)
    lines = (f"{r},{f},{y}" for r, f, y in zip(region, forecasts, outcomes, strict=True))
    content = "\n".join(["region,forecast,y", *lines]).encode()
    columns = {"forecast": ["forecast"], "outcome": ["y"], "context": ["region"]}
    identity = client.post("/api/data", content=content).json()["id"]
    question = ask(data=identity, columns=columns, capacity=["act=700"], guarantee=guarantee)
    found = client.post("/api/policy", json=question).json()["context"]
    assert found == ({"region": ["1", "2"]} if guarantee == "auto" else {})
    files = {
        name: client.post(f"/api/files/{name}", json={"question": question}) for name in ("python", "policy", "sql")
    }
    assert ('"region"' in files["sql"].text) == (guarantee == "auto")
    (tmp_path / "data.csv").write_bytes(content)
    (tmp_path / "policy.py").write_text(files["python"].text)
    subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "policy.json").read_text() == files["policy"].text


@pytest.mark.slow
def test_what_is_held_does_not_grow_with_the_number_of_questions(
    client: TestClient, ask: Callable[..., dict[str, Any]]
) -> None:
    def go(first: int, rounds: int) -> int:
        for k in range(first, first + rounds):
            question = ask(guarantee=["self-orthogonal"], slack=round(0.001 * (k + 1), 6))
            question["problem"]["costs"][1] = 0.3 + 0.001 * k
            for part in ("policy", "verdict", "stress", "ladder"):
                assert client.post(f"/api/{part}", json=question).status_code == 200
        gc.collect()
        return len(gc.get_objects())

    full = go(0, _FILLING)
    # A policy is a dozen objects, and four parts make several results each. How many are held depends on the question:
    # a verdict that says hedge holds a policy.
    assert go(_FILLING, _MORE) <= full + 20 * _MORE


@pytest.fixture
def damaged(content: bytes) -> bytes:
    rows = list(csv.reader(io.StringIO(content.decode())))
    for row, (forecast, outcome) in BROKEN.items():
        rows[row][1] = rows[row][1] if forecast is None else forecast
        rows[row][2] = rows[row][2] if outcome is None else outcome
    return "\n".join(",".join(row) for row in [*rows, []]).encode()


@pytest.fixture
def sound(content: bytes) -> bytes:
    lines = content.decode().splitlines(keepends=True)
    return "".join(line for number, line in enumerate(lines) if number not in BROKEN).encode()


def test_answers_are_those_of_the_other_rows_and_say_so(
    client: TestClient, ask: Ask, damaged: bytes, sound: bytes
) -> None:
    ids = [client.post("/api/data", content=content).json()["id"] for content in (damaged, sound)]
    question, plain = ask(data=ids[0], skip_broken_rows=True), ask(data=ids[1])
    refused = client.post("/api/policy", json={**question, "skip_broken_rows": False})
    assert (refused.status_code, len(refused.json()["rows"])) == (422, 7)  # one row breaks two rules
    for part in ("policy", "verdict", "stress", "ladder"):
        answer, expected = (client.post(f"/api/{part}", json=asked).json() for asked in (question, plain))
        if part == "policy":
            assert (answer.pop("left_out"), expected.pop("left_out")) == (SENTENCE, None)
        del answer["inputs"], expected["inputs"]
        assert answer == expected
    assert "6 of 400 rows left out" in client.post("/api/files/report", json={"question": question}).text


def test_nothing_is_left_out_of_sound_rows_and_everything_is_refused(client: TestClient, ask: Ask) -> None:
    assert client.post("/api/policy", json=ask(skip_broken_rows=True)).json()["left_out"] is None
    identity = client.post("/api/data", content=b"id,forecast,y\na,2,1\nb,3,0\n").json()["id"]
    refused = client.post("/api/policy", json=ask(data=identity, skip_broken_rows=True))
    assert (refused.status_code, refused.json()["where"]) == (422, "columns")
    assert "no row is left: 2 of 2 rows" in refused.json()["message"]


def test_the_script_leaves_out_the_same_rows(client: TestClient, ask: Ask, damaged: bytes, tmp_path: Path) -> None:
    identity = client.post("/api/data", content=damaged).json()["id"]
    question = ask(data=identity, skip_broken_rows=True, guarantee=["unbiased"], slack=0.02)
    files = {name: client.post(f"/api/files/{name}", json={"question": question}).text for name in ("python", "policy")}
    (tmp_path / "data.csv").write_bytes(damaged)
    (tmp_path / "policy.py").write_text(files["python"])
    done = subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert SENTENCE in done.stdout
    assert (tmp_path / "policy.json").read_text() == files["policy"]


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
from prudent.studio.session import DataSets

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
from prudent.studio.session import DataSets, RequestError

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
    kept = DataSets()
    added = kept.add(b"forecast,y\n0.5,1\n", "rows.csv")
    assert kept.get(added.id).guess is added.guess


def test_data_make_room_for_newer_ones(client: TestClient, rows: Callable[..., bytes]) -> None:
    identities = [client.post("/api/data", content=rows(20, seed)).json()["id"] for seed in range(20)]
    assert client.get(f"/api/data/{identities[0]}").status_code == 404
    assert client.get(f"/api/data/{identities[-1]}").status_code == 200
