"""Lazy tables give what the same rows give in memory: certificates, audits, actions and worst cases."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from tests.cases.lazy import (
    AUDITED,
    CASES,
    ROWS,
    SCALAR,
    as_table,
    check_actions,
    check_audit,
    check_fit,
    check_stress,
    check_worst_case,
)

import prudent
from prudent import Box, DecisionProblem, PlugInPolicy, RobustPolicy, Simplex, guarantees
from prudent.cases.engine_rows import Rows
from prudent.cases.table_cells import gather_table
from prudent.errors import EngineError, InputError
from prudent.policies.play import play


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(("kind", "problem", "guarantee"), CASES, ids=lambda case: str(case)[:40])
def test_duckdb_fits_as_memory_does(kind: Any, problem: Any, guarantee: Any, weight: str | None) -> None:
    check_fit("duckdb", kind, problem, guarantee, weight)


@pytest.mark.parametrize(("kind", "problem", "guarantee"), CASES, ids=lambda case: str(case)[:40])
def test_polars_fits_as_memory_does(kind: Any, problem: Any, guarantee: Any) -> None:
    check_fit("polars", kind, problem, guarantee, "w")


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(("kind", "problem", "guarantee"), AUDITED, ids=lambda case: str(case)[:40])
def test_duckdb_audits_as_memory_does(kind: Any, problem: Any, guarantee: Any, weight: str | None) -> None:
    check_audit("duckdb", kind, problem, guarantee, weight=weight)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("options", [{"group": "g"}, {"group": "g", "weight": "w"}], ids=str)
def test_groups(engine: str, options: dict[str, Any]) -> None:
    check_audit(engine, 1, SCALAR, guarantees.SelfOrthogonal(intercept=True), **options)


@pytest.mark.parametrize(("kind", "problem", "guarantee"), AUDITED, ids=lambda case: str(case)[:40])
def test_polars_audits_as_memory_does(kind: Any, problem: Any, guarantee: Any) -> None:
    check_audit("polars", kind, problem, guarantee)


def test_every_guarantee_is_compared_or_refused() -> None:
    """A new one has to join the cases, which all engines go through."""
    exported = {getattr(guarantees, name) for name in guarantees.__all__} - {guarantees.Guarantee}
    assert exported == {type(guarantee) for _, _, guarantee in CASES if type(guarantee) in exported} | {
        guarantees.FromFunctions,
        guarantees.Within,  # guarantees/test_within.py
        guarantees.Partition,
    }


@pytest.mark.parametrize("slack", [0.01, "audit", prudent.Slack("audit")], ids=str)
def test_slack_on_a_table(slack: Any) -> None:
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    memory = RobustPolicy(SCALAR, guarantee, slack=slack).fit(ROWS.forecasts(1), ROWS.outcomes(1))
    table = RobustPolicy(SCALAR, guarantee, slack=slack).fit(ROWS.columns(as_table(ROWS, "duckdb"), 1))
    assert abs(table.certificate_.lower - memory.certificate_.lower) <= 1.01e-6 * SCALAR.utility_range
    assert table.fitted_.slack_cost == pytest.approx(memory.fitted_.slack_cost, abs=1e-4)


def test_far_finer_cells_where_the_grid_is_too_coarse() -> None:
    """All forecasts within a thousandth of the space: only divided cells can tell them apart."""
    narrow = 0.3 + 1e-3 * np.random.default_rng(3).random(4_000)
    problem = DecisionProblem([0.0, 1.0], [0.0, 0.3005])
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    memory = RobustPolicy(problem, guarantee).fit(narrow)
    frame = pl.LazyFrame({"v": narrow})
    table = RobustPolicy(problem, guarantee).fit(prudent.scan(frame, "v"))
    assert table.certificate_.status == "optimal"
    assert abs(table.certificate_.lower - memory.certificate_.lower) <= 1.01e-6 * problem.utility_range


def test_values_next_to_the_space_are_moved_and_counted() -> None:
    frame = pl.LazyFrame({"v": [-5e-7, 0.2, 0.4, 1 + 5e-7, 1 + 1e-14]})
    policy = RobustPolicy(SCALAR, guarantees.Unbiased()).fit(prudent.scan(frame, "v"))
    assert policy.fitted_.n_snapped == 2
    memory = RobustPolicy(SCALAR, guarantees.Unbiased()).fit(np.array([-5e-7, 0.2, 0.4, 1 + 5e-7, 1 + 1e-14]))
    assert policy.certificate_.lower == pytest.approx(memory.certificate_.lower, abs=1e-9)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_missing_values_are_counted_and_refused(engine: str) -> None:
    frame: Any = pl.LazyFrame({"v": [0.1, None, float("nan"), 0.4, 1.5]})
    if engine == "duckdb":
        frame = duckdb.sql("SELECT * FROM (VALUES (0.1::DOUBLE), (NULL), ('nan'::DOUBLE), (0.4), (1.5)) t(v)")
    policy = RobustPolicy(SCALAR, guarantees.Unbiased())
    with pytest.raises(InputError, match=r"2 with NULL or NaN in 'v'; 1 outside"):
        policy.fit(prudent.scan(frame, "v"))
    assert not hasattr(policy, "certificate_")


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_missing_outcomes_are_left_out_when_told(engine: str) -> None:
    frame: Any = pl.LazyFrame(
        {"v": [0.1, 0.7, 0.9, 0.4], "y": [0.0, None, float("nan"), 1.0], "w": [1.0, 1.0, 1.0, 2.0]}
    )
    if engine == "duckdb":
        connection = duckdb.connect()
        connection.register("frame", frame.collect().to_arrow())
        frame = connection.sql("SELECT * FROM frame")
    cases = prudent.scan(frame, "v", "y", weights="w", missing="drop")
    policy = RobustPolicy(SCALAR, guarantees.Unbiased()).fit(cases)
    expected = RobustPolicy(SCALAR, guarantees.Unbiased()).fit([0.1, 0.4], sample_weight=[1.0, 2.0])
    assert policy.certificate_.lower == pytest.approx(expected.certificate_.lower)
    found = prudent.audit(None, cases, guarantee=guarantees.Unbiased())
    assert (found.n_rows, found.n_dropped) == (2, 2)


def test_files_are_named_where_values_are_missing(tmp_path: Any) -> None:
    duckdb.sql("SELECT 0.5 AS v FROM range(10)").write_parquet(str(tmp_path / "a.parquet"))
    duckdb.sql("SELECT NULL::DOUBLE AS v FROM range(3)").write_parquet(str(tmp_path / "b.parquet"))
    with pytest.raises(InputError, match=r"b\.parquet, row 1, column 'v': the cell is empty"):
        RobustPolicy(SCALAR, guarantees.Unbiased()).fit(prudent.scan(str(tmp_path / "*.parquet"), "v"))


def test_a_truncated_file_is_an_error_and_nothing_changes(tmp_path: Any) -> None:
    good, bad = tmp_path / "a.parquet", tmp_path / "b.parquet"
    for path in (good, bad):
        duckdb.sql("SELECT random() AS v FROM range(100000)").write_parquet(str(path))
    content = bad.read_bytes()
    bad.write_bytes(content[: len(content) // 2] + content[-2000:])  # its end still looks like Parquet
    policy = RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit([0.2, 0.6])
    before = policy.certificate_.lower
    with pytest.raises(EngineError, match=r"failed; nothing was changed\. The engine says: "):
        policy.fit(prudent.scan(str(tmp_path / "*.parquet"), "v"))
    assert policy.certificate_.lower == before
    policy.fit(prudent.scan(str(good), "v"))  # the engine still works


def test_a_column_of_another_type_in_one_file(tmp_path: Any) -> None:
    duckdb.sql("SELECT 0.5 AS v").write_parquet(str(tmp_path / "a.parquet"))
    duckdb.sql("SELECT 'high' AS v").write_parquet(str(tmp_path / "b.parquet"))
    with pytest.raises((EngineError, InputError), match=r"v|column"):
        RobustPolicy(SCALAR, guarantees.Unbiased()).fit(prudent.scan(str(tmp_path / "*.parquet"), "v"))


def test_a_cancelled_query_leaves_the_session_usable() -> None:
    import threading

    connection = duckdb.connect()
    relation = connection.sql("SELECT random() AS v FROM range(300000000)")
    timer = threading.Timer(0.5, connection.interrupt)
    timer.start()
    with pytest.raises(EngineError, match="was cancelled; nothing was changed"):
        RobustPolicy(SCALAR, guarantees.Unbiased()).fit(prudent.scan(relation, "v"))
    timer.join()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"forecasts": "nothing"}, "forecasts must name columns of the table"),
        ({"forecasts": ["v", "y"]}, "forecasts must name 1 column"),
        ({"forecasts": "name"}, "forecasts must be columns of numbers"),
        ({"forecasts": "v", "missing": "ignore"}, "missing must be 'refuse' or 'drop'"),
    ],
)
def test_columns_that_do_not_fit(change: dict[str, Any], words: str) -> None:
    frame = pl.LazyFrame({"v": [0.1, 0.2], "y": [0.0, 1.0], "name": ["a", "b"]})
    with pytest.raises(InputError, match=words):
        RobustPolicy(SCALAR, guarantees.Unbiased()).fit(prudent.scan(frame, **change))


def test_what_an_engine_cannot_do_is_refused() -> None:
    columns = prudent.scan(pl.LazyFrame({"v": [0.1, 0.2], "y": [0.0, 1.0]}), "v", "y")
    custom = guarantees.FromFunctions([lambda v: v[:, 0]])
    with pytest.raises(InputError, match="its tests are Python functions"):
        RobustPolicy(SCALAR, custom).fit(columns)
    with pytest.raises(InputError, match="must be in memory here; got cases of a"):
        prudent.confidence_certificate(RobustPolicy(SCALAR, guarantees.Unbiased()).fit([0.1, 0.4]), columns)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_actions_are_those_of_python(engine: str) -> None:
    check_actions(engine, as_table(ROWS, engine))


def test_actions_need_keys_and_a_new_column() -> None:
    policy = RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(1))
    table = as_table(ROWS, "duckdb")
    with pytest.raises(InputError, match="name its column with scan"):
        policy.predict(prudent.scan(table, "v"))
    with pytest.raises(InputError, match="output must be a new column"):
        policy.predict(prudent.scan(table, "v", ids="id"), output="y")


def test_the_command_fits_a_glob_in_the_engine(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from prudent.cli.application import application

    monkeypatch.chdir(tmp_path)
    for number in range(2):
        duckdb.sql(f"SELECT (2 * range + {number} + 0.5) / 1000 AS v FROM range(500)").write_parquet(
            f"{number}.parquet"
        )
    runner = CliRunner()
    assert runner.invoke(application, ["init"]).exit_code == 0
    command = ["fit", "*.parquet", "--forecast", "v", "-o", "policy.json"]
    done = runner.invoke(application, command)
    assert done.exit_code == 0, done.output
    assert "cells of a table" in done.output
    assert "1,000 rows" in done.output
    assert prudent.load("policy.json").certificate_.status == "optimal"


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Any) -> None:
    for name, value in (("a1", 0.25), ("b", 0.75)):
        duckdb.sql(f"SELECT {value} AS v").write_parquet(str(tmp_path / f"{name}.parquet"))
    (tmp_path / "b.parquet").rename(tmp_path / "a[1].parquet")
    assert prudent.scan(str(tmp_path / "a[1].parquet"), "v").table.fetchall() == [(0.75,)]
    both = [str(tmp_path / "a[1].parquet"), tmp_path / "a1.parquet"]
    assert prudent.scan(both, "v").table.fetchall() == [(0.75,), (0.25,)]
    assert len(prudent.scan(tmp_path, "v")) == 2


def test_labels_that_are_no_class_are_never_dropped() -> None:
    frame = pl.LazyFrame({"p": [0.5, 0.2, 0.3], "q": [0.5, 0.8, 0.7], "label": ["a", None, "c"]})
    space = prudent.Simplex(2, classes=["a", "b"])
    columns = prudent.scan(frame, ["p", "q"], "label", missing="drop")
    with pytest.raises(InputError, match="1 whose outcome is missing or outside"):
        prudent.audit(space, columns, guarantee=guarantees.Unbiased())


@pytest.mark.parametrize("n_bins", [3, 10, 20, 49])
def test_forecasts_on_the_very_edges_of_bins(n_bins: int) -> None:
    """Bins by arithmetic are off by one next to some edges; the audit sees it and compares."""
    edges = np.linspace(0, 1, n_bins + 1)
    v = np.concatenate([edges, np.nextafter(edges, 2)[:-1], np.nextafter(edges, -1)[1:]])
    y = np.arange(len(v)) % 2.0
    frame = pl.LazyFrame({"v": v, "y": y})
    guarantee = guarantees.Bins(n_bins)
    table = prudent.audit(None, prudent.scan(frame, "v", "y"), guarantee=guarantee)
    np.testing.assert_allclose(table.estimates, prudent.audit(None, v, y, guarantee=guarantee).estimates, atol=1e-14)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("counts", [(3,), (10,), (20,), (49,), (6, 10)], ids=str)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-3.0, 7.1)], ids=str)
def test_cells_meet_at_the_edges_of_bins(engine: str, counts: tuple[int, ...], bounds: tuple[float, float]) -> None:
    """Each row counts here: one that finds itself on the wrong side of an edge changes the value."""
    edges = np.concatenate([np.linspace(*bounds, count + 1) for count in counts])
    v = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), np.round(edges, 2)])
    v = v[(v >= bounds[0]) & (v <= bounds[1])]
    y, w = np.arange(len(v)) % 2.0 * bounds[1], 1.0 + np.arange(len(v)) % 3
    guarantee = guarantees.Bins(counts[0])
    for count in counts[1:]:
        guarantee = guarantee & guarantees.Bins(count)
    problem = DecisionProblem([0.0, 1.0, 1.5], [0.0, 0.3, 0.7], space=Box(*bounds))
    frame: Any = pl.LazyFrame({"v": v, "y": y, "w": w})
    if engine == "duckdb":
        connection = duckdb.connect()
        connection.register("frame", frame.collect().to_arrow())
        frame = connection.sql("SELECT * FROM frame")
    columns = prudent.scan(frame, "v", "y", weights="w")
    memory = RobustPolicy(problem, guarantee).fit(v, sample_weight=w)
    table = RobustPolicy(problem, guarantee).fit(columns)
    assert table.certificate_.lower == pytest.approx(memory.certificate_.lower, abs=1.01e-6 * problem.utility_range)
    assert table.certificate_.status == "optimal"


@pytest.mark.parametrize("n_bins", [2, 3, 10, 20, 49, 1_000])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-3.0, 7.1), (100.0, 100.5)], ids=str)
def test_bins_of_equal_width_are_told_by_arithmetic(n_bins: int, bounds: tuple[float, float]) -> None:
    """Exactly: also forecasts at their very edges, and next to them, find the bin that a comparison finds."""
    space = Box(*bounds).with_dimension(1)
    guarantee = guarantees.Bins(n_bins).resolve(np.zeros((0, 1)), np.zeros(0), space)
    edges = np.linspace(*bounds, n_bins + 1)
    v = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), np.round(edges, 2)])
    v = v[(v >= bounds[0]) & (v <= bounds[1])]
    cells = gather_table(Rows(prudent.scan(pl.LazyFrame({"v": v}), "v"), space), guarantee)
    found = np.bincount(cells.labels[:, 0], cells.counts, minlength=n_bins)
    expected = np.bincount(np.searchsorted(edges[1:-1], v, side="right"), minlength=n_bins)
    np.testing.assert_array_equal(found, expected)


def test_actions_within_a_cell_that_touches_an_edge() -> None:
    """Two actions in one cell of the grid: rows of both are told apart by the edge, though only one has a row below."""
    v = np.array([0.15, 0.1502, 0.1503, 0.3, 0.7, 0.9])  # the edge 3 / 20 is just above 0.15
    problem = DecisionProblem([0.0, 1.0], [0.0, 0.15001])
    guarantee, policy = guarantees.Bins(20), prudent.PlugInPolicy(problem)
    memory = prudent.worst_case(policy, v, guarantee=guarantee)
    columns = prudent.scan(pl.LazyFrame({"v": v}), "v")
    table = prudent.worst_case(policy, columns, guarantee=guarantee)
    assert table.certificate.status == "optimal"
    assert table.value == pytest.approx(memory.value, abs=1.01e-6 * problem.utility_range)
    space = problem.space
    played = play([policy], columns.on(space), problem)
    resolved = guarantee.resolve(np.zeros((0, 1)), np.zeros(0), space)
    cells = gather_table(played.rows.placed, resolved, played.labels[0])
    again = cells.partition.with_key(cells.rows).select("key").collect()["key"].to_numpy()
    np.testing.assert_array_equal(np.unique(again), np.sort(cells.keys))


CHOSEN = [CASES[number] for number in (0, 3, 4, 6, 8, 9, 12, 14, 15, 18, 20)]


@pytest.mark.parametrize(("kind", "problem", "guarantee"), CHOSEN, ids=lambda case: str(case)[:40])
def test_duckdb_finds_the_worst_case_of_memory(kind: Any, problem: Any, guarantee: Any) -> None:
    check_worst_case("duckdb", kind, problem, guarantee, weight="w")


@pytest.mark.parametrize(("kind", "problem", "guarantee"), CHOSEN[1::2], ids=lambda case: str(case)[:40])
def test_polars_finds_the_worst_case_of_memory(kind: Any, problem: Any, guarantee: Any) -> None:
    check_worst_case("polars", kind, problem, guarantee)


@pytest.mark.parametrize("slack", [0.01, "audit", prudent.Slack("audit")], ids=str)
def test_slack_of_worst_cases_on_a_table(slack: Any) -> None:
    check_worst_case("duckdb", 1, SCALAR, guarantees.SelfOrthogonal(intercept=True), slack=slack)


def test_the_example_of_the_docstring_on_a_table() -> None:
    """Best responding under self-orthogonality: 0.2362, against 1 - 1/sqrt(6) for the best policy."""
    problem = DecisionProblem([1.0, -1.0], [0.0, -1.0])
    table = duckdb.sql("SELECT (i + 0.5) / 1000 AS risk FROM range(1000) t(i)")
    columns = prudent.scan(table, "risk")
    result = prudent.worst_case(PlugInPolicy(problem), columns, guarantee=guarantees.SelfOrthogonal())
    assert result.value == pytest.approx(0.2362, abs=1e-4)
    assert "cells of a table" in result.certificate.message


def test_cells_that_are_too_coarse_are_divided() -> None:
    """Actions change within a first cell: only divided ones tell them apart."""
    narrow = 0.3 + 1e-3 * np.random.default_rng(3).random(4_000)
    problem = DecisionProblem([0.0, 1.0], [0.0, 0.3005])
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    columns = prudent.scan(pl.LazyFrame({"v": narrow}), "v")
    memory = prudent.worst_case(PlugInPolicy(problem), narrow, guarantee=guarantee).certificate
    table = prudent.worst_case(PlugInPolicy(problem), columns, guarantee=guarantee).certificate
    assert table.status == "optimal"
    assert table.lower <= memory.upper
    assert memory.lower <= table.upper


@pytest.mark.parametrize("space", [Box([0] * 5, [1] * 5), Simplex(6)], ids=str)
def test_more_coordinates_than_a_grid_divides(space: Any) -> None:
    rng = np.random.default_rng(0)
    d = space.dimension
    forecasts = rng.random((4_000, d)) if isinstance(space, Box) else rng.dirichlet(np.ones(d), 4_000)
    problem = DecisionProblem(rng.normal(size=(3, d)), space=space)
    names = [f"v{j}" for j in range(d)]
    columns = prudent.scan(pl.LazyFrame(dict(zip(names, forecasts.T, strict=True))), names)
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    memory = prudent.worst_case(PlugInPolicy(problem), forecasts, guarantee=guarantee).certificate
    table = prudent.worst_case(PlugInPolicy(problem), columns, guarantee=guarantee).certificate
    assert table.lower <= memory.upper
    assert memory.lower <= table.upper
    assert table.gap <= 1e-6 * problem.utility_range


def test_what_is_said_twice_or_missing() -> None:
    columns = prudent.scan(pl.LazyFrame({"v": [0.1, 0.2]}), "v")
    policy = PlugInPolicy(SCALAR)
    with pytest.raises(InputError, match="weights of cases: say it in"):
        prudent.worst_case(policy, columns, guarantee=guarantees.Unbiased(), weights=[1, 1])
    with pytest.raises(InputError, match="outcomes must be named"):
        prudent.worst_case(policy, columns, guarantee=guarantees.Unbiased(), slack="audit")
    with pytest.raises(InputError, match="slack has no meaning for FullyCalibrated"):
        prudent.worst_case(policy, columns, guarantee=guarantees.FullyCalibrated(), slack=0.1)
    with pytest.raises(InputError, match="its tests are Python functions"):
        prudent.worst_case(policy, columns, guarantee=guarantees.FromFunctions([lambda v: v[:, 0]]))
    wide = prudent.scan(pl.LazyFrame({"v": [0.1], "u": [0.2]}), ["v", "u"])
    with pytest.raises(InputError, match="forecasts must name 1 column"):
        prudent.worst_case(policy, wide, guarantee=guarantees.Unbiased())


@pytest.mark.parametrize("outcomes", [None, "y"])
def test_rows_read_into_memory_are_moved_or_refused_as_arrays_are(outcomes: str | None) -> None:
    near = prudent.scan(pl.LazyFrame({"v": [0.1, 0.5, 1 + 1e-9], "y": [0.0, 1.0, 1.0]}), "v", outcomes)
    assert near.on(prudent.Box(0.0, 1.0)).in_memory().forecasts.ravel().tolist() == [0.1, 0.5, 1.0]
    far = prudent.scan(pl.LazyFrame({"v": [0.1, 0.5, 2.0], "y": [0.0, 1.0, 1.0]}), "v", outcomes)
    with pytest.raises(InputError, match="1 outside"):
        far.on(prudent.Box(0.0, 1.0)).in_memory()


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_numbers_are_placed_on_a_grid_as_in_memory(engine: str) -> None:
    rng = np.random.default_rng(0)
    problem = DecisionProblem.from_utility(lambda a, y: 5 * min(a, y) - 2 * a, [2, 5, 9], [-1, 0, 2, 5.5, 12])
    forecasts, numbers = rng.dirichlet(np.ones(5), 60), rng.uniform(-1, 12, 60)
    numbers[:5] = problem.space.points
    frame = pl.DataFrame({**{f"p{j}": column for j, column in enumerate(forecasts.T)}, "sold": numbers})

    def cases(frame: pl.DataFrame, **options: Any) -> Any:
        table = duckdb.connect().from_arrow(frame.to_arrow()) if engine == "duckdb" else frame.lazy()
        return prudent.scan(table, [f"p{j}" for j in range(5)], ["sold"], **options)

    for guarantee in ("unbiased", "cumulative", guarantees.Cumulative(orthogonal=True)):
        ours, theirs = (
            prudent.audit(problem, *given, guarantee=guarantee).measured.estimates
            for given in ((cases(frame),), (forecasts, numbers))
        )
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
    for wrong in (12.001, -1.001, 1e300):
        outside = frame.with_columns(pl.Series("sold", [wrong, *numbers[1:]]))
        with pytest.raises(InputError, match="1 whose outcome is missing or outside Grid"):
            prudent.audit(problem, cases(outside), guarantee="unbiased")
    missing = frame.with_columns(pl.Series("sold", [None, *numbers[1:]]))
    assert prudent.audit(problem, cases(missing, missing="drop"), guarantee="unbiased").n_rows == 59


@pytest.mark.parametrize(
    ("engine", "number", "weight"),
    [("duckdb", 3, "w"), ("polars", 8, None), ("polars", 14, "w"), ("polars", 15, None), ("polars", 18, "w")],
)
def test_tables_are_stressed_as_memory_is(engine: str, number: int, weight: str | None) -> None:
    check_stress(engine, *CASES[number], weight)


def test_without_outcomes_nothing_is_realised() -> None:
    columns = prudent.scan(as_table(ROWS, "polars"), "v")
    result = prudent.stress_test({"plug-in": PlugInPolicy(SCALAR)}, columns, guarantee=guarantees.Unbiased())
    assert result.realised is None
    assert "realised" not in str(result)


def test_measured_slack_and_missing_outcomes() -> None:
    data = dict(ROWS.data)
    data["y"] = np.where(np.arange(6_000) % 3 > 0, data["y"], np.nan)
    known = ~np.isnan(data["y"])
    policies = {"plug-in": PlugInPolicy(SCALAR)}
    guarantee = guarantees.SelfOrthogonal()
    columns = prudent.scan(pl.LazyFrame(data), "v", "y", missing="drop")
    table = prudent.stress_test(policies, columns, guarantee=guarantee, slack="audit")
    memory = prudent.stress_test(policies, data["v"][known], data["y"][known], guarantee=guarantee, slack="audit")
    np.testing.assert_allclose(table.nominal, memory.nominal, atol=1e-12)
    np.testing.assert_allclose(table.realised, memory.realised, atol=1e-12)
    np.testing.assert_allclose(table.worst, memory.worst, atol=2e-6)
    strict = prudent.scan(pl.LazyFrame(data), "v", "y")
    with pytest.raises(InputError, match="2,000 whose outcome is missing"):
        prudent.stress_test(policies, strict, guarantee=guarantee)


@pytest.mark.parametrize(
    ("policies", "options", "words"),
    [
        ({"array": np.ones((6_000, 3)) / 3}, {"problem": SCALAR}, "policy must be one of the library's"),
        ({"plug-in": PlugInPolicy(SCALAR)}, {"outcomes": [1.0]}, "outcomes of cases"),
        ({}, {}, "non-empty mapping"),
    ],
)
def test_bad_questions(policies: Any, options: dict[str, Any], words: str) -> None:
    columns = ROWS.columns(as_table(ROWS, "polars"), 1)
    with pytest.raises(InputError, match=words):
        prudent.stress_test(policies, columns, guarantee=guarantees.Unbiased(), **options)
