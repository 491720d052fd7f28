"""``advise`` and ``repair`` on good input: numbers of the library, exit codes of the documentation, rules that play."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from cli.conftest import columns
from prudent.problem import read_problem

ARGUMENTS = ("advise", "rows.csv", "--forecast", "f", "--outcome", "y")


def write_rows(n: int, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts, and outcomes that come with this power of them."""
    rng = np.random.default_rng(1)
    forecasts = rng.random(n)
    outcomes = (rng.random(n) < forecasts**power).astype(int)
    pq.write_table(pa.table({"id": np.arange(n), "f": forecasts, "y": outcomes}), "other.parquet")
    return forecasts, outcomes


def coin(folder: Path) -> prudent.DecisionProblem:
    """A decision in which every forecast matters."""
    (folder / "problem.toml").write_text('rewards = [0.0, 1.0]\ncosts = [0.0, 0.5]\nactions = ["wait", "act"]\n')
    return read_problem(folder / "problem.toml")


def test_says_what_the_library_says(command: Callable[..., Any], folder: Path) -> None:
    options = ("--weight", "w", "--period", "g", "--confidence", "0.9", "--tolerance", "0.01")
    data = columns()
    expected = prudent.advise(
        read_problem("problem.toml"),
        data["f"],
        data["y"],
        weights=data["w"],
        periods=data["g"],
        confidence=0.9,
        tolerance=0.01,
    )
    assert json.loads(command(*ARGUMENTS, *options, "--json").out) == {**expected.to_dict(), "output": None}
    assert command(*ARGUMENTS, *options).out == f"{expected}\n"


@pytest.mark.parametrize(
    ("power", "n", "code", "words"),
    [
        (1.0, 4000, 0, "Follow the forecast: "),
        (2.0, 4000, 20, "Repair the forecast, then follow it: "),
        (1.2, 100, 30, "Not enough data: "),
        (1.0, 5, 30, "Not enough data: at least 10 cases"),
    ],
    ids=["follow", "repair", "not enough data", "too few"],
)
def test_exit_codes(command: Callable[..., Any], folder: Path, power: float, n: int, code: int, words: str) -> None:
    coin(folder)
    write_rows(n, power)
    done = command("advise", "other.parquet", "--forecast", "f", "--outcome", "y")
    assert (done.code, done.err) == (code, "")
    assert done.out.startswith(words)


def test_exit_codes_without_outcomes(command: Callable[..., Any], folder: Path) -> None:
    problem = coin(folder)
    forecasts, _ = write_rows(500)
    for guarantee, code, words in (
        ("self-orthogonal", 10, "Hedge: "),
        ("fully-calibrated", 0, "Follow the forecast: "),
    ):
        done = command("advise", "other.parquet", "--forecast", "f", "--guarantee", guarantee, "-o", "rule.json")
        assert (done.code, done.err) == (code, "")
        assert done.out.startswith(words)
        expected = prudent.advise(problem, forecasts, guarantee=guarantee)
        assert done.out == f"{expected}\nThe rule is in rule.json.\n"
        np.testing.assert_array_equal(
            prudent.load("rule.json").predict_proba(forecasts), expected.policy.predict_proba(forecasts)
        )


@pytest.mark.parametrize(("power", "kind"), [(1.0, "PlugInPolicy"), (2.0, "RecalibratedPolicy")])
def test_the_rule_that_it_writes_is_the_one_that_the_verdict_names(
    command: Callable[..., Any], folder: Path, power: float, kind: str
) -> None:
    problem = coin(folder)
    forecasts, outcomes = write_rows(4000, power)
    done = command("advise", "other.parquet", "--forecast", "f", "--outcome", "y", "-o", "rule.json", "--json")
    assert json.loads(done.out)["output"] == "rule.json"
    rule, advice = prudent.load("rule.json"), prudent.advise(problem, forecasts, outcomes)
    assert type(rule).__name__ == kind
    np.testing.assert_array_equal(rule.predict(forecasts), advice.policy.predict(forecasts))


def actions(path: str) -> list[str]:
    with Path(path).open(newline="") as stream:
        return [row["action"] for row in csv.DictReader(stream)]


