"""SQL decides as Python does: every built-in guarantee in a real DuckDB, boundary values included."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import guarantees
from prudent.policies.explanation import first_among
from prudent.policies.sql.formulas import DIALECTS
from prudent.solvers.game import Game, local_game

LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7], actions=["low", "mid", "high"])
UNITS = prudent.DecisionProblem([0.004, 0.018, 0.028], [0.0, 6.0, 14.0], space=prudent.Box(-50, 450))
CLASSES = prudent.DecisionProblem.from_payoffs([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.6]])
BOX = prudent.DecisionProblem(
    np.random.default_rng(4).normal(size=(5, 3)), [0.1, 0, 0.2, 0, -0.1], space=prudent.Box([0, -1, 0], [1, 1, 5])
)
TIES = prudent.DecisionProblem([[2.0, 1.0], [-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])  # all lines meet at the origin

ONE = [
    guarantees.Nothing(),
    guarantees.Unbiased(),
    guarantees.SelfOrthogonal(),
    guarantees.SelfOrthogonal(intercept=True),
    guarantees.Polynomial(1),
    guarantees.Polynomial(3),
    guarantees.Bins(7),
    guarantees.Bins(5, "quantile"),
    guarantees.FullyCalibrated(),
    guarantees.Bins(3) & guarantees.SelfOrthogonal(),
]
MANY = [
    guarantees.Nothing(),
    guarantees.Unbiased(),
    guarantees.SelfOrthogonal(),
    guarantees.Polynomial(2),
    guarantees.Classwise(3),
    guarantees.FullyCalibrated(),
    guarantees.Unbiased() & guarantees.Classwise(2),
]
TOP = [guarantees.TopLabel(3), guarantees.TopLabelPooled(4)]
CASES = [
    *[(LINE, guarantee) for guarantee in ONE],
    *[(UNITS, guarantee) for guarantee in ONE[2:8:2]],
    *[(problem, guarantee) for problem in (CLASSES, BOX, TIES) for guarantee in MANY],
    *[(CLASSES, guarantee) for guarantee in TOP],
    *[
        (problem, family(problem))
        for problem in (LINE, CLASSES, BOX)
        for family in (guarantees.DecisionCalibrated, guarantees.UtilityCalibrated)
    ],
]
LOGARITHMS = [
    (problem, guarantee)
    for problem in (LINE, CLASSES)
    for guarantee in (guarantees.LogOdds(), guarantees.Temperature())
]
POLICIES = [prudent.RobustPolicy, partial(prudent.RobustPolicy, randomize=False)]


def sample(problem: prudent.DecisionProblem, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if isinstance(problem.space, prudent.Simplex):
        return rng.dirichlet(np.ones(problem.dimension), size=n)
    low, high = problem.space.bounds
    return low + (high - low) * rng.uniform(0.01, 0.99, size=(n, problem.dimension))


def changes(policy: prudent.policies.Policy, low: float, high: float) -> list[float]:
    """Doubles around which the mixture of a one-dimensional policy changes its support."""
    grid = np.linspace(low, high, 2001)
    support = policy.predict_proba(grid) > 0
    found = []
    for i in np.flatnonzero((support[1:] != support[:-1]).any(axis=1)):
        before = support[i]
        found.append(
            first_among(
                lambda v, kept=before: ((policy.predict_proba(v) > 0) != kept).any(axis=1), grid[i], grid[i + 1]
            )
        )
    return found


def with_boundaries(policy: prudent.policies.Policy, n: int) -> np.ndarray:
    """Random forecasts, and those where rules change: thresholds, edges, corners, each with its neighbours."""
    problem = policy.problem
    forecasts = sample(problem, n, seed=1)
    if isinstance(problem.space, prudent.Simplex):
        tenths = np.round(forecasts[: n // 4] * 12)
        tenths[tenths.sum(axis=1) == 0] = 1
        forecasts[: n // 4] = tenths / tenths.sum(axis=1, keepdims=True)  # ties, edges of bins, zeros
        forecasts[: problem.dimension] = np.eye(problem.dimension)
        return forecasts
    low, high = problem.space.bounds
    if problem.dimension == 1:
        edges = getattr(getattr(policy, "guarantee_", None), "edges", ())
        special = np.array([low[0], high[0], 0.0 if low[0] <= 0 else low[0], *edges, *changes(policy, low[0], high[0])])
        special = np.concatenate([special, np.nextafter(special, low[0]), np.nextafter(special, high[0])])
        for _ in range(3):
            special = np.concatenate([special, np.nextafter(special, low[0]), np.nextafter(special, high[0])])
        forecasts[: special.size, 0] = special
        return forecasts
    coarse = low + (high - low) * np.round(np.random.default_rng(2).random((n // 4, problem.dimension)) * 12) / 12
    forecasts[: n // 4] = coarse
    forecasts[n // 4 : n // 2] = np.nextafter(coarse, high)
    forecasts[n // 2 : 3 * (n // 4)] = np.nextafter(coarse, low)[: 3 * (n // 4) - n // 2]
    return forecasts


def ask(policy: prudent.policies.Policy, forecasts: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Decide in DuckDB: actions and probabilities."""
    columns = [f"forecast {j}" for j in range(forecasts.shape[1])]
    frame = pd.DataFrame(forecasts, columns=columns).assign(id=[f"record {i}" for i in range(len(forecasts))])
    action = policy.to_sql("duckdb", columns, key="id", **options)
    shares = policy.to_sql("duckdb", columns, output="probabilities", **options)
    assert list(shares) == list(policy.problem.actions)
    listing = ", ".join(f"{text} AS p{a}" for a, text in enumerate(shares.values()))
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        answer = connection.sql(f"SELECT {action} AS action, {listing} FROM frame").fetchnumpy()
    probabilities = np.stack([np.ma.filled(answer[f"p{a}"], np.nan) for a in range(policy.problem.n_actions)], axis=1)
    return answer["action"], probabilities


