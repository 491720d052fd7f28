"""Spark in local mode, on a real JVM: the same answers as in memory. Run apart with ``make test-spark``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.tables.lazy import CASES, ROWS, SCALAR, as_table, check_actions, check_audit, check_fit

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
