"""Decisions for files are those of predict, however rows are stored; output that any reader takes back as it was."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prudent
from prudent import guarantees
from prudent.policies import Decisions, decide_files

PROBLEM = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0], actions=["yes", "no"])
RNG = np.random.default_rng(0)
FORECASTS = RNG.random(3_000)
IDS = [f"case {i}" for i in range(3_000)]
POLICY = prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal(), salt="x").fit(FORECASTS)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the same rows in one file and in many."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{key},{value!r}" for key, value in zip(IDS, FORECASTS.tolist(), strict=True)]
    Path("rows.csv").write_text("\n".join(["id,f", *lines]))
    pq.write_table(pa.table({"id": IDS, "f": FORECASTS}), "rows.parquet", row_group_size=700)
    Path("parts").mkdir()
    for first in range(0, 3_000, 13):
        Path(f"parts/{first:04d}.csv").write_text("\n".join(["id,f", *lines[first : first + 13]]) + "\n")
    return tmp_path


@pytest.mark.parametrize("seed", [None, 5])
def test_the_same_actions_however_rows_are_stored(seed: int | None) -> None:
    mixed = ((POLICY.predict_proba(FORECASTS) > 0).sum(axis=1) > 1).mean()
    assert mixed > 0.1  # or the draws would not matter
    if seed is None:
        expected = POLICY.predict(FORECASTS, keys=IDS).tolist()
    else:
        policy = prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal(), random_state=seed).fit(FORECASTS)
        expected = policy.predict(FORECASTS).tolist()
    texts = set()
    for source in ("rows.csv", "rows.parquet", "parts"):
        key = "id" if seed is None else None
        found = decide_files(POLICY, source, ["f"], "out.csv", id_column=key, seed=seed, probabilities=True)
        counts = {"yes": expected.count("yes"), "no": expected.count("no")}
        assert found == Decisions(3_000, counts, 0, 0, 0, found.certificates)
        assert found.certificates[0].lower == pytest.approx(POLICY.certificate_.lower, abs=1e-9)
        texts.add(Path("out.csv").read_text())
    [text] = texts
    column = 1 if seed is None else 0
    assert [line.split(",")[column] for line in text.splitlines()[1:]] == expected


def test_duplicate_ids_far_apart_name_both_rows() -> None:
    pq.write_table(pa.table({"id": [*range(500), 17], "f": np.full(501, 0.5)}), "twice.parquet")
    with pytest.raises(
        prudent.errors.InputError,
        match=r"twice\.parquet, row 501, column 'id': the id is that of twice\.parquet, row 18;",
    ):
        decide_files(POLICY, "twice.parquet", ["f"], "out.parquet", id_column="id")
    assert not Path("out.parquet").exists()


@pytest.mark.parametrize(
    ("actions", "kind"), [([0, 1], "int64"), ([0.5, 1.5], "double"), ([False, True], "bool"), ([1, "one"], "string")]
)
def test_actions_keep_their_type(actions: list[object], kind: str) -> None:
    policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=actions))
    decide_files(policy, "rows.parquet", ["f"], "out.parquet", id_column="id")
    written = pq.read_table("out.parquet")
    assert str(written.schema.field("action").type) == kind
    assert written["action"].to_pylist() == [
        str(label) if kind == "string" else label for label in policy.predict(FORECASTS).tolist()
    ]


def test_which_policies_draw() -> None:
    assert not POLICY.deterministic
    assert prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal(), randomize=False).deterministic
    assert prudent.PlugInPolicy(PROBLEM).deterministic
    assert prudent.SafetyPolicy(PROBLEM, randomize=False).deterministic
    assert not prudent.SafetyPolicy(PROBLEM).deterministic
    assert prudent.RobustPolicy(PROBLEM, guarantees.FullyCalibrated()).fit(FORECASTS).deterministic


def test_columns_in_another_order_than_fitted_are_refused() -> None:
    problem = prudent.DecisionProblem.from_payoffs([[1, 0], [0, 1]])
    frame = pytest.importorskip("pandas").DataFrame({"p": [0.4, 0.8], "q": [0.6, 0.2]})
    policy = prudent.RobustPolicy(problem, guarantees.Unbiased(), randomize=False).fit(frame)
    pq.write_table(pa.table({"p": [0.5], "q": [0.5]}), "halves.parquet")
    with pytest.raises(prudent.errors.InputError, match=r"in the order of the fit, \['p', 'q'\]"):
        decide_files(policy, "halves.parquet", ["q", "p"], "out.csv")
    decide_files(policy, "halves.parquet", ["p", "q"], "out.csv")  # without a warning
    assert Path("out.csv").read_text() == "action\n0\n"


def test_actions_that_look_the_same_in_a_file_are_refused() -> None:
    policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], actions=[1, "1"]))
    with pytest.raises(prudent.errors.InputError, match="actions must differ as text"):
        decide_files(policy, "rows.parquet", ["f"], "out.csv")


texts = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1, unique=True)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts)
def test_any_id_is_read_back(ids: list[str]) -> None:
    pq.write_table(pa.table({"a,b": ids, "f": [0.5] * len(ids)}), "ids.parquet")
    for output in ("out.csv", "out.parquet"):
        decide_files(POLICY, "ids.parquet", ["f"], output, id_column="a,b")
    with Path("out.csv").open(newline="", encoding="utf-8") as stream:
        names, *rows = csv.reader(stream, strict=True)
    assert (names, [cell for cell, _ in rows]) == (["a,b", "action"], ids)
    assert pq.read_table("out.parquet")["a,b"].to_pylist() == ids


def test_bytes_of_csv() -> None:
    """Quotes only where needed; what a spreadsheet would compute stays as it came; numbers in their shortest form."""
    ids = ["plain", "=1+1", "007", 'say "hi"', "a,b", " x "]
    pq.write_table(pa.table({"id": ids, "f": [0.1] * 6}), "ids.parquet")
    policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=[1.0, 2.5]))
    decide_files(policy, "ids.parquet", ["f"], "out.csv", id_column="id", probabilities=True)
    shown = ["plain", "=1+1", "007", '"say ""hi"""', '"a,b"', " x "]
    assert Path("out.csv").read_text() == "id,action,p[1.0],p[2.5]\n" + "".join(f"{key},1,1,0\n" for key in shown)


