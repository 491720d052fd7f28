"""``audit`` and ``ladder`` on good input: numbers of the library, exit codes of the documentation."""

from __future__ import annotations

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
from prudent import guarantees
from prudent.problem import read_problem

ARGUMENTS = ("audit", "rows.csv", "--forecast", "f", "--outcome", "y")


def test_says_what_the_library_says(command: Callable[..., Any], folder: Path) -> None:
    done = command(*ARGUMENTS, "--guarantee", "unbiased+bins:4", "--confidence", "0.9", "--json")
    data = columns()
    expected = prudent.audit(
        read_problem("problem.toml"),
        data["f"],
        data["y"],
        guarantee=guarantees.Unbiased() & guarantees.Bins(4),
        confidence=0.9,
    )
    result = json.loads(done.out)
    assert done.err == ""
    assert result == expected.to_dict()
    assert result["columns"]["upper"] == expected.intervals[:, 1].tolist()
    assert command(*ARGUMENTS, "--guarantee", "unbiased+bins:4", "--confidence", "0.9").out == f"{expected}\n"


def test_weights_and_groups_are_passed_on(command: Callable[..., Any], folder: Path) -> None:
    done = command(*ARGUMENTS, "--guarantee", "unbiased", "--weight", "w", "--period", "g", "--json")
    data = columns()
    expected = prudent.audit(
        read_problem("problem.toml"),
        data["f"],
        data["y"],
        guarantee=guarantees.Unbiased(),
        weights=data["w"],
        periods=data["g"],
    )
    assert json.loads(done.out)["columns"]["upper"][0] == pytest.approx(expected.intervals[0, 1], abs=1e-15)


def test_without_a_guarantee_it_measures_the_forecasts_and_what_they_promise(
    command: Callable[..., Any], folder: Path
) -> None:
    data = columns()
    expected = prudent.audit(read_problem("problem.toml"), data["f"], data["y"])
    assert json.loads(command(*ARGUMENTS, "--json").out) == expected.to_dict()


@pytest.mark.parametrize(("shift", "code"), [(0.0, 0), (-0.2, 20)], ids=["holds", "violated"])
def test_exit_codes(command: Callable[..., Any], folder: Path, shift: float, code: int) -> None:
    rng = np.random.default_rng(2)
    forecasts = rng.uniform(0.3, 0.7, 4000)
    outcomes = (rng.random(4000) < forecasts + shift).astype(int)
    pq.write_table(pa.table({"f": forecasts, "y": outcomes}), "other.parquet")
    done = command("audit", "other.parquet", "--forecast", "f", "--outcome", "y", "--guarantee", "self-orthogonal")
    assert (done.code, done.err) == (code, "")
    assert ("The guarantee is violated: " in done.out) == bool(code)


def test_rows_without_outcome_can_be_left_out(command: Callable[..., Any], folder: Path) -> None:
    text = (folder / "rows.csv").read_text().splitlines()
    text[3] = text[3].rsplit(",", 3)[0] + ",,1,2"
    (folder / "rows.csv").write_text("\n".join(text))
    assert command(*ARGUMENTS, "--guarantee", "unbiased").code == 2
    done = command(*ARGUMENTS, "--guarantee", "unbiased", "--missing", "drop", "--json")
    result = json.loads(done.out)
    assert (result["n_rows"], result["n_dropped"]) == (399, 1)


class TestLadder:
    def test_is_the_ladder_of_the_library(self, command: Callable[..., Any], folder: Path) -> None:
        done = command("ladder", "rows.csv", "--forecast", "f", "--outcome", "y", "--json")
        data = columns()
        expected = prudent.guarantee_ladder(read_problem("problem.toml"), data["f"], data["y"])
        result = json.loads(done.out)
        assert (done.code, done.err) == (0, "")
        assert [rung["name"] for rung in result["rungs"]] == [rung.name for rung in expected.rungs]
        np.testing.assert_allclose(
            [rung["guaranteed"] for rung in result["rungs"]], [rung.guaranteed for rung in expected.rungs], atol=1e-9
        )

    def test_rungs_of_ones_own(self, command: Callable[..., Any], folder: Path) -> None:
        rungs = ("--guarantee", "unbiased", "--guarantee", "quantile-bins:3")
        done = command("ladder", "rows.csv", "--forecast", "f", "--outcome", "y", *rungs, "--json")
        assert [rung["name"] for rung in json.loads(done.out)["rungs"]] == ["unbiased", "quantile-bins:3"]


class TestClasses:
    """A payoff table: one column of probabilities per class, outcomes by name."""

    @pytest.fixture
    def clinic(self, folder: Path) -> Path:
        Path("problem.toml").write_text('classes = ["healthy", "ill"]\n[payoffs]\nwait = [0, -10]\ntreat = [-1, -1]\n')
        p = columns()["f"]
        labels = np.where(columns()["y"] == 1, "ill", "healthy")
        pq.write_table(pa.table({"healthy": 1 - p, "ill": p, "truth": labels}), "rows.parquet")
        return folder

    def test_outcomes_by_name(self, command: Callable[..., Any], clinic: Path) -> None:
        options = ("--forecast", "healthy", "--forecast", "ill", "--outcome", "truth", "--guarantee", "classwise:2")
        result = json.loads(command("audit", "rows.parquet", *options, "--json").out)
        data = columns()
        problem = prudent.DecisionProblem.from_payoffs(
            [[0, -10], [-1, -1]], actions=["wait", "treat"], classes=["healthy", "ill"]
        )
        assert read_problem("problem.toml") == problem
        forecasts = np.stack([data["healthy"], data["ill"]], axis=1)
        expected = prudent.audit(problem, forecasts, data["truth"], guarantee=guarantees.Classwise(2))
        assert result["columns"]["estimate"] == expected.estimates.tolist()

    def test_columns_named_like_classes_must_be_in_their_order(self, command: Callable[..., Any], clinic: Path) -> None:
        done = command("fit", "rows.parquet", "--forecast", "ill", "--forecast", "healthy", "-o", "p.json")
        assert done.code == 2
        assert "order of the classes" in done.err

    def test_an_unknown_class_is_named_with_its_place(self, command: Callable[..., Any], clinic: Path) -> None:
        table = pq.read_table("rows.parquet").to_pydict()
        table["truth"][17] = "dead"
        pq.write_table(pa.table(table), "rows.parquet")
        done = command("audit", "rows.parquet", "--forecast", "healthy", "--forecast", "ill", "--outcome", "truth")
        assert done.err == (
            "prudent: rows.parquet, row 18, column 'truth': 'dead' is not one of the classes 'healthy', 'ill'.\n"
        )
