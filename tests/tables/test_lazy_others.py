"""Tables of Dask and Ibis, which narwhals carries: the same answers as in memory, where they are installed."""

from __future__ import annotations

import pytest
from tests.tables.lazy import CASES, ROWS, SCALAR, as_table, check_audit, check_fit

import prudent
from prudent import InputError, RobustPolicy, guarantees

ENGINES = ["dask", "ibis"]


CHOSEN = [("dask", number) for number in (3, 7, 8, 9)] + [("ibis", number) for number in (3, 7, 8, 9, 11, 16, 20)]


@pytest.mark.parametrize(("engine", "number"), CHOSEN, ids=str)
def test_fits_as_memory_does(engine: str, number: int) -> None:
    pytest.importorskip(engine)
    check_fit(engine, *CASES[number], weight="w" if number % 2 else None)


@pytest.mark.parametrize("number", [11, 14, 16, 20], ids=lambda number: str(CASES[number][2])[:40])
def test_dask_refuses_labels_by_the_best_coordinate_or_action(number: int) -> None:
    pytest.importorskip("dask")
    kind, problem, guarantee = CASES[number]
    columns = ROWS.columns(as_table(ROWS, "dask"), kind)
    with pytest.raises(InputError, match="Dask cannot compare a column with the largest of several"):
        RobustPolicy(problem, guarantee).fit(columns)
    if not guarantee.full:
        with pytest.raises(InputError, match="Dask cannot compare a column with the largest of several"):
            prudent.audit(columns, None, guarantee, space=problem.space)


@pytest.mark.parametrize("engine", ENGINES)
def test_audits_as_memory_does(engine: str) -> None:
    pytest.importorskip(engine)
    check_audit(engine, *CASES[13], weight="w")
    check_audit(engine, 1, SCALAR, guarantees.SelfOrthogonal(), group="g")


@pytest.mark.parametrize("engine", ENGINES)
def test_actions_are_refused_with_the_reason(engine: str) -> None:
    pytest.importorskip(engine)
    policy = RobustPolicy(SCALAR, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(1))
    columns = prudent.columns(as_table(ROWS, engine), forecasts="v", id="id")
    with pytest.raises(InputError, match=f"tables of DuckDB, Spark and Polars; this one is of {engine}"):
        policy.decide_table(columns)