def keys_of(forecasts: np.ndarray) -> list[str]:
    return [f"record {i}" for i in range(len(forecasts))]


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(("problem", "guarantee"), CASES, ids=lambda value: f"{value!r:.40}")
def test_bit_for_bit_what_python_plays(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee, kind: type[prudent.policies.Policy]
) -> None:
    policy = kind(problem, guarantee, salt="s").fit(sample(problem, 24))
    forecasts = with_boundaries(policy, 2000)
    actions, probabilities = ask(policy, forecasts)
    np.testing.assert_array_equal(probabilities, policy.predict_proba(forecasts))
    np.testing.assert_array_equal(actions, policy.predict(forecasts, keys=keys_of(forecasts)))


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(("problem", "guarantee"), LOGARITHMS, ids=lambda value: f"{value!r:.40}")
def test_logarithms_agree_to_rounding(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee, kind: type[prudent.policies.Policy]
) -> None:
    policy = kind(problem, guarantee).fit(sample(problem, 60))
    forecasts = sample(problem, 4000, seed=1)
    actions, probabilities = ask(policy, forecasts)
    np.testing.assert_allclose(probabilities, policy.predict_proba(forecasts), rtol=0, atol=1e-12)
    assert (actions != policy.predict(forecasts, keys=keys_of(forecasts))).mean() < 1e-3
    edge = problem.space.support_minimizer(np.ones((1, problem.dimension)))
    with pytest.raises(prudent.errors.InputError, match="logarithms"):
        policy.predict(edge)
    with pytest.raises(duckdb.Error, match="logarithms"):
        ask(policy, edge)


@pytest.mark.parametrize("problem", [LINE, UNITS, CLASSES, BOX, TIES], ids=["line", "units", "classes", "box", "ties"])
@pytest.mark.parametrize("kind", [prudent.PlugInPolicy, prudent.SafetyPolicy])
def test_the_two_habits(problem: prudent.DecisionProblem, kind: type[prudent.policies.Policy]) -> None:
    policy = kind(problem)
    forecasts = with_boundaries(policy, 2000)
    actions, probabilities = ask(policy, forecasts)
    np.testing.assert_array_equal(probabilities, policy.predict_proba(forecasts))
    np.testing.assert_array_equal(actions, policy.predict(forecasts, keys=keys_of(forecasts)))