def test_repair_then_decide_plays_the_repaired_rule(command: Callable[..., Any], folder: Path) -> None:
    """What ``repair`` saves, in front of the policy that follows forecasts, is what ``advise`` saves whole."""
    problem = coin(folder)
    forecasts, outcomes = write_rows(4000, 2.0)
    data = ("other.parquet", "--forecast", "f")
    assert command("advise", *data, "--outcome", "y", "-o", "rule.json").code == 20
    done = command("repair", *data, "--outcome", "y", "-o", "recalibrator.json", "--json")
    assert (done.code, done.err) == (0, "")
    told, advice = json.loads(done.out), prudent.advise(problem, forecasts, outcomes)
    assert told["recalibrator"] == advice.best_recalibrator()[0]
    assert told["verdict"] == advice.verdict.to_dict()
    assert told["gain"] == advice.menu.estimates[advice.menu.names.index(told["recalibrator"])]
    prudent.PlugInPolicy(problem).save("follow.json")
    options = ("--policy", "follow.json", "--recalibrator", "recalibrator.json", "-o", "two.csv")
    assert command("decide", *data, "--policy", "rule.json", "-o", "one.csv").code == 0
    assert command("decide", *data, *options).code == 0
    assert command("decide", *data, "--policy", "follow.json", "-o", "raw.csv").code == 0
    assert actions("one.csv") == actions("two.csv") == advice.policy.predict(forecasts).tolist()
    assert actions("raw.csv") != actions("one.csv")


def test_a_recalibrator_goes_before_draws_too(command: Callable[..., Any], folder: Path) -> None:
    data = columns()
    assert command("repair", "rows.csv", "--forecast", "f", "--outcome", "y", "-o", "r.json").code == 0
    options = ("--policy", "policy.json", "--recalibrator", "r.json", "--id", "id", "-o", "out.csv")
    assert command("decide", "rows.csv", "--forecast", "f", *options).code == 0
    moved = prudent.recalibration.Recalibrator.load("r.json").transform(data["f"])
    assert actions("out.csv") == prudent.load("policy.json").predict(moved, keys=data["id"]).tolist()


def test_classes_by_name(command: Callable[..., Any], folder: Path) -> None:
    (folder / "problem.toml").write_text('classes = ["healthy", "ill"]\n[payoffs]\nwait = [0, -3]\ntreat = [-1, -1]\n')
    p = columns()["f"]
    labels = np.where(columns()["y"] == 1, "ill", "healthy")
    pq.write_table(pa.table({"healthy": 1 - p, "ill": p, "truth": labels}), "clinic.parquet")
    options = ("--forecast", "healthy", "--forecast", "ill", "--outcome", "truth", "-o", "rule.json", "--json")
    done = command("advise", "clinic.parquet", *options)
    expected = prudent.advise(read_problem("problem.toml"), np.stack([1 - p, p], axis=1), labels)
    assert json.loads(done.out) == {**expected.to_dict(), "output": "rule.json"}


def test_a_unit_is_part_of_every_sentence(command: Callable[..., Any], folder: Path) -> None:
    path = folder / "problem.toml"
    path.write_text(f'unit = "EUR"\n{path.read_text()}')
    assert command(*ARGUMENTS).out.count(" EUR") >= 6


