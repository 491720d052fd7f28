"""Every family of guarantees has the same tests, tilts, moments and decisions in NumPy, in every engine and in SQL.

Families are found as subclasses: one without a specimen fails, and so cannot arrive without being compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest

import prudent
from guarantee_specimens import JOINED, SPECIMENS, context_of, families, sample
from prudent import guarantees
from prudent.errors import InputError
from prudent.guarantees.engine_tests import engine_tests

N = 400
CONTEXT = context_of(N)
PAIRS = {f"{name}-{i}": pair for name, pairs in (SPECIMENS | JOINED).items() for i, pair in enumerate(pairs)}
STATED = [pytest.param(*pair, id=name) for name, pair in PAIRS.items() if pair[0].savable and not pair[0].full]
FUNCTIONS = [pytest.param(*pair, id=name) for name, pair in PAIRS.items() if not pair[0].savable]
SPARK = [
    pytest.mark.spark,
    # Spark's own client uses parts of the standard library that warn.
    *(
        pytest.mark.filterwarnings(f"ignore::{kind}")
        for kind in ("DeprecationWarning", "FutureWarning", "ResourceWarning", "UserWarning")
    ),
]
ENGINES = ["duckdb", "polars", pytest.param("spark", marks=SPARK)]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'prudent[spark]'")
    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    session = pyspark.SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    """A function that puts a data frame into an engine."""
    if request.param == "polars":
        return lambda frame: frame.lazy()
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        return lambda frame: session.createDataFrame(frame.to_pandas())
    connection = duckdb.connect()

    def register(frame: pl.DataFrame) -> Any:
        connection.register("frame", frame.to_arrow())
        return connection.sql("SELECT * FROM frame")

    return register


def rows_of(problem: prudent.DecisionProblem) -> tuple[np.ndarray, np.ndarray, pl.DataFrame]:
    """Forecasts, outcomes, and both as a data frame; two decimals, so that some forecasts are edges of bins."""
    forecasts = sample(problem, N)
    if not problem.space.is_simplex:
        forecasts = np.round(forecasts, 2)
    outcomes = np.roll(sample(problem, N), 1, axis=0)
    context = {
        prefix + name: column for name, column in CONTEXT.items() for prefix in ("", "c_")
    }  # as placed rows have
    columns = {"i": np.arange(N), **named("v", forecasts), **named("y", outcomes), **context}
    return forecasts, outcomes, pl.DataFrame(columns)


def named(letter: str, table: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{letter}{j}": column for j, column in enumerate(table.T)}


def columns(table: Any, expressions: list[Any]) -> np.ndarray:
    """Evaluate expressions in the engine, in the order of the rows."""
    names = [f"c{j}" for j in range(len(expressions))]
    chosen = [expression.alias(name) for name, expression in zip(names, expressions, strict=True)]
    found = nw.from_native(table).lazy().select("i", *chosen).collect("pyarrow").sort("i")
    return np.array([found[name].to_numpy() for name in names]).reshape(len(names), N).T


def test_every_family_has_a_specimen() -> None:
    assert set(families()) == set(SPECIMENS | JOINED)


@pytest.mark.parametrize(("guarantee", "problem"), STATED)
def test_an_engine_has_the_tests_tilts_and_moments_of_numpy(
    guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem, engine: Any
) -> None:
    forecasts, outcomes, frame = rows_of(problem)
    table, space = engine(frame), problem.space
    resolved = guarantee.resolve(forecasts, np.full(N, 1 / N), space, CONTEXT)
    expected, tests = resolved.evaluate(forecasts, space, CONTEXT), engine_tests(resolved, space)
    labels = columns(table, [label.expression for label in tests.labels]).astype(np.int64)
    numbers = columns(table, list(tests.numbers.values()))
    found = tests.assemble(labels, dict(zip(tests.numbers, numbers.T, strict=True)))
    assert (found.names, found.scalar) == (expected.names, expected.scalar)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-14)
    multipliers = np.random.default_rng(1).normal(size=expected.n_moments)
    np.testing.assert_allclose(
        columns(table, tests.tilts(multipliers)),
        expected.tilts(multipliers),
        rtol=0,
        atol=1e-13 * (1 + expected.n_moments),
    )
    if not expected.n_moments:
        return
    cases = prudent.scan(table, [*named("v", forecasts)], [*named("y", outcomes)], context=[*CONTEXT])
    ours = prudent.audit(problem, cases, guarantee=guarantee)
    theirs = prudent.audit(problem, forecasts, outcomes, guarantee=guarantee, context=CONTEXT)
    assert ours.guarantee == theirs.guarantee
    np.testing.assert_allclose(ours.measured.estimates, theirs.measured.estimates, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("guarantee", "problem"), STATED)
def test_sql_plays_what_numpy_plays(guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
    forecasts, _, frame = rows_of(problem)
    policy = prudent.RobustPolicy(problem, guarantee).fit(forecasts, context=CONTEXT)
    written = policy.to_sql("duckdb", [*named("v", forecasts)], output="probabilities")
    listed = ", ".join(f"{text} AS p{a}" for a, text in enumerate(written.values()))
    with duckdb.connect() as connection:
        connection.register("frame", frame.to_arrow())
        found = connection.sql(f"SELECT {listed} FROM frame ORDER BY i").fetchnumpy()
    played = np.stack([np.ma.filled(found[f"p{a}"], np.nan) for a in range(problem.n_actions)], axis=1)
    np.testing.assert_allclose(played, policy.predict_proba(forecasts, context=CONTEXT), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("guarantee", "problem"), FUNCTIONS)
def test_functions_are_refused_in_words(
    guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem, engine: Any
) -> None:
    forecasts, outcomes, frame = rows_of(problem)
    cases = prudent.scan(engine(frame), [*named("v", forecasts)], [*named("y", outcomes)])
    rule = f"{type(guarantee).__name__} cannot be evaluated inside an engine or written in SQL: its tests are Python"
    for given in (guarantee, guarantees.Unbiased() & guarantee):
        with pytest.raises(InputError, match=rule):
            prudent.RobustPolicy(problem, given).fit(cases)
        with pytest.raises(InputError, match=rule):
            prudent.audit(problem, cases, guarantee=given)
        with pytest.raises(InputError, match=rule):
            prudent.RobustPolicy(problem, given).fit(forecasts).to_sql("duckdb", [*named("v", forecasts)])


def test_full_calibration_has_no_tests_anywhere() -> None:
    for stating in (engine_tests, lambda guarantee, space: guarantee.evaluate(np.full((1, 1), 0.5), space)):
        with pytest.raises(InputError, match="infinitely many tests"):
            stating(guarantees.FullyCalibrated(), prudent.Box(0, 1))
