"""Spark in local mode, on a real JVM: the same answers as in memory. Run apart with ``make test-spark``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.tables.lazy import (
    CASES,
    ROWS,
    SCALAR,
    as_table,
    check_actions,
    check_audit,
    check_fit,
    check_verdict,
    check_worst_case,
)

from prudent import PolicyMonitor, RobustPolicy

pytestmark = [
    pytest.mark.spark,
    # Spark's own client uses parts of the standard library that warn.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'prudent[spark]'")
    builder = pyspark.SparkSession.builder.master("local[2]").appName("prudent")
    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    yield spark
    spark.stop()


@pytest.mark.parametrize("case", [3, 8, 11, 16, 18, 20], ids=lambda number: str(CASES[number][2])[:40])
def test_spark_fits_as_memory_does(case: int) -> None:
    check_fit("spark", *CASES[case], weight="w")


def test_spark_audits_as_memory_does() -> None:
    check_audit("spark", *CASES[13], weight="w")
    check_audit("spark", 1, SCALAR, CASES[2][2], group="g")


def test_spark_draws_the_actions_of_python() -> None:
    check_actions("spark", as_table(ROWS, "spark"))


@pytest.mark.parametrize("case", [3, 20], ids=lambda number: str(CASES[number][2])[:40])
def test_spark_finds_the_worst_case_of_memory(case: int) -> None:
    check_worst_case("spark", *CASES[case], weight="w")


def test_spark_judges_as_memory_does() -> None:
    check_verdict("spark", ROWS, *CASES[3], weight="w")


def test_spark_feeds_a_monitor_in_order() -> None:
    policy = RobustPolicy(SCALAR, CASES[2][2]).fit(ROWS.forecasts(1))
    memory = PolicyMonitor(policy).update(ROWS.forecasts(1), ROWS.outcomes(1), ids=ROWS.data["id"].tolist())
    order = np.random.default_rng(0).permutation(6_000)
    mixed = type(ROWS)({name: column[order] for name, column in ROWS.data.items()})
    table = PolicyMonitor(policy).update(mixed.columns(as_table(mixed, "spark"), 1, id="id"))
    assert table.evidence == memory.evidence
