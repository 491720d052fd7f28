"""Several files, folders, globs and large files: DuckDB gives what one file in memory gives."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import prudent
from prudent import guarantees
from prudent.cases import file_sets
from prudent.problem import read_problem

DECIDE = ("--policy", "policy.json", "--forecast", "f", "--id", "id")
AUDIT = ("--forecast", "f", "--outcome", "y")


@pytest.fixture
def parts(folder: Path) -> Path:
    """The rows of the folder once more, in three files of each kind."""
    table = pq.read_table("rows.parquet")
    for kind in ("parquet", "csv", "semicolon"):
        (folder / kind).mkdir()
    for number, start in enumerate(range(0, table.num_rows, 150)):
        part = table.slice(start, 150)
        pq.write_table(part, folder / "parquet" / f"{number}.parquet")
        text = pa.table({name: [str(cell) for cell in part[name].to_pylist()] for name in part.column_names})
        for kind, delimiter in (("csv", ","), ("semicolon", ";")):
            options = pacsv.WriteOptions(delimiter=delimiter, quoting_style="none")
            pacsv.write_csv(text, folder / kind / f"{number}.csv", options)
    (folder / "parquet" / "_SUCCESS").touch()
    return folder


def paths(kind: str, given: str) -> list[str]:
    if given == "expanded":
        return sorted(str(path) for path in Path(kind).glob("[0-9]*"))
    return [kind] if given == "folder" else [f"{kind}/*.{'parquet' if kind == 'parquet' else 'csv'}"]


def ask(command: Callable[..., Any], *arguments: str) -> Any:
    done = command(*arguments, "--json")
    assert done.err == ""
    return done.code, json.loads(done.out)


def compare(found: Any, expected: Any) -> None:
    """The same document, numbers up to what two certified optima may differ; sentences show three digits of them."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name in expected:
            if name != "sentence":
                compare(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            compare(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=3e-6)
    else:
        assert found == expected


def compare_audits(found: Any, expected: Any) -> None:
    """The same audit; where few rows carry a moment, an engine bets with sums instead of rows: wider, never shorter."""
    wider = np.array(expected["columns"]["method"]) == "betting"
    for name, side in (("lower", -1), ("upper", 1), ("p-value", 1)):
        one, many = (np.array(document["columns"].pop(name)) for document in (expected, found))
        np.testing.assert_allclose(many[~wider], one[~wider], rtol=1e-6, atol=3e-6)
        assert (side * (many - one)[wider] > -3e-6).all()
    assert found.pop("p_value") >= expected.pop("p_value") - 3e-6
    compare(found, expected)


@pytest.mark.parametrize(
    ("kind", "given"), [("parquet", "expanded"), ("parquet", "folder"), ("csv", "glob"), ("semicolon", "folder")]
)
class TestSameAnswers:
    def delimiter(self, kind: str) -> tuple[str, ...]:
        return ("--delimiter", ";") if kind == "semicolon" else ()

    def test_fit(self, command: Callable[..., Any], parts: Path, kind: str, given: str) -> None:
        options = (*AUDIT, "--slack", "0.03", "--weight", "w", "--guarantee", "unbiased+self-orthogonal")
        _, one = ask(command, "fit", "rows.parquet", *options, "-o", "one.json")
        code, many = ask(command, "fit", *paths(kind, given), *options, *self.delimiter(kind), "-o", "many.json")
        assert code == 0
        assert "cells of a table" in many["certificate"]["message"]
        assert many["certificate"]["status"] == "optimal"
        scale = read_problem("problem.toml").utility_range
        assert many["certificate"]["lower"] == pytest.approx(one["certificate"]["lower"], abs=1.01e-6 * scale)
        assert {name: many[name] for name in ("rows", "rows_snapped")} == {"rows": 400, "rows_snapped": 0}
        assert prudent.load("many.json").guarantee_ == prudent.load("one.json").guarantee_

    def test_audit(self, command: Callable[..., Any], parts: Path, kind: str, given: str) -> None:
        options = (*AUDIT, "--guarantee", "unbiased+bins:4", "--weight", "w")
        code, one = ask(command, "audit", "rows.parquet", *options)
        again, many = ask(command, "audit", *paths(kind, given), *options, *self.delimiter(kind))
        assert code == again
        compare_audits(many, one)

    def test_advise(self, command: Callable[..., Any], parts: Path, kind: str, given: str) -> None:
        options = (*AUDIT, "--weight", "w", "-o", "rule.json")
        one = ask(command, "advise", "rows.parquet", *options)
        many = ask(command, "advise", *paths(kind, given), *options, *self.delimiter(kind))
        assert many == one

    @pytest.mark.parametrize("output", ["actions.csv", "actions.parquet"])
    def test_decide(self, command: Callable[..., Any], parts: Path, kind: str, given: str, output: str) -> None:
        _, one = ask(command, "decide", "rows.csv", *DECIDE, "-o", f"one-{output}")
        code, many = ask(command, "decide", *paths(kind, given), *DECIDE, *self.delimiter(kind), "-o", output)
        assert code == 0
        assert many == {**one, "output": output}
        if output.endswith("csv"):
            assert Path(output).read_bytes() == Path(f"one-{output}").read_bytes()
        else:
            assert pq.read_table(output).equals(pq.read_table(f"one-{output}"))


def test_measured_slack_of_several_files_is_that_of_one_or_wider(command: Callable[..., Any], parts: Path) -> None:
    """Many rows carry the moments of the first sample, few those of the second."""
    rng = np.random.default_rng(5)
    for n, shorter in ((20_000, 1e-5), (400, 0.05)):
        forecasts = rng.random(n)
        table = pa.table({"f": forecasts, "y": (rng.random(n) < forecasts).astype(int)})
        Path(f"many-{n}").mkdir()
        pq.write_table(table, f"{n}.parquet")
        for number in range(2):
            pq.write_table(table.slice(number * n // 2, n // 2), f"many-{n}/{number}.parquet")
        _, one = ask(command, "fit", f"{n}.parquet", *AUDIT, "--guarantee", "self-orthogonal", "-o", "one.json")
        _, many = ask(command, "fit", f"many-{n}", *AUDIT, "--guarantee", "self-orthogonal", "-o", "many.json")
        lost = one["certificate"]["lower"] - many["certificate"]["lower"]
        assert -1e-5 <= lost <= shorter


def test_a_large_file_stays_in_the_engine(command: Callable[..., Any], folder: Path) -> None:
    _, fitted = ask(command, "fit", "rows.parquet", "--forecast", "f", "-o", "small.json")
    content = Path("rows.parquet").read_bytes()
    end = int.from_bytes(content[-8:-4], "little") + 8  # what says where the columns are
    with Path("large.parquet").open("wb") as file:
        file.write(content[:-end])
        file.seek(file_sets.LARGE, os.SEEK_CUR)  # a hole, which takes no room on the disk
        file.write(content[-end:])
    _, again = ask(command, "fit", "large.parquet", "--forecast", "f", "-o", "large.json")
    assert "cells of a table" in again["certificate"]["message"]
    assert again["certificate"]["lower"] == pytest.approx(fitted["certificate"]["lower"], abs=1e-6)


def test_the_stress_test_of_several_files_is_that_of_one(command: Callable[..., Any], parts: Path) -> None:
    options = (*AUDIT, "--guarantee", "unbiased", "--slack", "0.02")
    _, one = ask(command, "stress", "rows.parquet", *options)
    code, many = ask(command, "stress", "parquet", *options)
    assert (code, many["rows"]) == (0, one["rows"])
    for name in ("nominal", "realised", "worst"):
        assert many[name] == pytest.approx(one[name], abs=1e-5)


def test_groups_and_missing_outcomes(command: Callable[..., Any], parts: Path) -> None:
    for path in ("rows.csv", "csv/0.csv"):
        lines = Path(path).read_text().splitlines()
        lines[3] = ",".join([*lines[3].split(",")[:2], "", *lines[3].split(",")[3:]])
        Path(path).write_text("\n".join(lines) + "\n")
    for options in (("--missing", "drop"), ("--missing", "drop", "--period", "g", "--guarantee", "unbiased")):
        code, one = ask(command, "audit", "rows.csv", *AUDIT, *options)
        again, many = ask(command, "audit", "csv", *AUDIT, *options)
        assert (code, one["n_rows"], one["n_dropped"]) == (again, 399, 1)
        compare_audits(many, one)
        advised = options[:4]
        assert ask(command, "advise", "csv", *AUDIT, *advised) == ask(command, "advise", "rows.csv", *AUDIT, *advised)
    refused = command("audit", "csv", *AUDIT, "--guarantee", "unbiased")
    assert refused.code == 2
    assert "csv/0.csv, row 3 (line 4), column 'y': the cell is empty" in refused.err
    assert "--missing drop" in refused.err


@pytest.mark.parametrize("column", ["text", "whole", "float"])
def test_class_labels(command: Callable[..., Any], folder: Path, column: str) -> None:
    """Classes that are named by digits, in another order than their values."""
    rng = np.random.default_rng(3)
    forecasts = rng.dirichlet([1, 2], 300)
    labels = np.where(rng.random(300) < forecasts[:, 0], 1, 0)  # the first class is "1"
    kinds = {"text": [str(label) for label in labels], "whole": labels, "float": labels.astype(float)}
    table = pa.table({"p": forecasts[:, 0], "q": forecasts[:, 1], "label": kinds[column]})
    Path("problem.toml").write_text('classes = ["1", "0"]\n\n[payoffs]\nwait = [0, -2]\ntreat = [-1, 0]\n')
    pq.write_table(table, "all.parquet")
    Path("parts").mkdir()
    for number in range(2):
        pq.write_table(table.slice(150 * number, 150), f"parts/{number}.parquet")
    options = ("--forecast", "p", "--forecast", "q", "--outcome", "label", "--guarantee", "unbiased")
    code, one = ask(command, "audit", "all.parquet", *options)
    again, many = ask(command, "audit", "parts", *options)
    assert code == again
    assert abs(one["columns"]["estimate"][0]) < 0.1, "labels are read the wrong way round"
    compare_audits(many, one)


@pytest.mark.parametrize("labels", [[0.5, 1.0, 1e-5], [3, 1, 2], ["a,b", 'q"', "x"], [False, True]], ids=str)
@pytest.mark.parametrize("output", ["actions.csv", "actions.parquet", "-"])
def test_labels_of_every_kind(command: Callable[..., Any], parts: Path, labels: list[Any], output: str) -> None:
    problem = prudent.DecisionProblem(np.arange(len(labels)) / 2, np.arange(len(labels)) / 5, actions=labels)
    prudent.RobustPolicy(problem, guarantees.Unbiased()).fit(np.linspace(0, 1, 50)).save("policy.json")
    one, many = (output if output == "-" else f"{name}-{output}" for name in ("one", "many"))
    first = command("decide", "rows.parquet", *DECIDE, "-o", one)
    second = command("decide", "parquet", *DECIDE, "-o", many)
    assert (first.code, second.code, second.err) == (0, 0, "")
    if output == "-":
        assert first.out == second.out
    elif output.endswith("csv"):
        assert Path(one).read_bytes() == Path(many).read_bytes()
    else:
        assert pq.read_table(one).equals(pq.read_table(many))
    assert first.out.replace(one, many) == second.out


def test_text_of_ids_is_kept(command: Callable[..., Any], folder: Path) -> None:
    """An id such as 007 is text in CSV, and its draw depends on every character."""
    for number in range(2):
        lines = [f"{n:05d},{(n + 0.5) / 400}" for n in range(200 * number, 200 * number + 200)]
        Path(f"part{number}.csv").write_text("\n".join(["id,f", *lines]) + "\n")
    Path("all.csv").write_text(Path("part0.csv").read_text() + Path("part1.csv").read_text().partition("\n")[2])
    assert command("decide", "all.csv", *DECIDE, "-o", "one.csv").code == 0
    assert command("decide", "part0.csv", "part1.csv", *DECIDE, "-o", "many.csv").code == 0
    assert Path("one.csv").read_bytes() == Path("many.csv").read_bytes()
    assert "\n00007," in Path("many.csv").read_text()


def replace_cell(path: str, line: int, text: str) -> None:
    lines = Path(path).read_text().splitlines()
    lines[line] = text
    Path(path).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a150,1.7,1,1,1", r"csv/1.csv, row 1 (line 2), column 'f': 1.7 lies outside the outcome space, [0, 1]"),
        ("a150,,1,1,1", "csv/1.csv, row 1 (line 2), column 'f': the cell is empty"),
        ("a150,high,1,1,1", "csv/1.csv, row 1 (line 2), column 'f': 'high' is not a number"),
        (",0.5,1,1,1", "csv/1.csv, row 1 (line 2), column 'id': the cell is empty"),
        ("a150,0.5,1,1", "csv/1.csv, row 1 (line 2): it has 4 cell(s)"),
        (
            "a0,0.5,1,1,1",
            "csv/1.csv, row 1 (line 2), column 'id': the id is that of csv/0.csv, row 1 (line 2); ids must",
        ),
    ],
    ids=["outside", "empty", "text", "no id", "short", "twice"],
)
def test_bad_rows_are_named_and_nothing_is_written(
    command: Callable[..., Any], parts: Path, line: str, words: str
) -> None:
    replace_cell("csv/1.csv", 1, line)
    Path("out.csv").write_text("yesterday's")
    before = {path.name for path in parts.iterdir()}
    done = command("decide", "csv", *DECIDE, "-o", "out.csv")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"prudent: {words}")
    assert done.err.count("\n") == 1
    assert Path("out.csv").read_text() == "yesterday's"
    assert {path.name for path in parts.iterdir()} == before


