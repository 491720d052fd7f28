"""Spark in local mode, on a real JVM: the same answers as in memory. Run apart with ``make test-spark``."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    check_pure,
    check_stress,
    check_worst_case,
)

import prudent
from prudent import RobustPolicy, guarantees
from prudent.errors import EngineError

PATIENCE = 120.0  # seconds until a test gives up waiting; nothing is measured

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


@pytest.fixture(scope="module")
def table(session: Any) -> Any:
    """The rows of all cases, brought to Spark once."""
    return as_table(ROWS, "spark").cache()


def some(cases: list[Any], chosen: set[int]) -> Any:
    """All cases; only the chosen ones are quick enough for every run."""
    return pytest.mark.parametrize(
        "number",
        [
            pytest.param(number, id=str(case[2])[:40], marks=[] if number in chosen else [pytest.mark.slow])
            for number, case in enumerate(cases)
        ],
    )


@some(CASES, {3, 8, 11, 16, 18, 20})
def test_spark_fits_as_memory_does(table: Any, number: int) -> None:
    check_fit("spark", *CASES[number], weight="w" if number % 2 else None, table=table)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(3, id="one coordinate"),
        pytest.param(15, id="three coordinates", marks=pytest.mark.slow),
        pytest.param(18, id="classes"),
    ],
)
def test_spark_finds_the_worst_case_of_memory(number: int) -> None:
    """In several coordinates policies are long expressions, which Spark must not copy into every place."""
    check_worst_case("spark", *CASES[number], weight="w")


@pytest.mark.slow
@pytest.mark.parametrize("number", [15, 18], ids=["three coordinates", "classes"])
def test_spark_is_stressed_as_memory_is(number: int) -> None:
    check_stress("spark", *CASES[number], "w")


def test_spark_finds_the_best_rule_of_memory() -> None:
    assert check_pure("spark", ROWS, 1, SCALAR, guarantees.SelfOrthogonal(), "w") == "optimal"


@some(AUDITED, {2, 13})
def test_spark_audits_as_memory_does(table: Any, number: int) -> None:
    check_audit("spark", *AUDITED[number], weight=None if number % 2 else "w", table=table)


def test_spark_knows_groups(table: Any) -> None:
    check_audit("spark", 1, SCALAR, guarantees.SelfOrthogonal(), group="g", table=table)


def test_spark_draws_the_actions_of_python(table: Any) -> None:
    check_actions("spark", table)


def test_a_cancelled_job_leaves_policy_and_session(session: Any, tmp_path: Path) -> None:
    """Somebody cancels the job group from another thread while a query runs that would never end."""
    context = session.sparkContext
    context.setJobGroup("fit", "a fit", interruptOnCancel=True)
    endless = session.range(0, 10**13, 1, 2).selectExpr("rand(0) AS v")
    policy = RobustPolicy(SCALAR, guarantees.Unbiased()).fit([0.2, 0.6])
    before = policy.certificate_.lower

    def cancel() -> None:
        deadline = time.monotonic() + PATIENCE
        while not context.statusTracker().getActiveStageIds() and time.monotonic() < deadline:
            time.sleep(0.05)
        context.cancelJobGroup("fit")

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        with pytest.raises(EngineError, match="was cancelled; nothing was changed"):
            policy.fit(prudent.scan(endless, "v"))
    finally:
        canceller.join()
        context.setLocalProperty("spark.jobGroup.id", None)
    assert policy.certificate_.lower == before
    after = session.range(0, 1000, 1, 2).selectExpr("(id + 0.5) / 1000 AS v")
    assert policy.fit(prudent.scan(after, "v")).certificate_.status == "optimal"


KILLED = Path(__file__).with_name("killed_executor.py")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="executors are found by their command lines in /proc")
def test_a_killed_executor(tmp_path: Path) -> None:
    """Two executors in processes of their own, one killed while it works; in a session of its own."""
    command = [sys.executable, str(KILLED), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    said, left, status = done.stdout.splitlines()[-3:]
    assert said.startswith("EngineError gathering rows into cells failed; nothing was changed. The engine says: ")
    assert left == "left []"
    assert status == "afterwards optimal"
