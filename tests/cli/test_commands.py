"""Each command on good input: the numbers are those of the library, the exit codes those of the documentation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent import guarantees
from prudent.problem import read_problem


def columns(path: str = "rows.parquet") -> dict[str, Any]:
    return {name: np.array(values) for name, values in pq.read_table(path).to_pydict().items()}


class TestInit:
    def test_writes_a_problem_that_can_be_read(self, executable: Callable[..., Any], tmp_path: Path) -> None:
        done = executable("init", cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
        problem = read_problem(tmp_path / "problem.toml")
        assert problem == prudent.DecisionProblem(
            [0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"]
        )

    def test_does_not_replace_a_file_unless_told(self, command: Callable[..., Any], folder: Path) -> None:
        (folder / "problem.toml").write_text("mine")
        assert command("init").code == 2
        assert (folder / "problem.toml").read_text() == "mine"
        assert command("init", "--force").code == 0
        assert "rewards" in (folder / "problem.toml").read_text()

    def test_prints_to_a_pipe(self, command: Callable[..., Any], folder: Path) -> None:
        assert command("init", "-").out == (folder / "problem.toml").read_text()


class TestAudit:
    ARGUMENTS = ("audit", "rows.csv", "--forecast", "f", "--outcome", "y")

    def test_says_what_the_library_says(self, executable: Callable[..., Any], folder: Path) -> None:
        done = executable(*self.ARGUMENTS, "--guarantee", "unbiased+binned:4", "--confidence", "0.9", "--json")
        data = columns()
        expected = prudent.audit(
            data["f"],
            data["y"],
            guarantees.Unbiased() & guarantees.Binned.uniform(4),
            problem=read_problem("problem.toml"),
            confidence=0.9,
        )
        result = json.loads(done.out)
        assert done.err == ""
        assert result["verdict"] == expected.verdict.kind.value
        assert result["sentence"] == str(expected.verdict)
        assert [moment["estimate"] for moment in result["moments"]] == expected.estimates.tolist()
        assert [moment["upper"] for moment in result["moments"]] == expected.intervals[:, 1].tolist()
        assert result["chosen_by"] == "user"

    def test_weights_and_groups_are_passed_on(self, command: Callable[..., Any], folder: Path) -> None:
        done = command(*self.ARGUMENTS, "--guarantee", "unbiased", "--weight", "w", "--group", "g", "--json")
        data = columns()
        expected = prudent.audit(
            data["f"],
            data["y"],
            guarantees.Unbiased(),
            problem=read_problem("problem.toml"),
            sample_weight=data["w"],
            groups=data["g"],
        )
        assert json.loads(done.out)["moments"][0]["upper"] == pytest.approx(expected.intervals[0, 1], abs=1e-15)

    def test_without_a_guarantee_it_walks_the_ladder_and_says_so(
        self, command: Callable[..., Any], folder: Path
    ) -> None:
        data = columns()
        ladder = prudent.guarantee_ladder(data["f"], data["y"], read_problem("problem.toml"))
        assert command(*self.ARGUMENTS).out.startswith("No --guarantee was given, so the ladder was walked.\n")
        result = json.loads(command(*self.ARGUMENTS, "--json").out)
        assert result["chosen_by"] == "ladder"
        assert result["ladder"]["best"] == ladder.best.name
        assert result["confidence"] == pytest.approx(0.99)  # five rungs that measure something

    @pytest.mark.parametrize(
        ("shift", "tolerance", "n", "code"),
        [(0.0, 0.3, 4000, 0), (-0.2, 0.01, 4000, 20), (0.0, 0.001, 20, 30)],
        ids=["trust", "repair", "not enough data"],
    )
    def test_exit_codes(
        self,
        command: Callable[..., Any],
        folder: Path,
        shift: float,
        tolerance: float,
        n: int,
        code: int,
    ) -> None:
        rng = np.random.default_rng(1)
        forecasts = rng.uniform(0.3, 0.7, n)
        outcomes = (rng.random(n) < forecasts + shift).astype(int)
        pq.write_table(pa.table({"f": forecasts, "y": outcomes}), "other.parquet")
        options = ("--forecast", "f", "--outcome", "y", "--tolerance", str(tolerance), "--guarantee", "self-orthogonal")
        done = command("audit", "other.parquet", *options)
        assert (done.code, done.err) == (code, "")

    def test_exit_code_of_a_hedge(self, command: Callable[..., Any], folder: Path) -> None:
        """Nothing is promised, and the forecast points the wrong way."""
        rng = np.random.default_rng(1)
        forecasts = rng.random(5_000)
        outcomes = (rng.random(5_000) < 1 - forecasts).astype(int)
        pq.write_table(pa.table({"f": forecasts, "y": outcomes}), "other.parquet")
        Path("problem.toml").write_text("rewards = [1.0, -1.0]\ncosts = [0.0, -1.0]\n")
        done = command("audit", "other.parquet", "--forecast", "f", "--outcome", "y", "--guarantee", "nothing")
        assert done.out.startswith("hedge: ")
        assert (done.code, done.err) == (10, "")

    def test_rows_without_outcome_can_be_left_out(self, command: Callable[..., Any], folder: Path) -> None:
        text = (folder / "rows.csv").read_text().splitlines()
        text[3] = text[3].rsplit(",", 3)[0] + ",,1,2"
        (folder / "rows.csv").write_text("\n".join(text))
        assert command(*self.ARGUMENTS, "--guarantee", "unbiased").code == 2
        done = command(*self.ARGUMENTS, "--guarantee", "unbiased", "--missing", "drop", "--json")
        result = json.loads(done.out)
        assert (result["rows"], result["rows_without_outcome"]) == (399, 1)


class TestFit:
    ARGUMENTS = ("fit", "rows.csv", "--forecast", "f")

    def test_saves_the_policy_that_the_library_fits(self, executable: Callable[..., Any], folder: Path) -> None:
        options = ("--outcome", "y", "--slack", "audit", "--guarantee", "polynomial:2", "--weight", "w", "--salt", "s")
        done = executable(*self.ARGUMENTS, *options, "-o", "new.json", "--json")
        data = columns()
        expected = prudent.RobustPolicy(
            read_problem("problem.toml"), guarantees.Polynomial(2), slack="audit", salt="s"
        ).fit(data["f"], data["y"], sample_weight=data["w"])
        result = json.loads(done.out)
        assert (done.code, done.err) == (0, "")
        assert result["certificate"]["lower"] == pytest.approx(expected.value_, abs=1e-12)
        policy = prudent.load("new.json")
        assert policy.salt == "s"
        np.testing.assert_allclose(policy.multipliers_, expected.multipliers_, atol=1e-9)

    def test_takes_self_orthogonal_and_says_so(self, command: Callable[..., Any], folder: Path) -> None:
        done = command(*self.ARGUMENTS, "-o", "new.json")
        assert done.out.startswith("No --guarantee was given; taken: self-orthogonal.\n")
        assert prudent.load("new.json").guarantee_ == guarantees.SelfOrthogonal()

    def test_pure(self, command: Callable[..., Any], folder: Path) -> None:
        command(*self.ARGUMENTS, "--pure", "-o", "new.json")
        assert isinstance(prudent.load("new.json"), prudent.PureRobustPolicy)

    def test_prints_the_policy_to_a_pipe(self, command: Callable[..., Any], folder: Path) -> None:
        command(*self.ARGUMENTS, "-o", "new.json")
        assert command(*self.ARGUMENTS, "-o", "-").out == (folder / "new.json").read_text()


class TestDecide:
    ARGUMENTS = ("decide", "rows.csv", "--policy", "policy.json", "--forecast", "f")

    def test_actions_are_those_of_predict(self, executable: Callable[..., Any], folder: Path) -> None:
        done = executable(*self.ARGUMENTS, "--id", "id", "-o", "actions.csv", "--json")
        data = columns()
        expected = prudent.load("policy.json").predict(data["f"], keys=data["id"]).tolist()
        with (folder / "actions.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert (done.code, done.err) == (0, "")
        assert [row["id"] for row in rows] == data["id"].tolist()
        assert [row["action"] for row in rows] == expected
        assert json.loads(done.out)["actions"] == {name: expected.count(name) for name in ("0.8x", "1.0x", "1.2x")}

    def test_parquet_and_pipes_give_the_same(
        self, executable: Callable[..., Any], command: Callable[..., Any], folder: Path
    ) -> None:
        command(*self.ARGUMENTS, "--id", "id", "-o", "actions.csv", "--probabilities")
        command("decide", "rows.parquet", *self.ARGUMENTS[2:], "--id", "id", "-o", "actions.parquet", "--probabilities")
        with (folder / "rows.csv").open() as stream:
            piped = executable(
                "decide", "-", *self.ARGUMENTS[2:], "--id", "id", "-o", "-", "--probabilities", stdin=stream
            )
        with (folder / "rows.parquet").open("rb") as stream:
            binary = executable(
                "decide", "-", *self.ARGUMENTS[2:], "--id", "id", "-o", "-", "--probabilities", stdin=stream
            )
        text = (folder / "actions.csv").read_text()
        assert piped.out == binary.out == text
        written = pq.read_table("actions.parquet").to_pydict()
        read = list(csv.DictReader(io.StringIO(text)))
        assert [row["action"] for row in read] == written["action"]
        mixtures = prudent.load("policy.json").predict_proba(columns()["f"])
        for j, name in enumerate(["p[0.8x]", "p[1.0x]", "p[1.2x]"]):
            assert written[name] == mixtures[:, j].tolist()
            assert [float(row[name]) for row in read] == written[name]

    def test_seed_draws_as_predict_with_that_random_state(self, command: Callable[..., Any], folder: Path) -> None:
        command(*self.ARGUMENTS, "--seed", "7", "-o", "actions.parquet")
        policy = prudent.load("policy.json").set_params(random_state=7)
        assert pq.read_table("actions.parquet").column("action").to_pylist() == policy.predict(columns()["f"]).tolist()

    def test_a_policy_without_draws_needs_neither(self, command: Callable[..., Any], folder: Path) -> None:
        arguments = ("decide", "rows.csv", "--policy", "pure.json", "--forecast", "f")
        assert command(*arguments, "-o", "actions.parquet").code == 0
        expected = prudent.load("pure.json").predict(columns()["f"]).tolist()
        assert pq.read_table("actions.parquet").column("action").to_pylist() == expected

    def test_replaces_an_older_file_whole(self, command: Callable[..., Any], folder: Path) -> None:
        (folder / "actions.csv").write_text("old")
        assert command(*self.ARGUMENTS, "--id", "id", "-o", "actions.csv").code == 0
        assert (folder / "actions.csv").read_text().startswith("id,action\n")


class TestStress:
    def test_is_the_table_of_the_library(self, executable: Callable[..., Any], folder: Path) -> None:
        options = ("--forecast", "f", "--outcome", "y", "--policy", "pure.json", "--guarantee", "self-orthogonal")
        done = executable("stress", "rows.parquet", *options, "--json")
        data, problem = columns(), read_problem("problem.toml")
        expected = prudent.stress_test(
            {
                "plug-in": prudent.PlugInPolicy(problem),
                "robust": prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(data["f"]),
                "safety": prudent.SafetyPolicy(problem),
                "pure": prudent.load("pure.json"),
            },
            data["f"],
            data["y"],
            guarantee=guarantees.SelfOrthogonal(),
        )
        result = json.loads(done.out)
        assert (done.code, done.err) == (0, "")
        assert [row["policy"] for row in result["policies"]] == ["plug-in", "robust", "safety", "pure"]
        np.testing.assert_allclose([row["own_worst_case"] for row in result["policies"]], expected.worst, atol=1e-9)
        np.testing.assert_allclose([row["realised"] for row in result["policies"]], expected.realised, atol=1e-12)

    def test_says_what_it_took(self, command: Callable[..., Any], folder: Path) -> None:
        done = command("stress", "rows.parquet", "--forecast", "f")
        assert done.out.startswith("No --guarantee was given; taken: self-orthogonal.\npolicy")


class TestLadder:
    def test_is_the_ladder_of_the_library(self, executable: Callable[..., Any], folder: Path) -> None:
        done = executable("ladder", "rows.csv", "--forecast", "f", "--outcome", "y", "--json")
        data = columns()
        expected = prudent.guarantee_ladder(data["f"], data["y"], read_problem("problem.toml"))
        result = json.loads(done.out)
        assert (done.code, done.err) == (0, "")
        assert [rung["name"] for rung in result["rungs"]] == [rung.name for rung in expected.rungs]
        np.testing.assert_allclose(
            [rung["guaranteed"] for rung in result["rungs"]], [rung.guaranteed for rung in expected.rungs], atol=1e-9
        )

    def test_rungs_of_ones_own(self, command: Callable[..., Any], folder: Path) -> None:
        rungs = ("--guarantee", "unbiased", "--guarantee", "quantiles:3", "--center", "measured")
        done = command("ladder", "rows.csv", "--forecast", "f", "--outcome", "y", *rungs, "--json")
        assert [rung["name"] for rung in json.loads(done.out)["rungs"]] == ["unbiased", "quantiles:3"]


class TestClasses:
    """A payoff table: one column of probabilities per class, outcomes by name."""

    @pytest.fixture
    def clinic(self, folder: Path) -> Path:
        Path("problem.toml").write_text(
            'classes = ["healthy", "ill"]\n[payoffs.wait]\nhealthy = 0\nill = -10\n'
            "[payoffs.treat]\nill = -1\nhealthy = -1\n"
        )
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
        expected = prudent.audit(forecasts, data["truth"], guarantees.Classwise(2), problem=problem)
        assert [moment["estimate"] for moment in result["moments"]] == expected.estimates.tolist()

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


def test_help_and_version(executable: Callable[..., Any]) -> None:
    shown = executable("--help")
    assert shown.code == 0
    for name in ("demo", "init", "audit", "fit", "decide", "stress", "ladder"):
        assert name in shown.out
    assert executable("--version").out == f"prudent {prudent.__version__}\n"


class TestReport:
    ARGUMENTS = ("report", "rows.csv", "--forecast", "f", "--outcome", "y")

    def test_writes_the_page_of_the_library(self, executable: Callable[..., Any], folder: Path) -> None:
        done = executable(*self.ARGUMENTS, "--title", "Tomorrow", "-o", "page.html")
        data = columns()
        expected = prudent.Report(
            read_problem("problem.toml"),
            data["f"],
            data["y"],
            title="Tomorrow",
            source="rows.csv",
            command="prudent report rows.csv --forecast f --outcome y --title Tomorrow -o page.html",
        )
        assert (done.code, done.err) == (0, "")
        assert "No --guarantee was given, so the ladder was walked" in done.out
        assert str(expected.audit.verdict) in done.out
        assert (folder / "page.html").read_text(encoding="utf-8") == expected.to_html()

    def test_takes_a_guarantee(self, command: Callable[..., Any], folder: Path) -> None:
        options = ("--guarantee", "self-orthogonal", "--slack", "0.01", "--pure", "--json")
        result = json.loads(command(*self.ARGUMENTS, *options).out)
        policy = prudent.PureRobustPolicy(read_problem("problem.toml"), guarantees.SelfOrthogonal(), slack=0.01)
        assert result["certificate"]["lower"] == pytest.approx(policy.fit(columns()["f"]).value_, abs=1e-9)
        assert result["chosen_by"] == "user"
        assert (folder / result["report"]).is_file()