def monthly(n: int = 900) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Write rows with dates; nine months."""
    rng = np.random.default_rng(2)
    forecasts = rng.random(n)
    outcomes = (rng.random(n) < forecasts).astype(int)
    days = [str(np.datetime64("2011-01-01") + int(k)) for k in rng.integers(0, 270, n)]
    lines = [f"{f!r},{y},{day}" for f, y, day in zip(forecasts.tolist(), outcomes.tolist(), days, strict=True)]
    Path("dated.csv").write_text("\n".join(["f,y,day", *lines]) + "\n")
    return forecasts, outcomes, days


def test_dates_become_periods(command: Callable[..., Any], folder: Path) -> None:
    problem = coin(folder)
    forecasts, outcomes, days = monthly()
    cases = prudent.Cases(forecasts, outcomes, periods=days, every="month")
    arguments = ("dated.csv", "--forecast", "f", "--outcome", "y", "--period", "day", "--every", "month")
    expected = prudent.advise(problem, cases)
    assert expected.next_period is not None
    found = json.loads(command("advise", *arguments, "--json").out)
    assert found == {**expected.to_dict(), "output": None}
    audited = json.loads(command("audit", *arguments, "--guarantee", "unbiased", "--json").out)
    assert audited == prudent.audit(problem, cases, guarantee="unbiased").to_dict()
    text = command("advise", *arguments).out
    assert "In the next period it earns at least" in text
    refused = command("advise", *arguments[:-1], "decade")
    assert "decade" in refused.err


def test_backtest_walks_as_the_library_does(command: Callable[..., Any], folder: Path) -> None:
    problem = coin(folder)
    forecasts, outcomes, days = monthly()
    expected = prudent.backtest(problem, prudent.Cases(forecasts, outcomes, periods=days, every="month"), window=5)
    arguments = ("backtest", "dated.csv", "--forecast", "f", "--outcome", "y", "--period", "day", "--every", "month")
    assert json.loads(command(*arguments, "--window", "5", "--json").out) == expected.to_dict()
    assert expected.sentence in command(*arguments, "--window", "5").out
    refused = command(*arguments[:-2], "--every", "year")
    assert "at least 5 periods with outcomes; there are 1" in refused.err


def test_what_is_decided_has_a_certificate(command: Callable[..., Any], folder: Path) -> None:
    problem = coin(folder)
    monthly()
    dated = ("dated.csv", "--forecast", "f", "--outcome", "y", "--period", "day", "--every", "month")
    command("advise", *dated, "-o", "p.json")
    batch = np.random.default_rng(3).random(70)
    Path("new.csv").write_text("f\n" + "".join(f"{value!r}\n" for value in batch.tolist()))
    decided = ("decide", "new.csv", "--policy", "p.json", "--forecast", "f", "-o", "a.csv")
    done = json.loads(command(*decided, "--json").out)
    policy = prudent.load("p.json")
    wanted = [policy.certify(batch), policy.certify(batch, horizon="next period", realised=True)]
    for found, bound in zip(done["certificates"], wanted, strict=True):
        assert found["lower"] == pytest.approx(bound.lower, rel=1e-12)
        assert found["horizon"] == bound.horizon
    assert "On these cases: at least" in command(*decided).out
    prudent.RobustPolicy(problem, "unbiased", slack=0.05).fit(batch).save("robust.json")
    robust = prudent.load("robust.json")
    arguments = ("decide", "new.csv", "--policy", "robust.json", "--forecast", "f", "-o", "a.csv", "--seed", "1")
    done = json.loads(command(*arguments, "--json").out)
    assert done["certificates"][0]["lower"] == pytest.approx(robust.certify(batch).lower, abs=1e-12)


def test_what_is_not_certified_is_said(command: Callable[..., Any], folder: Path, monkeypatch: Any) -> None:
    problem = coin(folder)
    monkeypatch.setattr("prudent.policies.horizons.MOST_CERTIFIED", 10)
    batch = np.random.default_rng(3).random(70)
    Path("new.csv").write_text("f\n" + "".join(f"{value!r}\n" for value in batch.tolist()))
    prudent.RobustPolicy(problem, "unbiased", slack=0.05).fit(batch).save("robust.json")
    arguments = ("decide", "new.csv", "--policy", "robust.json", "--forecast", "f", "-o", "a.csv", "--seed", "1")
    assert "More than 10 rows are not certified here" in command(*arguments).out
    assert json.loads(command(*arguments, "--json").out)["certificates"] == []


def test_segments_of_a_file_are_those_of_the_library(command: Callable[..., Any], folder: Path) -> None:
    """The verdict names regions, and the rule decides for files that have the column."""
    problem, rng = coin(folder), np.random.default_rng(0)
    region, forecasts = rng.choice(["a", "b", "c"], 9_000), rng.uniform(0.2, 0.8, 9_000)
    off = np.select([region == "a", region == "b"], [0.15, -0.15], 0.0)
    outcomes = (rng.random(9_000) < forecasts + off).astype(int)
    pq.write_table(pa.table({"f": forecasts, "y": outcomes, "region": region}), "regions.parquet")
    given = ("regions.parquet", "--forecast", "f", "--outcome", "y", "--context", "region")
    done = command("advise", *given, "-o", "rule.json")
    expected = prudent.advise(problem, forecasts, outcomes, context={"region": region})
    assert done.code == expected.verdict.kind.exit_code == 20
    assert done.out == f"{expected}\nThe rule is in rule.json.\n"
    assert "region=a" in str(expected.verdict)
    measured = command("audit", *given)
    assert measured.code == 20
    assert measured.out == f"{prudent.audit(problem, expected.cases, by='region')}\n"
    assert command("audit", *given[:-2]).code == 0
    command("decide", "regions.parquet", "--policy", "rule.json", "--forecast", "f", "-o", "decided.csv")
    with (folder / "decided.csv").open(encoding="utf-8", newline="") as file:
        decided = [row["action"] for row in csv.DictReader(file)]
    assert decided == expected.policy.predict(forecasts, context={"region": region}).tolist()
