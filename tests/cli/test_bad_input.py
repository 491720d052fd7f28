"""Bad input of every kind: one line that names the place, exit code 2, no traceback, nothing left behind."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DECIDE = ("--policy", "policy.json", "--forecast", "f", "--id", "id", "-o", "out.csv")
AUDIT = ("--forecast", "f", "--outcome", "y")
FIT = ("--forecast", "f", "-o", "out.json")


def text(content: str | bytes) -> Callable[[Path], None]:
    """A CSV file with this content."""
    return lambda folder: (folder / "in.csv").write_bytes(content if isinstance(content, bytes) else content.encode())  # type: ignore[func-returns-value]


def table(**columns: Any) -> Callable[[Path], None]:
    """A Parquet file with these columns."""
    return lambda folder: pq.write_table(pa.table(columns), folder / "in.parquet")


def long_file_with_one_bad_row(folder: Path) -> None:
    forecasts = np.full(60_000, 0.5)
    forecasts[48_212] = 1.7
    lines = ["id,f", *(f"a{i},{value}" for i, value in enumerate(forecasts))]
    (folder / "in.csv").write_text("\n".join(lines))


def truncated_parquet(folder: Path) -> None:
    data = (folder / "rows.parquet").read_bytes()
    (folder / "in.parquet").write_bytes(data[: len(data) // 2])


def damaged_parquet(folder: Path) -> None:
    data = bytearray((folder / "rows.parquet").read_bytes())
    data[60:4000] = b"\xa5" * 3940
    (folder / "in.parquet").write_bytes(bytes(data))


def problem(content: str) -> Callable[[Path], None]:
    """Another problem.toml."""
    return lambda folder: (folder / "problem.toml").write_text(content)  # type: ignore[func-returns-value]


def nothing(folder: Path) -> None:
    """Only what the folder has anyway."""


def altered_policy(folder: Path) -> None:
    path = folder / "policy.json"
    path.write_text(path.read_text().replace('"salt": "s"', '"salt": "t"'))


def log_policy(folder: Path) -> None:
    from prudent import RobustPolicy, guarantees
    from prudent.problem import read_problem

    RobustPolicy(read_problem(folder / "problem.toml"), guarantees.LogOdds()).fit([0.2, 0.5, 0.7]).save(
        folder / "policy.json"
    )
    text("id,f\na,0.5\nb,0.25\nc,0\n")(folder)


def linked_output(folder: Path) -> None:
    (folder / "out.csv").symlink_to("rows.csv")


def unwritable_folder(folder: Path) -> None:
    (folder / "file").write_text("")


def other_recalibrator(folder: Path) -> None:
    from prudent import Simplex
    from prudent.recalibration import ScalingCalibrator

    rng = np.random.default_rng(0)
    forecasts = rng.dirichlet([1, 1, 1], 50)
    ScalingCalibrator("temperature", space=Simplex(3)).fit(forecasts, rng.integers(0, 3, 50)).save(
        folder / "other.json"
    )


def recalibrator_named_like_rows(folder: Path) -> None:
    from prudent.recalibration import ScalingCalibrator

    ScalingCalibrator("shift").fit([0.2, 0.6], [0.3, 0.7]).save(folder / "r.csv")


CSV = ("decide", "in.csv", *DECIDE)
PARQUET = ("decide", "in.parquet", *DECIDE)

CASES: dict[str, tuple[Callable[[Path], Any], tuple[str, ...], str]] = {
    # Tables as text
    "missing file": (nothing, ("decide", "no.csv", *DECIDE), r"no\.csv: No such file"),
    "a folder of all kinds": (nothing, ("decide", ".", *DECIDE), r"rows\.csv and 1 more files: .* all of one kind"),
    "missing column": (text("id,forecast\na,1\n"), CSV, r"in\.csv: there is no column 'f'; there are 'id', 'forecast'"),
    "column misspelt": (
        text("id,F\na,1\n"),
        ("decide", "in.csv", *DECIDE[:2], "--forecast", "FF", *DECIDE[4:]),
        r"did you mean 'F'\?",
    ),
    "text in numbers": (
        text("id,f\na,0.5\nb,high\n"),
        CSV,
        r"in\.csv, row 2 \(line 3\), column 'f': 'high' is not a number",
    ),
    "decimal comma": (
        text('id,f\na,"0,5"\n'),
        CSV,
        r"'0,5' is not a number; if the comma is the decimal mark, say --decimal ,",
    ),
    "empty cell": (text("id,f\na,0.5\nb,\n"), CSV, r"row 2 \(line 3\), column 'f': the cell is empty"),
    "nan": (
        text("id,f\na,0.5\nb,nan\n"),
        CSV,
        r"row 2 \(line 3\), column 'f': 'nan' stands for a missing value",
    ),
    "infinity": (text("id,f\na,inf\n"), CSV, r"row 1 \(line 2\), column 'f': .* inf"),
    "empty file": (text(""), CSV, r"in\.csv: the file is empty"),
    "only a byte order mark": (text("\ufeff\n"), CSV, r"in\.csv: the file is empty"),
    "only names": (text("id,f\n"), CSV, r"in\.csv: there are no rows"),
    "only names, no line end": (text("id,f"), CSV, r"in\.csv: there are no rows"),
    "blank first line": (text("\nid,f\na,1\n"), CSV, r"in\.csv: the first line is empty"),
    "wrong delimiter": (
        text("id;f\na;0.5;1\n"),
        CSV,
        r"there are 'id;f' \(cells end at ','; --delimiter takes another\)",
    ),
    "a delimiter of two characters": (
        text("id;f\na;0.5\n"),
        (*CSV, "--delimiter", ";;"),
        r"delimiter must be one character",
    ),
    "same name twice": (text("id,f,f\na,0.5,0.6\n"), CSV, r"in\.csv: 2 columns are named 'f'"),
    "a cell too many": (
        text("id,f\na,0.5\nb,0.5,9\n"),
        CSV,
        r"row 2 \(line 3\): it has 3 cell\(s\), and the column names are 2",
    ),
    "a cell too few": (text("id,f\na,0.5\nb\n"), CSV, r"row 2 \(line 3\): it has 1 cell\(s\)"),
    "a quote never closed": (
        text('id,f\na,0.5\n"b,0.5\nc,0.5\n'),
        CSV,
        r"in\.csv, row 2 \(line 3\): (a quoted cell is not closed|it has 1 cell)",
    ),
    "a quote never closed in a column not read": (
        text('id,f,z\na,0.5,1\nb,0.5,"2\nc,0.5,3\n'),
        CSV,
        r"row 2 \(line 3\): a quoted cell is not closed",
    ),
    "after a line end in a cell": (text('id,f\n"a\nb",0.5\nc,x\n'), CSV, r"row 2 \(line 4\), column 'f'"),
    "mixed line ends": (text("id,f\r\na,0.5\nb,0.5\rc,x\r\n"), CSV, r"row 3 \(line 4\), column 'f': 'x'"),
    "byte order mark": (text("\ufeffid,f\na,x\n"), CSV, r"row 1 \(line 2\), column 'f': 'x'"),
    "latin-1 cell": (text(b"id,f\na,0.5\n\xe9t\xe9,0.5\n"), CSV, r"row 2 \(line 3\), column 'id': .* is not UTF-8"),
    "latin-1 names": (text(b"id,f,\xe9t\xe9\na,0.5,1\n"), CSV, r"column names are not UTF-8"),
    "UTF-16": (text("id,f\na,0.5\n".encode("utf-16")), CSV, r"in\.csv: the file is UTF-16"),
    "damaged gzip": (text(b"\x1f\x8b\x08\x00abc"), CSV, r"in\.csv: cannot be unpacked \(truncated or damaged\?\)"),
    "another kind of file": (text(b"\x7fELF\0\0\0"), CSV, r"in\.csv: the file is neither CSV nor Parquet"),
    "duplicate ids": (
        text("id,f\na,0.5\nb,0.5\na,0.6\n"),
        CSV,
        r"row 3 \(line 4\), column 'id': the id is that of in\.csv, row 1 \(line 2\)",
    ),
    "an empty id": (text("id,f\na,0.5\n,0.5\n"), CSV, r"row 2 \(line 3\), column 'id': the cell is empty"),
    "forecast out of range": (
        long_file_with_one_bad_row,
        CSV,
        r"in\.csv, row 48,213 \(line 48,214\), column 'f': 1\.7 lies outside the outcome space, \[0, 1\]",
    ),
    "logarithm of zero": (log_policy, CSV, r"in\.csv, row 3 \(line 4\), column 'f': 0 lies on the edge"),
    "logarithm of zero in a fit": (
        text("f\n0.5\n0\n"),
        ("fit", "in.csv", *FIT, "--guarantee", "log-odds"),
        r"row 2 \(line 3\), column 'f': 0 lies on the edge",
    ),
    "negative weight": (
        text("f,w\n0.5,1\n0.5,-1\n"),
        ("fit", "in.csv", *FIT, "--weight", "w"),
        r"row 2 \(line 3\), column 'w': a weight must not be negative",
    ),
    "no weight at all": (
        text("f,w\n0.5,0\n0.5,0\n"),
        ("fit", "in.csv", *FIT, "--weight", "w"),
        r"not be zero for all rows",
    ),
    "outcome out of range": (
        text("f,y\n0.5,1\n0.5,2\n"),
        ("audit", "in.csv", *AUDIT),
        r"row 2 \(line 3\), column 'y': 2 lies outside",
    ),
    "a group is missing": (
        text("f,y,g\n0.5,1,a\n0.5,1,\n"),
        ("audit", "in.csv", *AUDIT, "--period", "g"),
        r"row 2 \(line 3\), column 'g': the cell is empty",
    ),
    # Tables as Parquet
    "truncated Parquet": (truncated_parquet, PARQUET, r"in\.parquet: cannot be read as Parquet"),
    "damaged Parquet": (damaged_parquet, PARQUET, r"in\.parquet: cannot be read as Parquet|in\.parquet, row"),
    "Parquet by name only": (
        lambda folder: (folder / "in.parquet").write_text("id,f\na,1\n"),
        PARQUET,
        r"in\.parquet: the file is not Parquet",
    ),
    "no rows in Parquet": (
        table(id=pa.array([], pa.string()), f=pa.array([], pa.float64())),
        PARQUET,
        r"in\.parquet: there are no rows",
    ),
    "nested column": (table(id=["a"], f=[[0.5]]), PARQUET, r"in\.parquet, column 'f': it holds list<.*, not numbers"),
    "text column": (table(id=["a"], f=["0.5"]), PARQUET, r"in\.parquet, column 'f': it holds string, not numbers"),
    "dates": (table(id=["a"], f=[dt.date(2024, 1, 1)]), PARQUET, r"column 'f': it holds date32.*, not numbers"),
    "a null": (table(id=["a", "b"], f=[0.5, None]), PARQUET, r"in\.parquet, row 2, column 'f': the cell is empty"),
    "a null id": (table(id=["a", None], f=[0.5, 0.5]), PARQUET, r"in\.parquet, row 2, column 'id': the cell is empty"),
    "ids that are floats": (
        table(id=[1.0, 2.0], f=[0.5, 0.5]),
        PARQUET,
        r"column 'id': ids must be text or whole numbers",
    ),
    "decimal out of range": (
        table(id=[1, 2], f=[decimal.Decimal("0.5"), decimal.Decimal("7.5")]),
        PARQUET,
        r"row 2, column 'f': 7\.5 lies outside",
    ),
    # Problems
    "no problem": (
        lambda folder: (folder / "problem.toml").unlink(),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml: No such file",
    ),
    "not TOML": (
        problem("rewards = [1 2]"),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml' is not readable TOML: .*line 1",
    ),
    "unknown key": (
        problem("rewards = [1]\ncost = [1]"),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml: the key 'cost' is not known; did you mean 'costs'",
    ),
    "no rewards": (
        problem("costs = [1]"),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml: a problem needs the key 'rewards'",
    ),
    "costs too many": (
        problem("rewards = [1]\ncosts = [1, 2]"),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml: costs must have shape",
    ),
    "text for a reward": (
        problem('rewards = ["much"]'),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml: rewards must be numbers",
    ),
    "empty space": (
        problem("rewards = [1]\n[space]\nlower = 1\nupper = 0"),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml: 'space': lower must be below upper",
    ),
    "ragged payoffs": (
        problem("payoffs = [[1, 2], [1]]"),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml: 'payoffs': table must be a rectangular array of numbers; its rows have different lengths",
    ),
    "payoffs by class": (
        problem("[payoffs]\na = {x = 1, y = 2}\nb = {x = 1, z = 2}"),
        ("fit", "rows.csv", *FIT),
        r"problem\.toml: 'payoffs': table must be numbers",
    ),
    "too few forecast columns": (
        problem("rewards = [[1, 2], [3, 4]]"),
        ("fit", "rows.csv", *FIT),
        r"forecasts must name 2 column\(s\), one per coordinate of the outcome space; got \['f'\]",
    ),
    # Policies and options
    "no policy": (nothing, ("decide", "rows.csv", "--policy", "no.json", *DECIDE[2:]), r"no\.json: No such file"),
    "altered policy": (altered_policy, ("decide", "rows.csv", *DECIDE), r"policy\.json' was altered"),
    "a policy that is none": (
        nothing,
        ("decide", "rows.csv", "--policy", "rows.csv", *DECIDE[2:]),
        r"rows\.csv' is not readable JSON",
    ),
    "a mixed policy without ids": (
        nothing,
        ("decide", "rows.csv", "--policy", "policy.json", "--forecast", "f", "-o", "out.csv"),
        r"give --id COL, or --seed N",
    ),
    "ids and a seed": (nothing, ("decide", "rows.csv", *DECIDE, "--seed", "1"), r"two sources of draws"),
    "two policies of one name": (
        nothing,
        ("stress", "rows.csv", "--forecast", "f", "--policy", "pure.json", "--policy", "./pure.json"),
        r"must differ; got plug-in, robust, safety, pure, pure",
    ),
    "unknown guarantee": (
        nothing,
        ("fit", "rows.csv", *FIT, "--guarantee", "unbiast"),
        r"guarantee 'unbiast' is not known; did you mean 'unbiased'\? choose among nothing, .*bins:N",
    ),
    **{
        f"unknown guarantee of {command} before files are read": (
            nothing,
            (command, "absent.csv", *options, "--guarantee", "unbiast"),
            r"guarantee 'unbiast' is not known",
        )
        for command, options in {
            "advise": AUDIT,
            "fit": FIT,
            "audit": AUDIT,
            "ladder": AUDIT,
            "report": AUDIT,
            "stress": AUDIT,
        }.items()
    },
    "guarantee without its number": (
        nothing,
        ("fit", "rows.csv", *FIT, "--guarantee", "bins"),
        r"bins needs a whole number",
    ),
    "guarantee for classes": (nothing, ("fit", "rows.csv", *FIT, "--guarantee", "top-label:3"), r"needs a Simplex"),
    "guarantee that cannot be measured": (
        nothing,
        ("audit", "rows.csv", *AUDIT, "--guarantee", "fully-calibrated"),
        r"cannot be audited",
    ),
    "slack that is no number": (
        nothing,
        ("fit", "rows.csv", *FIT, "--slack", "much"),
        r"--slack must be a number or the word audit",
    ),
    "slack audit without outcomes": (nothing, ("fit", "rows.csv", *FIT, "--slack", "audit"), r"give --outcome COL"),
    "confidence of two": (
        nothing,
        ("audit", "rows.csv", *AUDIT, "--confidence", "2"),
        r"confidence must lie strictly between 0 and 1",
    ),
    "confidence that is no number": (
        nothing,
        ("audit", "rows.csv", *AUDIT, "--confidence", "x"),
        r"Invalid value for '--confidence'",
    ),
    "missing option": (nothing, ("audit", "rows.csv", "--forecast", "f"), r"Missing option '--outcome'"),
    "unknown option": (nothing, ("audit", "rows.csv", *AUDIT, "--frobnicate"), r"No such option: --frobnicate"),
    "unknown command": (nothing, ("predict",), r"No such command 'predict'"),
    "advice without outcomes and guarantee": (nothing, ("advise", "rows.csv", "--forecast", "f"), r"outcomes must be"),
    "advice with a tolerance below zero": (
        nothing,
        ("advise", "rows.csv", *AUDIT, "--tolerance", "-1"),
        r"tolerance must",
    ),
    "advice with a confidence of one": (
        nothing,
        ("advise", "rows.csv", *AUDIT, "--confidence", "1"),
        r"confidence must lie strictly between 0 and 1",
    ),
    "advice about rows without outcome": (
        text("f,y\n0.5,1\n0.5,\n"),
        ("advise", "in.csv", *AUDIT),
        r"row 2 \(line 3\), column 'y': the cell is empty",
    ),
    "advice with a period that is missing": (
        text("f,y,g\n0.5,1,a\n0.5,1,\n"),
        ("advise", "in.csv", *AUDIT, "--period", "g"),
        r"row 2 \(line 3\), column 'g': the cell is empty",
    ),
    "advice to a folder that is not there": (
        nothing,
        ("advise", "rows.csv", *AUDIT, "-o", "nowhere/rule.json"),
        r"'nowhere' is not one",
    ),
    "a fit to outcomes for no guarantee": (
        nothing,
        ("fit", "rows.csv", *FIT, "--outcome", "y"),
        r"--outcome needs a --guarantee here; the rule that outcomes advise is written by advise -o",
    ),
    "a repair without outcomes": (
        nothing,
        ("repair", "rows.csv", "--forecast", "f", "-o", "r.json"),
        r"Missing option '--outcome'",
    ),
    "a repair without output": (nothing, ("repair", "rows.csv", *AUDIT), r"Missing option '-o'"),
    "a repair of too few rows": (
        text("f,y\n0.5,1\n0.4,0\n"),
        ("repair", "in.csv", *AUDIT, "-o", "r.json"),
        r"no recalibration was compared: there are too few cases",
    ),
    "a recalibrator that is not there": (
        nothing,
        ("decide", "rows.csv", *DECIDE, "--recalibrator", "no.json"),
        r"no\.json: No such file",
    ),
    "a recalibrator that is a policy": (
        nothing,
        ("decide", "rows.csv", *DECIDE, "--recalibrator", "policy.json"),
        r"policy\.json'",
    ),
    "a recalibrator of other forecasts": (
        other_recalibrator,
        ("decide", "rows.csv", *DECIDE, "--recalibrator", "other.json"),
        r"recalibrator",
    ),
    "output over the recalibrator": (
        recalibrator_named_like_rows,
        ("decide", "rows.csv", *DECIDE[:-1], "r.csv", "--recalibrator", "r.csv"),
        r"must not replace a file that is being read",
    ),
    # Output
    "unknown ending": (nothing, ("decide", "rows.csv", *DECIDE[:-1], "out.xlsx"), r"out\.xlsx: the output must end in"),
    "no such folder": (
        nothing,
        ("decide", "rows.csv", *DECIDE[:-1], "no/out.csv"),
        r"existing directory; 'no' is not one",
    ),
    "a file as a folder": (
        unwritable_folder,
        ("decide", "rows.csv", *DECIDE[:-1], "file/out.csv"),
        r"existing directory; 'file' is not one",
    ),
    "output is a folder": (
        lambda folder: (folder / "out.csv").mkdir(),
        ("decide", "rows.csv", *DECIDE),
        r"'out\.csv' is a directory",
    ),
    "output is a device": (
        nothing,
        ("fit", "rows.csv", *FIT[:-1], "/dev/null"),
        r"must name a regular file; '/dev/null' is none",
    ),
    "output over the input": (
        nothing,
        ("decide", "rows.csv", *DECIDE[:-1], "rows.csv"),
        r"rows\.csv: the output must not replace a file that is being read",
    ),
    "output over the input by a link": (linked_output, ("decide", "rows.csv", *DECIDE), r"must not replace a file"),
    "output over the policy of a fit": (
        nothing,
        ("decide", "rows.csv", *DECIDE[:-1], "policy.json"),
        r"the output must end in",
    ),
    "two results on one output": (
        nothing,
        ("decide", "rows.csv", *DECIDE[:-1], "-", "--json"),
        r"both print to standard output",
    ),
    "report without a folder": (
        nothing,
        ("report", "rows.csv", "--forecast", "f", "--outcome", "y", "-o", "nowhere/page.html"),
        r"'nowhere' is not one",
    ),
    "report with a slack but no guarantee": (
        nothing,
        ("report", "rows.csv", "--forecast", "f", "--outcome", "y", "--slack", "0.1"),
        r"slack must be 'audit' with guarantee='auto'",
    ),
    "ids named action": (
        text("action,f\na,0.5\n"),
        ("decide", "in.csv", *DECIDE[:4], "--id", "action", "-o", "out.csv"),
        r"must not be named 'action'",
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_one_line_and_exit_code_two(kind: str, command: Callable[..., Any], folder: Path) -> None:
    prepare, arguments, message = CASES[kind]
    prepare(folder)
    before = {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}
    done = command(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert re.fullmatch(r"prudent: [^\n]+\n", done.err), done.err
    assert re.search(message, done.err), done.err
    assert {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()} == before


def test_there_are_enough_kinds() -> None:
    assert len(CASES) >= 25
