"""Files that people really have, through every command: the right answer, or one line that helps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import prudent
from cases import messy_files
from cases.messy_files import CLEAN, CLIP, CLIPPED, FORECASTS, IDS, MISSING, OUTCOMES, READ, REFUSED, Messy

BOTH = ("--forecast", "f", "--outcome", "y")
GUARANTEE = ("--guarantee", "self-orthogonal")

COMMANDS: dict[str, tuple[str, ...]] = {
    "advise": (*BOTH, "--json"),
    "audit": (*BOTH, *GUARANTEE, "--json"),
    "fit": (*BOTH, *GUARANTEE, "-o", "fitted.json", "--json"),
    "decide": ("--policy", "policy.json", "--forecast", "f", "--id", "id", "-o", "actions.csv", "--json"),
    "repair": (*BOTH, "-o", "recalibrator.json", "--json"),
    "backtest": (*BOTH, "--period", "id", "--every", "month", "--json"),
    "stress": (*BOTH, *GUARANTEE, "--json"),
    "ladder": (*BOTH, *GUARANTEE, "--json"),
    "report": (*BOTH, "-o", "page.html", "--json"),
}
#: Every kind of file goes through these; they are the ways in which files are read.
ALWAYS = ("audit", "decide")


def written(messy: Messy) -> str:
    path = f"in.{messy.ending}"
    Path(path).write_bytes(messy.content)
    return path


def ask(command: Callable[..., Any], name: str, messy: Messy, *files: str) -> tuple[int, Any]:
    done = command(name, *(files or (written(messy),)), *COMMANDS[name], *messy.options)
    assert done.err == ""
    found = json.loads(done.out)
    found.pop("rows_clipped", None)
    if name == "decide":
        found["actions.csv"] = Path("actions.csv").read_text()
    return done.code, found


@pytest.fixture(scope="session")
def expected() -> dict[Any, Any]:
    """What commands answer to the clean file."""
    return {}


def answer_to(expected: dict[Any, Any], command: Callable[..., Any], name: str, messy: Messy) -> Any:
    if (name, messy) not in expected:
        expected[name, messy] = ask(command, name, messy)
    return expected[name, messy]


def test_there_are_enough_kinds() -> None:
    assert len(READ) + len(CLIP) + len(REFUSED) >= 40


@pytest.mark.parametrize("name", ALWAYS)
@pytest.mark.parametrize("kind", READ)
def test_messy_files_are_read(
    command: Callable[..., Any], folder: Path, expected: dict[Any, Any], kind: str, name: str
) -> None:
    assert ask(command, name, READ[kind]) == answer_to(expected, command, name, CLEAN)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(
            (name, kind)
            for name in ("advise", "fit", "stress", "ladder")
            for kind in ("per cent", "yes and no", "Excel")
        ),
        *((name, "decimal commas, blank end") for name in COMMANDS),
    ],
)
def test_every_command_reads_them(
    command: Callable[..., Any], folder: Path, expected: dict[Any, Any], kind: str, name: str
) -> None:
    assert ask(command, name, READ[kind]) == answer_to(expected, command, name, CLEAN)


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "CSV") for name in COMMANDS), *((name, kind) for name in ALWAYS for kind in CLIP)]
)
def test_forecasts_outside_are_moved_and_counted(
    command: Callable[..., Any], folder: Path, expected: dict[Any, Any], kind: str, name: str
) -> None:
    exact = answer_to(expected, command, name, CLIPPED)
    assert ask(command, name, CLIP[kind]) == exact
    done = command(name, written(CLIP[kind]), *COMMANDS[name], *CLIP[kind].options)
    assert json.loads(done.out)["rows_clipped"] == 2
    said = command(name, written(CLIP[kind]), *COMMANDS[name][:-1], *CLIP[kind].options)
    assert "Forecasts outside the outcome space that were moved onto it: 2." in said.out
    if name == "report":
        assert "Forecasts outside the outcome space that were moved onto it: 2" in Path("page.html").read_text()


def halves(content: bytes) -> tuple[str, str]:
    """Two CSV files with the rows of one, in their order."""
    first, *rows = content.decode().splitlines(keepends=True)
    Path("a.csv").write_text("".join([first, *rows[:30]]))
    Path("b.csv").write_text("".join([first, *rows[30:]]))
    return "a.csv", "b.csv"


@pytest.mark.parametrize("kind", [kind for kind, messy in READ.items() if messy.ending == "csv" and "ends" not in kind])
def test_two_files_are_read_as_one_is(
    command: Callable[..., Any], folder: Path, expected: dict[Any, Any], kind: str
) -> None:
    messy = READ[kind]
    for name in ("advise", "decide"):
        assert ask(command, name, messy, *halves(messy.content)) == answer_to(expected, command, name, CLEAN)
    _, one = answer_to(expected, command, "audit", CLEAN)
    _, two = ask(command, "audit", messy, *halves(messy.content))
    assert two["columns"]["estimate"] == pytest.approx(one["columns"]["estimate"], abs=1e-12)
    assert two["n_rows"] == one["n_rows"]


def test_line_ends_of_several_kinds_in_one_of_two_files(command: Callable[..., Any], folder: Path) -> None:
    messy = READ["line ends of several kinds"]
    first, second = halves(CLEAN.content)
    one = ask(command, "audit", messy, first, second)
    Path(first).write_bytes(Path(first).read_bytes().replace(b"\n", b"\r\n", 7))
    again = ask(command, "audit", messy, first, second)
    assert again[1]["columns"]["estimate"] == pytest.approx(one[1]["columns"]["estimate"], abs=1e-12)
    assert again[1]["n_rows"] == 60


@pytest.mark.parametrize("kind", ["gzip", "zstd", "Excel"])
def test_several_packed_files(command: Callable[..., Any], folder: Path, expected: dict[Any, Any], kind: str) -> None:
    path = written(READ[kind])
    Path("b." + READ[kind].ending).write_bytes(READ[kind].content)
    _, one = answer_to(expected, command, "audit", CLEAN)
    _, two = ask(command, "audit", READ[kind], path, "b." + READ[kind].ending)
    assert two["n_rows"] == 2 * one["n_rows"]
    assert two["columns"]["estimate"] == pytest.approx(one["columns"]["estimate"], abs=1e-12)


@pytest.mark.parametrize("word", MISSING)
def test_words_for_missing_outcomes(
    command: Callable[..., Any], folder: Path, expected: dict[Any, Any], word: str
) -> None:
    empty = Messy(messy_files.table(y=MISSING[""]), ("--missing", "drop"))
    messy = Messy(messy_files.table(y=MISSING[word]), ("--missing", "drop"))
    for name in ("audit", "advise"):
        assert ask(command, name, messy) == answer_to(expected, command, name, empty)
    left = [line for number, line in enumerate(messy_files.lines()) if number not in (5, 9)]
    without, found = (ask(command, "audit", each)[1] for each in (Messy(messy_files.text(left)), messy))
    assert found["columns"]["estimate"] == pytest.approx(without["columns"]["estimate"], abs=1e-12)
    assert (found["n_rows"], found["n_dropped"], without["n_rows"]) == (58, 2, 58)


@pytest.mark.parametrize("name", [*ALWAYS, "advise", "stress"])
@pytest.mark.parametrize("kind", REFUSED)
def test_others_are_refused_in_one_line(command: Callable[..., Any], folder: Path, kind: str, name: str) -> None:
    messy = REFUSED[kind]
    path = written(messy)
    done = command(name, path, *COMMANDS[name], *messy.options)
    if name == "decide" and "outcome" in kind:
        assert done.code == 0
        return
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"prudent: [^\n]+\n", done.err), done.err
    assert path in done.err
    assert re.search(messy.error or "", done.err), done.err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    "kind", ["decimal commas without the option", "a number below per cent", "half of a gzip file"]
)
def test_every_command_refuses_them(command: Callable[..., Any], folder: Path, kind: str, name: str) -> None:
    test_others_are_refused_in_one_line(command, folder, kind, name)


@pytest.mark.parametrize(
    "kind",
    [
        "underscores",
        "per cent below a number",
        "truth for a forecast",
        "a missing forecast",
        "a missing outcome",
        "a forecast outside",
        "text, although clipped",
        "infinity, although clipped",
        "a cell too many",
        "a row of empty cells inside",
    ],
)
def test_of_two_files_the_bad_one_is_named(command: Callable[..., Any], folder: Path, kind: str) -> None:
    messy = REFUSED[kind]
    Path("also.csv").write_text("id,f,y\nx,0.5,1\n")
    path = written(messy)
    done = command("audit", "also.csv", path, *COMMANDS["audit"], *messy.options)
    assert done.code == 2
    assert re.search(rf"^prudent: {path}, {messy.error}", done.err), done.err


def test_rows_without_forecast_are_left_out_of_decisions(command: Callable[..., Any], folder: Path) -> None:
    ask(command, "decide", CLEAN)
    header, *actions = Path("actions.csv").read_text().splitlines()
    messy = Messy(messy_files.table(messy_files.but(FORECASTS, r2="NA", r60="")), ("--missing", "drop"))
    _, found = ask(command, "decide", messy)
    assert (found["rows"], found["rows_dropped"]) == (58, 2)
    assert found["actions.csv"].splitlines() == [header, actions[0], *actions[2:-1]]
    nothing = Messy(messy_files.table([""] * len(IDS)), ("--missing", "drop"))
    assert "no row has a forecast" in command("decide", written(nothing), *COMMANDS["decide"], *nothing.options).err


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_time_stamps_are_ids(command: Callable[..., Any], folder: Path, ending: str) -> None:
    hours = messy_files.hours
    made = {
        "csv": messy_files.table(ids=hours),
        "parquet": messy_files.parquet(id=hours),
        "xlsx": messy_files.sheet(ids=hours),
    }
    _, found = ask(command, "decide", Messy(made[ending], ending=ending))
    policy = prudent.load("policy.json")
    drawn = policy.predict(FORECASTS, keys=[str(hour) for hour in hours])
    rows = [line.split(",") for line in found["actions.csv"].splitlines()[1:]]
    assert rows == [[str(hour), str(action)] for hour, action in zip(hours, drawn, strict=True)]
    lazy = policy.predict(prudent.scan(f"in.{ending}", "f", ids="id"), output="action")
    assert [str(action) for (action,) in lazy.project("action").fetchall()] == [row[1] for row in rows]


def test_ids_with_a_time_zone_are_text_in_utc(command: Callable[..., Any], folder: Path) -> None:
    import pyarrow as pa

    zoned = pa.array(messy_files.hours, pa.timestamp("us", tz="Europe/Berlin"))
    _, found = ask(command, "decide", Messy(messy_files.parquet(id=zoned), ending="parquet"))
    assert found["actions.csv"].splitlines()[1].startswith("2024-01-01 00:00:00+00,")


def test_round_trips(command: Callable[..., Any], folder: Path) -> None:
    """The same numbers from files of every kind, from a frame and from arrays."""
    import prudent.problem

    files = [ask(command, "advise", READ[kind]) for kind in ("plain", "gzip", "zstd", "Parquet", "Excel", "per cent")]
    problem = prudent.problem.read_problem("problem.toml")
    frame = pd.DataFrame({"f": FORECASTS, "y": OUTCOMES})
    for forecasts, outcomes in ((FORECASTS, OUTCOMES), (frame["f"], frame["y"]), (frame[["f"]], np.array(OUTCOMES))):
        advice = prudent.advise(problem, forecasts, outcomes)
        for code, found in files:
            assert code == advice.verdict.kind.exit_code
            assert {name: found[name] for name in advice.to_dict()} == json.loads(json.dumps(advice.to_dict()))


@pytest.mark.parametrize(
    "kind", ["zstd", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("decimal commas, semicolons", "Excel"))]
)
def test_pipes_may_hold_the_same(
    executable: Callable[..., Any], command: Callable[..., Any], folder: Path, kind: str
) -> None:
    path = written(READ[kind])
    with Path(path).open("rb") as stream:
        done = executable("decide", "-", *COMMANDS["decide"], *READ[kind].options, stdin=stream)
    assert (done.code, done.err) == (0, "")
    assert Path("actions.csv").read_text() == ask(command, "decide", CLEAN)[1]["actions.csv"]