def test_a_forecast_that_only_the_policy_refuses(command: Callable[..., Any], parts: Path) -> None:
    problem = read_problem("problem.toml")
    prudent.RobustPolicy(problem, guarantees.LogOdds()).fit([0.2, 0.5, 0.7]).save("policy.json")
    replace_cell("csv/2.csv", 4, "a303,0,1,1,1")
    done = command("decide", "csv", *DECIDE, "-o", "out.csv")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("prudent: csv/2.csv, row 4 (line 5), column 'f': 0 lies on the edge")
    assert not Path("out.csv").exists()


def other_columns(folder: Path) -> None:
    Path("csv/1.csv").write_text("f,id,y,w,g\n0.5,a,1,1,1\n")


def both_kinds(folder: Path) -> None:
    shutil.copy("rows.csv", "parquet/rows.csv")


def empty_folder(folder: Path) -> None:
    Path("empty").mkdir()


def nothing(folder: Path) -> None:
    """The folder as it is."""


def two_spellings(folder: Path) -> None:
    pq.write_table(pa.table({"f": [0.5], "F": [0.1], "id": ["a"]}), "parquet/0.parquet")


def truncated(folder: Path) -> None:
    content = Path("parquet/2.parquet").read_bytes()
    Path("parquet/2.parquet").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        (other_columns, ("decide", "csv", *DECIDE, "-o", "out.csv"), "csv/1.csv: its columns are ['f', 'id'"),
        (both_kinds, ("decide", "parquet", *DECIDE, "-o", "out.csv"), "all of one kind"),
        (empty_folder, ("fit", "empty", "--forecast", "f", "-o", "out.json"), "no Parquet or CSV file in this folder"),
        (nothing, ("fit", "no/*.csv", "--forecast", "f", "-o", "out.json"), "no/*.csv: No such file"),
        (nothing, ("fit", "csv", "no.csv", "--forecast", "f", "-o", "out.json"), "no.csv: No such file"),
        (nothing, ("fit", "csv", "csv/0.csv", "--forecast", "f", "-o", "out.json"), "csv/0.csv: the file is named twi"),
        (nothing, ("decide", "csv", *DECIDE[:4], "-o", "out.csv"), "draws need a key for each row"),
        (nothing, ("decide", "csv", *DECIDE, "-o", "csv/0.csv"), "must not replace a file that is being read"),
        (nothing, ("decide", "csv", *DECIDE, "-o", "out.txt"), "must end in .csv or .parquet"),
        (nothing, ("fit", "csv", "--forecast", "ff", "-o", "out.json"), "csv/0.csv: there is no column 'ff'"),
        (two_spellings, ("decide", "parquet", *DECIDE, "-o", "out.csv"), "cannot tell the columns ['f', 'F'] apart"),
        (truncated, ("fit", "parquet", "--forecast", "f", "-o", "out.json"), "2.parquet"),
    ],
)
def test_what_cannot_be_read_together(
    command: Callable[..., Any], parts: Path, change: Callable[[Path], Any], arguments: tuple[str, ...], words: str
) -> None:
    change(parts)
    before = {path.name for path in parts.iterdir()}
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1
    assert {path.name for path in parts.iterdir()} == before


