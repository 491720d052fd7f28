"""Decisions row by row are those of predict, whatever the chunks."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent import guarantees
from prudent.policies import Decisions, decide_rows
from prudent.tables import CsvTable, ParquetTable

PROBLEM = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0], actions=["yes", "no"])
RNG = np.random.default_rng(0)
FORECASTS = RNG.random(3_000)
IDS = [f"case {i}" for i in range(3_000)]
POLICY = prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal(), salt="x").fit(FORECASTS)


def csv_source(block_bytes: int) -> CsvTable:
    lines = ["id,f", *(f"{key},{value!r}" for key, value in zip(IDS, FORECASTS.tolist(), strict=True))]
    return CsvTable(io.BytesIO("\n".join(lines).encode()), "rows.csv", block_bytes=block_bytes)


def parquet_source(batch_rows: int) -> ParquetTable:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": IDS, "f": FORECASTS}), sink, row_group_size=700)
    return ParquetTable(sink, "rows.parquet", batch_rows=batch_rows)


@pytest.mark.parametrize("seed", [None, 5])
def test_the_same_actions_in_chunks_of_any_size(tmp_path: Path, seed: int | None) -> None:
    mixed = ((POLICY.predict_proba(FORECASTS) > 0).sum(axis=1) > 1).mean()
    assert mixed > 0.1  # or the draws would not matter
    if seed is None:
        expected = POLICY.predict(FORECASTS, keys=IDS).tolist()
    else:
        policy = prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal(), random_state=seed).fit(FORECASTS)
        expected = policy.predict(FORECASTS).tolist()
    texts = set()
    sources = [csv_source(200), csv_source(5_000), csv_source(1 << 22), parquet_source(1), parquet_source(999)]
    for source in [*sources, parquet_source(1 << 17)]:
        key = "id" if seed is None else None
        output = str(tmp_path / "out.csv")
        found = decide_rows(POLICY, source, ["f"], output, id_column=key, seed=seed, probabilities=True)
        assert found == Decisions(3_000, {"yes": expected.count("yes"), "no": expected.count("no")}, 0)
        texts.add((tmp_path / "out.csv").read_text())
    [text] = texts
    column = 1 if seed is None else 0
    assert [line.split(",")[column] for line in text.splitlines()[1:]] == expected


def test_duplicate_ids_far_apart_name_both_rows(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [*range(500), 17], "f": np.full(501, 0.5)}), sink)
    table = ParquetTable(sink, "rows.parquet", batch_rows=10)
    with pytest.raises(prudent.InputError, match=r"row 501, column 'id': the id is that of row 18"):
        decide_rows(POLICY, table, ["f"], str(tmp_path / "out.parquet"), id_column="id")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("actions", "kind"), [([0, 1], "int64"), ([0.5, 1.5], "double"), ([False, True], "bool"), ([1, "one"], "string")]
)
def test_actions_keep_their_type(tmp_path: Path, actions: list[object], kind: str) -> None:
    policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=actions))
    decide_rows(policy, parquet_source(1000), ["f"], str(tmp_path / "out.parquet"), id_column="id")
    written = pq.read_table(tmp_path / "out.parquet")
    assert str(written.schema.field("action").type) == kind
    assert written["action"].to_pylist() == [
        str(label) if kind == "string" else label for label in policy.predict(FORECASTS).tolist()
    ]


def test_which_policies_draw() -> None:
    assert not POLICY.deterministic
    assert prudent.PureRobustPolicy(PROBLEM, guarantees.SelfOrthogonal()).deterministic
    assert prudent.PlugInPolicy(PROBLEM).deterministic
    assert prudent.SafetyPolicy(PROBLEM, pure=True).deterministic
    assert not prudent.SafetyPolicy(PROBLEM).deterministic
    assert prudent.RobustPolicy(PROBLEM, guarantees.FullyCalibrated()).fit(FORECASTS).deterministic


def test_columns_in_another_order_than_fitted_are_refused(tmp_path: Path) -> None:
    problem = prudent.DecisionProblem.from_payoffs([[1, 0], [0, 1]])
    frame = pytest.importorskip("pandas").DataFrame({"p": [0.4, 0.8], "q": [0.6, 0.2]})
    policy = prudent.PureRobustPolicy(problem, guarantees.Unbiased()).fit(frame)
    sink = io.BytesIO()
    pq.write_table(pa.table({"p": [0.5], "q": [0.5]}), sink)
    output = str(tmp_path / "out.csv")
    with pytest.raises(prudent.InputError, match=r"in the order of the fit, \['p', 'q'\]"):
        decide_rows(policy, ParquetTable(sink, "rows.parquet"), ["q", "p"], output)
    decide_rows(policy, ParquetTable(sink, "rows.parquet"), ["p", "q"], output)  # without a warning
    assert (tmp_path / "out.csv").read_text() == "action\n0\n"


def test_actions_that_look_the_same_in_a_file_are_refused(tmp_path: Path) -> None:
    policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], actions=[1, "1"]))
    with pytest.raises(prudent.InputError, match="actions must differ as text"):
        decide_rows(policy, parquet_source(1000), ["f"], str(tmp_path / "out.csv"))