@pytest.mark.parametrize(
    ("problem", "guarantee"),
    [
        (LINE, guarantees.SelfOrthogonal()),
        (LINE, guarantees.Bins(10, "quantile")),
        pytest.param(BOX, guarantees.SelfOrthogonal(), marks=pytest.mark.slow),
        pytest.param(CLASSES, guarantees.SelfOrthogonal(), marks=pytest.mark.slow),
    ],
    ids=["line", "bins", "box", "simplex"],
)
def test_a_million_rows(problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee) -> None:
    policy = prudent.RobustPolicy(problem, guarantee, salt="million").fit(sample(problem, 500))
    forecasts = with_boundaries(policy, 1_000_000)
    actions, probabilities = ask(policy, forecasts)
    np.testing.assert_array_equal(probabilities, policy.predict_proba(forecasts))
    np.testing.assert_array_equal(actions, policy.predict(forecasts, keys=keys_of(forecasts)))


def test_ties_are_where_the_forecast_decides() -> None:
    """The vertex table of this problem has degenerate vertices that rows reach; else the test above shows nothing."""
    policy = prudent.RobustPolicy(TIES, guarantees.SelfOrthogonal()).fit(sample(TIES, 60))
    forecasts = sample(TIES, 4000)
    tilts, local = policy.fitted_.tilts(forecasts), local_game(Game.of_problem(TIES))
    assert (local.mixtures(tilts) != local.mixtures(tilts, forecasts)).any()


def test_rows_that_python_snaps_are_snapped() -> None:
    line = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal()).fit(sample(LINE, 60))
    near = np.array([-1e-6, -1e-9, -1e-13, 1 + 1e-13, 1 + 9.9e-7])[:, None]
    np.testing.assert_array_equal(ask(line, near)[1], line.predict_proba(near))
    classes = prudent.RobustPolicy(CLASSES, guarantees.SelfOrthogonal()).fit(sample(CLASSES, 60))
    rows = sample(CLASSES, 3000) * (1 + np.random.default_rng(3).uniform(-9e-7, 9e-7, size=(3000, 1)))
    rows[:3] = [[-5e-7, 0.5, 0.5], [1 + 5e-13, 0, -1e-13], [0.2, 0.3, 0.5 + 1e-9]]
    np.testing.assert_array_equal(ask(classes, rows)[1], classes.predict_proba(rows))


@pytest.mark.parametrize("bad", [[1.5], [-1e-5], [np.nan], [np.inf], [-np.inf]])
def test_what_python_refuses_stops_the_query_or_gives_null(bad: list[float]) -> None:
    policy = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal()).fit(sample(LINE, 60))
    rows = np.array([[0.5], bad])
    with pytest.raises(prudent.errors.InputError):
        policy.predict(rows)
    with pytest.raises(duckdb.Error, match=r"forecasts must lie in Box\(0\.0, 1\.0\); got"):
        ask(policy, rows)
    actions, probabilities = ask(policy, rows, invalid="null")
    assert list(np.ma.getmaskarray(actions)) == [False, True]
    assert np.isnan(probabilities[1]).all()
    assert not np.isnan(probabilities[0]).any()


@pytest.mark.parametrize("bad", [[0.5, 0.4, 0.2], [0.5, np.nan, 0.5], [1.1, -0.1, 0.0]])
def test_rows_off_the_simplex_are_refused(bad: list[float]) -> None:
    policy = prudent.PlugInPolicy(CLASSES)
    with pytest.raises(prudent.errors.InputError):
        policy.predict([bad])
    with pytest.raises(duckdb.Error, match=r"Simplex\(3\)"):
        ask(policy, np.array([bad]))