@pytest.mark.parametrize("options", [("--id", "Action"), ("--seed", "1"), ("--id", "Action", "--probabilities")])
def test_ids_of_any_name_seeds_and_probabilities(
    command: Callable[..., Any], parts: Path, options: tuple[str, ...]
) -> None:
    table = pq.read_table("rows.parquet").rename_columns({"id": "Action"})
    pq.write_table(table, "all.parquet")
    Path("renamed").mkdir()
    for number in range(2):
        pq.write_table(table.slice(200 * number, 200), f"renamed/{number}.parquet")
    for source in ("all.parquet", "renamed"):
        assert command("decide", source, *DECIDE[:4], *options, "-o", f"{Path(source).stem}.csv").code == 0
    assert Path("all.csv").read_bytes() == Path("renamed.csv").read_bytes()


def test_types_that_differ_between_files(command: Callable[..., Any], folder: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "f": [1, 0], "y": [True, False], "w": [1, 2]}), "0.parquet")
    fractions = {"id": ["c", "d"], "f": [0.3, 0.45], "y": [0.4, 0.25], "w": [0.3, 0.7]}
    pq.write_table(pa.table(fractions), "1.parquet")
    Path("all.csv").write_text("id,f,y,w\na,1,1,1\nb,0,0,2\nc,0.3,0.4,0.3\nd,0.45,0.25,0.7\n")
    both = ("0.parquet", "1.parquet")
    options = (*AUDIT, "--weight", "w", "--guarantee", "unbiased")
    _, one = ask(command, "audit", "all.csv", *options)
    _, many = ask(command, "audit", *both, *options)
    compare_audits(many, one)
    _, one = ask(command, "fit", "all.csv", "--forecast", "f", "--weight", "w", "-o", "one.json")
    _, many = ask(command, "fit", *both, "--forecast", "f", "--weight", "w", "-o", "many.json")
    assert many["certificate"]["lower"] == pytest.approx(one["certificate"]["lower"], abs=1e-6)
    assert command("decide", "all.csv", *DECIDE, "-o", "one.csv").code == 0
    assert command("decide", *both, *DECIDE, "-o", "many.csv").code == 0
    assert Path("one.csv").read_bytes() == Path("many.csv").read_bytes()
    pq.write_table(pa.table({**fractions, "f": ["0.3", "0.45"]}), "1.parquet")
    refused = command("fit", *both, "--forecast", "f", "-o", "no.json")
    assert (refused.code, refused.err) == (
        2,
        "prudent: 1.parquet, column 'f': it holds string, not numbers. Cast it first.\n",
    )


def test_no_advice_that_a_command_cannot_follow(command: Callable[..., Any], parts: Path) -> None:
    replace_cell("csv/1.csv", 1, "a150,,1,1,1")
    done = command("fit", "csv", "--forecast", "f", "-o", "out.json")
    assert done.code == 2
    assert done.err == "prudent: csv/1.csv, row 1 (line 2), column 'f': the cell is empty, and a number is needed.\n"
