"""``decide`` on good input: actions are those of the library, from files and pipes alike."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import prudent
from cli.conftest import columns

ARGUMENTS = ("decide", "rows.csv", "--policy", "policy.json", "--forecast", "f")


def test_actions_are_those_of_predict(executable: Callable[..., Any], folder: Path) -> None:
    done = executable(*ARGUMENTS, "--id", "id", "-o", "actions.csv", "--json")
    data = columns()
    expected = prudent.load("policy.json").predict(data["f"], keys=data["id"]).tolist()
    with (folder / "actions.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert (done.code, done.err) == (0, "")
    assert [row["id"] for row in rows] == data["id"].tolist()
    assert [row["action"] for row in rows] == expected
    assert json.loads(done.out)["actions"] == {name: expected.count(name) for name in ("0.8x", "1.0x", "1.2x")}


def test_parquet_and_pipes_give_the_same(
    executable: Callable[..., Any], command: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(*ARGUMENTS, "--id", "id", "-o", "actions.csv", "--probabilities")
    command("decide", "rows.parquet", *ARGUMENTS[2:], "--id", "id", "-o", "actions.parquet", "--probabilities")
    with (folder / "rows.csv").open() as stream:
        piped = executable("decide", "-", *ARGUMENTS[2:], "--id", "id", "-o", "-", "--probabilities", stdin=stream)
    with (folder / "rows.parquet").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        binary = command("decide", "-", *ARGUMENTS[2:], "--id", "id", "-o", "-", "--probabilities")
    text = (folder / "actions.csv").read_text()
    assert piped.out == binary.out == text
    written = pq.read_table("actions.parquet").to_pydict()
    read = list(csv.DictReader(io.StringIO(text)))
    assert [row["action"] for row in read] == written["action"]
    mixtures = prudent.load("policy.json").predict_proba(columns()["f"])
    for j, name in enumerate(["p[0.8x]", "p[1.0x]", "p[1.2x]"]):
        assert written[name] == mixtures[:, j].tolist()
        assert [float(row[name]) for row in read] == written[name]


def test_seed_draws_as_predict_with_that_random_state(command: Callable[..., Any], folder: Path) -> None:
    command(*ARGUMENTS, "--seed", "7", "-o", "actions.parquet")
    policy = prudent.load("policy.json").set_params(random_state=7)
    assert pq.read_table("actions.parquet").column("action").to_pylist() == policy.predict(columns()["f"]).tolist()


def test_a_policy_without_draws_needs_neither(command: Callable[..., Any], folder: Path) -> None:
    arguments = ("decide", "rows.csv", "--policy", "pure.json", "--forecast", "f")
    assert command(*arguments, "-o", "actions.parquet").code == 0
    expected = prudent.load("pure.json").predict(columns()["f"]).tolist()
    assert pq.read_table("actions.parquet").column("action").to_pylist() == expected


def test_replaces_an_older_file_whole(command: Callable[..., Any], folder: Path) -> None:
    (folder / "actions.csv").write_text("old")
    assert command(*ARGUMENTS, "--id", "id", "-o", "actions.csv").code == 0
    assert (folder / "actions.csv").read_text().startswith("id,action\n")


def test_capacity_is_a_number_or_a_share_of_the_rows(executable: Callable[..., Any], folder: Path) -> None:
    for amount, expected in (("37", 37), ("12.5%", 50)):
        done = executable(*ARGUMENTS, "--id", "id", "-o", "actions.csv", "--json", "--capacity", f"1.2x={amount}")
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out)["actions"]["1.2x"] == expected


@pytest.mark.parametrize("text", ["1.2x", "1.2x=", "1.2x=many", "1.2x=-3", "3x=20%", "1.2x=nan"])
def test_a_capacity_that_is_none_is_refused(command: Callable[..., Any], folder: Path, text: str) -> None:
    done = command(*ARGUMENTS, "--id", "id", "-o", "actions.csv", "--capacity", text)
    assert done.code == 2
    assert "capacity must be an action among 0.8x, 1.0x, 1.2x with a number or share" in done.err
    assert not (folder / "actions.csv").exists()


def test_advice_and_fits_keep_to_a_capacity(command: Callable[..., Any], folder: Path) -> None:
    rows = "rows.csv", "--forecast", "f"
    command("advise", *rows, "--outcome", "y", "-o", "advised.json", "--capacity", "1.2x=40")
    command("fit", *rows, "-o", "fitted.json", "--capacity", "1.2x=10%")
    command("fit", *rows, "--outcome", "y", "-o", "both.json", "--capacity", "1.2x=10%")
    for name in ("advised", "fitted", "both"):
        played = prudent.load(f"{name}.json").predict_proba(columns()["f"])
        assert played[:, 2].mean() <= 0.1 + 1e-9