def test_null_is_refused_in_every_place() -> None:
    policy = prudent.RobustPolicy(CLASSES, guarantees.SelfOrthogonal(), salt="x").fit(sample(CLASSES, 60))
    with duckdb.connect() as connection:
        for row in ("NULL, 0.5, 0.5, 'k'", "0.5, NULL, 0.5, 'k'", "0.5, 0.5, NULL, 'k'", "0.2, 0.3, 0.5, NULL"):
            source = f"(SELECT * FROM (VALUES ({row})) AS t(a, b, c, id))"
            strict = policy.to_sql("duckdb", ["a", "b", "c"], key="id")
            with pytest.raises(duckdb.Error, match="got NULL"):
                connection.sql(f"SELECT {strict} FROM {source}").fetchall()
            soft = policy.to_sql("duckdb", ["a", "b", "c"], key="id", invalid="null")
            assert connection.sql(f"SELECT {soft} FROM {source}").fetchall() == [(None,)]


def test_keys_whose_text_python_writes_differently_are_refused() -> None:
    policy = prudent.SafetyPolicy(prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0], actions=["a", "b"]))
    text = policy.to_sql("duckdb", "p", key="id")
    with duckdb.connect() as connection:
        whole = connection.sql(f"SELECT {text} FROM (SELECT 0.5 AS p, range AS id FROM range(50))").fetchall()
        assert [action for (action,) in whole] == policy.predict(np.full(50, 0.5), keys=range(50)).tolist()
        for key in ("1.5::DOUBLE", "TRUE", "DATE '2020-01-01'", "1.50::DECIMAL(4, 2)"):
            with pytest.raises(duckdb.Error, match="cast others to text"):
                connection.sql(f"SELECT {text} FROM (SELECT 0.5 AS p, {key} AS id)").fetchall()


def test_mixtures_need_a_key_and_deterministic_rules_do_not() -> None:
    mixed = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal()).fit(sample(LINE, 60))
    with pytest.raises(prudent.errors.InputError, match="pass key="):
        mixed.to_sql("duckdb", "p")
    for policy in (
        prudent.PlugInPolicy(LINE),
        prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal(), randomize=False).fit(sample(LINE, 60)),
        prudent.RobustPolicy(CLASSES, guarantees.DecisionCalibrated(CLASSES)).fit(sample(CLASSES, 60)),
    ):
        columns = [f"c{j}" for j in range(policy.problem.dimension)]
        assert "sha256" not in policy.to_sql("duckdb", columns)


def test_bins_are_written_as_thresholds() -> None:
    bins = prudent.RobustPolicy(LINE, guarantees.Bins([0, 0.25, 0.5, 1])).fit(sample(LINE, 60))
    assert bins.to_sql("duckdb", "p").count("WHEN") <= 2 + 2 + 1  # two demands, at most two edges


LABELS = [
    ["it's", 'say "hi"', "back\\slash"],
    ["größe", "'; DROP TABLE t; --", "$$"],
    [1, -2, 3],
    [0.1, -0.2, 1e-9],
    [True, False],
]


@pytest.mark.parametrize("labels", LABELS)
def test_labels_and_names_cannot_break_out(labels: list[Any]) -> None:
    m = len(labels)
    problem = prudent.DecisionProblem(LINE.rewards[:m], LINE.costs[:m], actions=labels)
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), salt="'; --").fit(sample(problem, 60))
    forecasts = sample(problem, 500)
    frame = pd.DataFrame({'a"b; --': forecasts[:, 0], "x": range(500)})
    text = policy.to_sql("duckdb", 'a"b; --', key="x", table="x")
    with duckdb.connect() as connection:
        connection.register("x", frame)
        found = [action for (action,) in connection.sql(f"SELECT {text} FROM x").fetchall()]
    assert found == policy.predict(forecasts, keys=range(500)).tolist()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_writes_every_case(dialect: str) -> None:
    for problem, guarantee in CASES + LOGARITHMS:
        policy = prudent.RobustPolicy(problem, guarantee).fit(sample(problem, 60))
        columns = [f"c{j}" for j in range(problem.dimension)]
        text = policy.to_sql(dialect, columns, key="id")
        assert text.count("(") == text.count(")")
        assert policy.to_sql(dialect, columns, output="probabilities").keys() == dict.fromkeys(problem.actions).keys()


