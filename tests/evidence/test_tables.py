"""Audits and ladders on lazy tables: what the same rows come to in memory."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.cases.lazy import (
    CASES,
    CLASSES,
    ROWS,
    SCALAR,
    Rows,
    as_table,
    check_audit,
    make_rows,
)

import prudent
from prudent import guarantees
from prudent.errors import InputError


def broken(rows: Rows) -> Rows:
    """Outcomes far below forecasts, classes that are often the first."""
    data = dict(rows.data)
    data["y"] = 0.7 * data["y"]
    data["z0"] = 0.6 * data["z0"]
    data["label"] = np.where(np.arange(len(data["label"])) % 5 == 0, 0, data["label"])
    return Rows(data)


BROKEN = broken(ROWS)


@pytest.mark.parametrize("number", [3, 7, 11, 12], ids=lambda number: str(CASES[number][2])[:40])
def test_duckdb_finds_the_violations_of_memory(number: int) -> None:
    assert check_audit("duckdb", *CASES[number], BROKEN, weight="w").rejected


@pytest.mark.parametrize("number", [2, 16, 18], ids=lambda number: str(CASES[number][2])[:40])
def test_polars_finds_the_violations_of_memory(number: int) -> None:
    assert check_audit("polars", *CASES[number], BROKEN, weight="w" if number % 4 else None).rejected


def test_few_rows_have_longer_intervals_on_tables() -> None:
    """A table has the sums of a moment; in memory every row is at hand, and bets on rows are worth more."""
    few = make_rows(60, 4)
    found = check_audit("polars", 1, SCALAR, guarantees.Bins(5), few)
    memory = prudent.audit(None, few.forecasts(1), few.outcomes(1), guarantee=guarantees.Bins(5))
    assert (found.measured.methods == "betting").all()
    ours, theirs = found.intervals, memory.intervals
    assert (ours[:, 0] <= theirs[:, 0] + 1e-9).all()
    assert (ours[:, 1] >= theirs[:, 1] - 1e-9).all()
    assert (np.diff(ours) > 1.05 * np.diff(theirs)).any()


def test_missing_outcomes_are_left_out_of_everything() -> None:
    """Policies are fitted on the rows that were measured, not on all that have a forecast."""
    data = dict(BROKEN.data)
    known = np.arange(len(data["v"])) % 3 > 0
    data["y"] = np.where(known, data["y"], np.nan)
    data["v"] = np.where(known, data["v"], 0.01)
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    memory = prudent.audit(SCALAR, data["v"], data["y"], guarantee=guarantee, missing="drop")
    frame = pl.LazyFrame(data)
    columns = prudent.scan(frame, "v", "y", missing="drop")
    table = prudent.audit(SCALAR, columns, guarantee=guarantee)
    assert (table.n_rows, table.n_dropped) == (memory.n_rows, memory.n_dropped) == (4_000, 2_000)
    np.testing.assert_allclose(table.intervals, memory.intervals, atol=1e-9)
    ours = prudent.guarantee_ladder(SCALAR, columns, guarantees=[guarantee]).best
    theirs = prudent.guarantee_ladder(SCALAR, data["v"], data["y"], guarantees=[guarantee], missing="drop").best
    assert ours.guaranteed == pytest.approx(theirs.guaranteed, abs=2e-6)
    with pytest.raises(InputError, match="2,000 whose outcome is missing"):
        prudent.audit(SCALAR, prudent.scan(frame, "v", "y"), guarantee=guarantee)


def test_rows_without_weight_are_not_rows_without_outcome() -> None:
    columns = ROWS.columns(as_table(ROWS, "duckdb"), 1, weight="w")
    result = prudent.audit(None, columns, guarantee=guarantees.Unbiased())
    assert (result.n_rows, result.n_dropped) == (int((ROWS.data["w"] > 0).sum()), 0)


def test_bad_questions() -> None:
    columns = ROWS.columns(as_table(ROWS, "polars"), 1)
    unlabelled = prudent.scan(as_table(ROWS, "polars"), "v")
    with pytest.raises(InputError, match="outcomes must be named"):
        prudent.audit(SCALAR, unlabelled, guarantee=guarantees.Unbiased())
    with pytest.raises(InputError, match="outcomes must be named"):
        prudent.guarantee_ladder(SCALAR, unlabelled)
    with pytest.raises(InputError, match=r"outcomes of cases: say it in"):
        prudent.audit(SCALAR, columns, ROWS.outcomes(1), guarantee=guarantees.Unbiased())
    with pytest.raises(InputError, match="forecasts must name 3 column"):
        prudent.audit(CLASSES, columns, guarantee=guarantees.Unbiased())
    with pytest.raises(InputError, match="must be a DecisionProblem"):
        prudent.audit("bikes", columns, guarantee=guarantees.Unbiased())
    with pytest.raises(InputError, match="FullyCalibrated has infinitely many tests"):
        prudent.audit(SCALAR, columns, guarantee=guarantees.FullyCalibrated())
    with pytest.raises(InputError, match="missing of cases"):
        prudent.guarantee_ladder(SCALAR, columns, missing="drop")


@pytest.mark.parametrize(("engine", "number", "weight"), [("duckdb", 3, "w"), ("polars", 3, None), ("polars", 18, "w")])
def test_ladders_are_those_of_memory(engine: str, number: int, weight: str | None) -> None:
    kind, problem, _ = CASES[number]
    memory = prudent.guarantee_ladder(
        problem, BROKEN.forecasts(kind), BROKEN.outcomes(kind), weights=None if weight is None else BROKEN.data[weight]
    )
    columns = BROKEN.columns(as_table(BROKEN, engine), kind, weight=weight)
    table = prudent.guarantee_ladder(problem, columns)
    assert table.n_rows == memory.n_rows
    assert table.best.name == memory.best.name
    rows = columns.on(problem.space)
    few = {
        rung.name
        for rung in table.rungs
        if "betting" in rows.measure(rung.guarantee, table.rung_confidence).estimates.methods
    }
    assert len(few) < 4
    for ours, theirs in zip(table.rungs, memory.rungs, strict=True):
        assert (ours.name, ours.holds) == (theirs.name, theirs.holds)
        scale = problem.utility_range
        if ours.name in few:  # a table has sums only, so the slack is larger and less is guaranteed
            assert ours.p_value >= theirs.p_value - 1e-9
            assert theirs.slack <= ours.slack <= 1.3 * theirs.slack
            assert theirs.guaranteed - 0.05 * scale <= ours.guaranteed <= theirs.guaranteed + 1e-6 * scale
            continue
        assert ours.p_value == pytest.approx(theirs.p_value, rel=1e-5, abs=1e-9)
        assert ours.slack == pytest.approx(theirs.slack, rel=1e-6)
        assert ours.guaranteed == pytest.approx(theirs.guaranteed, abs=1.01e-6 * scale)
        for name in ("nominal", "given_up", "realised"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-3 * scale), (ours.name, name)


@pytest.mark.parametrize(("engine", "weight"), [("duckdb", None), ("duckdb", "w"), ("polars", "w")])
@pytest.mark.parametrize("rows", [ROWS, BROKEN], ids=["right", "broken"])
def test_the_audit_of_the_best_rung_is_that_of_memory(engine: str, weight: str | None, rows: Rows) -> None:
    weights = {} if weight is None else {"weights": rows.data[weight]}
    memory = prudent.Cases(rows.forecasts(1), rows.outcomes(1), **weights)
    table = rows.columns(as_table(rows, engine), 1, weight=weight)
    found = []
    for cases in (table, memory):
        best = prudent.guarantee_ladder(SCALAR, cases, confidence=0.9)
        audited = prudent.audit(SCALAR, cases, guarantee=best.best.guarantee, confidence=best.rung_confidence)
        found.append((best.best.name, audited))
    (our_name, ours), (their_name, theirs) = found
    assert our_name == their_name
    assert ours.confidence == theirs.confidence > 0.9
    assert (ours.n_rows, ours.n_dropped) == (theirs.n_rows, theirs.n_dropped)
    np.testing.assert_allclose(ours.estimates, theirs.estimates, atol=1e-12)
    np.testing.assert_allclose(ours.measured.radii, theirs.measured.radii, rtol=1e-6)
    assert ours.sentence == theirs.sentence