@pytest.mark.parametrize("recalibrated", [False, True])
def test_exactly_as_many_rows_as_there_are_places(recalibrated: bool) -> None:
    policy: prudent.policies.Policy = prudent.PlugInPolicy(PROBLEM)
    if recalibrated:
        shift = prudent.recalibration.ScalingCalibrator("shift").fit([0.2, 0.6], [0.25, 0.65])
        policy = prudent.RecalibratedPolicy(shift, policy)
    places = 123 / 3_000
    for draws in ({"id_column": "id"}, {"seed": 4}):
        seen = []

        def capacity(rows: int, seen: list[int] = seen) -> dict[str, float]:
            seen.append(rows)
            return {"yes": places}

        found = decide_files(policy, "parts", ["f"], "out.csv", **draws, capacity=capacity)
        again = decide_files(policy, "rows.parquet", ["f"], "again.csv", **draws, capacity=capacity)
        assert found.counts == again.counts == {"yes": 123, "no": 2_877}
        assert Path("out.csv").read_bytes() == Path("again.csv").read_bytes()
        assert seen == [3_000, 3_000]
    if recalibrated:  # the highest forecasts become one, and tie
        return
    highest = set(np.argsort(FORECASTS)[-123:].tolist())
    with Path("out.csv").open(newline="") as stream:
        assert {row for row, line in enumerate(csv.DictReader(stream)) if line["action"] == "yes"} == highest


def test_a_capacity_needs_draws() -> None:
    with pytest.raises(prudent.errors.InputError, match="give --id COL, or --seed N"):
        decide_files(prudent.PlugInPolicy(PROBLEM), "parts", ["f"], "out.csv", capacity=lambda _: {"yes": 0.1})


def test_seeds_draw_for_recalibrated_policies_too() -> None:
    shift = prudent.recalibration.ScalingCalibrator("shift").fit([0.2, 0.6], [0.25, 0.65])
    policy = prudent.RecalibratedPolicy(shift, POLICY)
    outputs = []
    for name in ("one.csv", "two.csv"):
        decide_files(policy, "rows.csv", ["f"], name, seed=3)
        outputs.append(Path(name).read_bytes())
    assert outputs[0] == outputs[1]