def test_refusals_say_why() -> None:
    forecasts = sample(LINE, 60)
    own = prudent.RobustPolicy(LINE, guarantees.FromFunctions([lambda v: v[:, 0] ** 2])).fit(forecasts)
    cells = prudent.RobustPolicy(LINE, guarantees.Partition(lambda v: v[:, 0] > 0.5)).fit(forecasts)
    for policy in (own, cells):
        with pytest.raises(prudent.errors.InputError, match="Python functions"):
            policy.to_sql("duckdb", "p", key="id")
    plug_in = prudent.PlugInPolicy(LINE)
    for options, message in (
        ({"dialect": "oracle"}, "dialect must be one of duckdb, spark"),
        ({"forecast": ["a", "b"]}, r"must name 1 column\(s\)"),
        ({"forecast": None}, "fitted without column names"),
        ({"forecast": ""}, "forecast must be a name"),
        ({"table": 3}, "table must be a name"),
        ({"output": "odds"}, "output must be"),
        ({"invalid": "clip"}, "invalid must be"),
    ):
        with pytest.raises(prudent.errors.InputError, match=message):
            plug_in.to_sql(**{"dialect": "duckdb", "forecast": "p", **options})
    mixed_labels = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], actions=["none", 1]))
    with pytest.raises(prudent.errors.InputError, match="labels of one type"):
        mixed_labels.to_sql("duckdb", "p")
    assert list(mixed_labels.to_sql("duckdb", "p", output="probabilities")) == ["none", 1]
    rng = np.random.default_rng(0)
    large = prudent.DecisionProblem(rng.normal(size=(40, 6)), 0.2 * rng.normal(size=40))
    big = prudent.RobustPolicy(large, guarantees.SelfOrthogonal()).fit(rng.random((20, 6)))
    with pytest.raises(prudent.errors.InputError, match="vertices; SQL is written for at most 500"):
        big.to_sql("duckdb", [f"c{j}" for j in range(6)], key="id")


def test_column_names_come_from_the_fit() -> None:
    frame = pd.DataFrame({"risk": sample(LINE, 60)[:, 0]})
    policy = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal(), randomize=False).fit(frame)
    assert policy.to_sql("duckdb") == policy.to_sql("duckdb", "risk")


def test_a_loaded_policy_writes_the_same(tmp_path: Path) -> None:
    policy = prudent.RobustPolicy(CLASSES, guarantees.SelfOrthogonal(), salt="s").fit(sample(CLASSES, 24))
    policy.save(tmp_path / "policy.json")
    columns = ["a", "b", "c"]
    assert prudent.load(tmp_path / "policy.json").to_sql("spark", columns, key="id") == policy.to_sql(
        "spark", columns, key="id"
    )


@pytest.mark.parametrize("tests", [guarantees.SelfOrthogonal(), guarantees.Polynomial(2)], ids=str)
def test_an_action_that_is_always_best(tests: guarantees.Guarantee) -> None:
    problem = prudent.DecisionProblem([1.0, 2.0], [0.0, -5.0])
    forecasts = np.array([0.0, 0.5, 1.0])
    policy = prudent.RobustPolicy(problem, tests).fit(forecasts)
    expression = policy.to_sql("duckdb", "f", key="id")
    found = duckdb.sql(f"SELECT {expression} FROM (VALUES (0, 0.0), (1, 0.5), (2, 1.0)) t(id, f) ORDER BY id")
    assert [action for (action,) in found.fetchall()] == policy.predict(forecasts, keys=[0, 1, 2]).tolist()
    columns = prudent.scan(duckdb.sql("SELECT range / 2 AS f FROM range(3)"), "f")
    worst = prudent.worst_case(policy, columns, guarantee=tests)
    assert worst.value == pytest.approx(prudent.worst_case(policy, forecasts, guarantee=tests).value, abs=1e-6)
